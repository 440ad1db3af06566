//! What a newcomer does in the first five minutes, from the package to their own servers in their own agent, and what each command shows
//! then: at 80 and at 120 columns, with and without colour.

mod home;
mod screen;
mod servers;

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
    let answer = home.asks_as_claude("notes__add", r#"{"text": "bread"}"#);
    assert!(answer.contains("notes__add") && answer.contains("bread"), "{answer}");
    screen.shows("7 uninstall", home, &["uninstall", "claude-desktop"], 0);
    assert_eq!(home.config_of_claude(), before, "nothing of the install is left");
}
