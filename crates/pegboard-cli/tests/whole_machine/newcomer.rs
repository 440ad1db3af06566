//! What a newcomer does in the first five minutes, from the package to their own servers in their own agent, and what each command shows
//! then: at 80 and at 120 columns, with and without colour.

mod four_hosts;
mod home;
mod screen;
mod servers;

use crate::claude_code;
use home::{Home, Installed};
use screen::Screen;

/// The screens that are reviewed. A newcomer sees one of them.
const SCREENS: [Screen; 4] = [
    Screen::new(80, false),
    Screen::new(80, true),
    Screen::new(120, false),
    Screen::new(120, true),
];

#[test]
fn a_newcomer_gets_from_nothing_to_their_own_servers_in_their_own_agent() {
    let installed = Installed::from_the_wheel();
    std::thread::scope(|scope| {
        for screen in SCREENS {
            let installed = &installed;
            scope.spawn(move || {
                // Someone who has no host yet.
                screen.shows("0 first config", &Home::new(installed), &["init", "--yes"], 0);
                first_five_minutes(&Home::new(installed), screen);
            });
        }
    });
}

fn first_five_minutes(home: &Home, screen: Screen) {
    let _servers = home.writes_the_config_of_claude();
    let before = home.config_of_claude();

    // What would be done, without doing it; then the import alone, by name.
    screen.shows("1 init", home, &["init", "--dry-run"], 0);
    screen.shows("2 import", home, &["import", "claude-desktop", "--yes"], 0);
    screen.shows("3 doctor", home, &["doctor"], 1);
    screen.shows("4 tools", home, &["tools"], 0);
    screen.shows("5 call", home, &["call", "notes.add", "text=milk"], 0);
    screen.shows("6 install", home, &["install", "claude-desktop"], 0);
    let answer = home.asks_as_host(&home.file_of_claude(), "notes__add", r#"{"text": "bread"}"#);
    assert!(answer.contains("notes__add") && answer.contains("bread"), "{answer}");
    screen.shows("7 uninstall", home, &["uninstall", "claude-desktop"], 0);
    assert_eq!(home.config_of_claude(), before, "nothing of the install is left");
}

/// Three commands, and Claude Code has every server that can run. The slow server needs 15 s, which nothing else waits for.
#[test]
fn a_newcomer_with_four_hosts_has_all_healthy_servers_in_claude_code_after_three_commands() {
    let installed = Installed::from_the_wheel();
    let home = Home::new(&installed);
    let _tracker = four_hosts::write(&home);
    let screen = Screen::new(80, false);

    screen.shows("four hosts 1 first screen", &home, &[], 0);
    screen.shows("four hosts 2 init", &home, &["init", "--take-over", "--yes"], 0);
    screen.shows("four hosts 3 doctor", &home, &["doctor"], 1);

    let checked = claude_code::run(&home.path(""), &["mcp", "list"]);
    let own: Vec<&str> = checked.lines().filter(|line| line.contains(" - ")).collect();
    assert!(
        matches!(own.as_slice(), [one] if one.starts_with("pegboard:") && one.ends_with("✔ Connected")),
        "{checked}"
    );
    // The call waits for the slow server, so the next listing has it.
    let entries = home.path(".claude.json");
    home.asks_as_host(&entries, "slow__report", "{}");
    let answer = home.asks_as_host(&entries, "notes__add", "{}");
    for tool in four_hosts::HEALTHY {
        assert!(answer.contains(&format!("\"{tool}\"")), "{tool}: {answer}");
    }
    assert!(
        !answer.contains("keyed__"),
        "a server without its key stays in its host: {answer}"
    );
    home.pegboard(&["daemon", "stop", "--all"]).status().unwrap();
}
