//! Servers that end at their start for lack of a key: every command leads to it.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use pegboard_testkit::{FakeServer, Tool};

use super::{
    gateway::Served,
    home::{Home, Ran},
    pty::Terminal,
};

/// What names the command that stores the key and passes it on.
const COMMAND: &str = "pegboard secret set API_KEY --for weather";
const QUESTION: &str = "Keep secrets in a file that only you can read? [y/N] ";
const NO_KEYRING: [(&str, &str); 1] = [("PEGBOARD_KEYRING", "off")];

/// A home with the server `weather`, which ends at its start without the variable `API_KEY`.
fn home() -> Home {
    let home = Home::new();
    let fake = FakeServer::new("weather").tool(Tool::new("echo").echoes());
    let command = home.command_of("weather", fake);
    let script = format!(
        "#!/bin/sh\nif [ -z \"$API_KEY\" ]; then echo 'Error: API_KEY is not set' >&2; exit 1; fi\nexec {command}\n"
    );
    let program = home.write("weather.sh", &script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    home.config(&format!(
        "# mine\n[servers.weather]\ncommand = {:?}\n",
        program.display()
    ));
    home
}

fn pegboard(home: &Home, args: &[&str]) -> Command {
    let mut command = home.pegboard(args);
    command.envs(NO_KEYRING);
    command
}

fn run(home: &Home, args: &[&str]) -> Ran {
    Ran::of(pegboard(home, args))
}

fn config(home: &Home) -> String {
    fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap()
}

const CALL: [&str; 3] = ["call", "weather.echo", "text=hi"];

#[test]
fn every_command_names_the_one_that_stores_the_key_and_passes_it_on_with_and_without_a_daemon() {
    for has_daemon in [false, true] {
        let home = home();
        let served = has_daemon.then(|| Served::start_with(&home, &[], &NO_KEYRING));
        for command in [&CALL[..], &["tools"], &["status"], &["doctor"]] {
            let ran = run(&home, command);
            let all = format!("{}{}", ran.out, ran.err);
            assert!(all.contains(COMMAND) && !all.contains("own words"), "{ran:?}");
        }
        // It is one command that works.
        let ran = Ran::fed(
            pegboard(&home, &["secret", "set", "API_KEY", "--in-file", "--for", "weather"]),
            "s3cr3t-c4nary",
        );
        ran.ends_with(0).says("has `${secret:API_KEY}` for `weather` now");
        let text = config(&home);
        assert!(
            text.starts_with("# mine\n") && text.contains("API_KEY = \"${secret:API_KEY}\""),
            "{text}"
        );
        if let Some(served) = &served {
            served.has_tool("weather__echo");
        }
        run(&home, &CALL).ends_with(0);
    }
}

#[test]
fn a_failed_check_of_a_new_server_names_the_key_and_says_that_the_entry_stays() {
    let home = home();
    let program = home.path("weather.sh").display().to_string();
    run(&home, &["add", "other", "--check", "--", &program])
        .ends_with(3)
        .says("pegboard secret set API_KEY --for other")
        .says("`other` stays in the config; `pegboard remove other` takes it out again");
}

#[test]
fn a_stored_key_is_passed_on_by_doctor_which_does_not_ask_for_it_again() {
    let home = home();
    Ran::fed(pegboard(&home, &["secret", "set", "API_KEY", "--in-file"]), "s3cr3t").ends_with(0);
    let found = run(&home, &["doctor"]);
    found
        .ends_with(1)
        .prints("`API_KEY` is stored, but not passed on to the server: `pegboard doctor weather --fix` does that");
    assert!(!found.out.contains("secret set"), "{found:?}");
    run(&home, &["doctor", "weather", "--fix", "--yes"]).ends_with(0);
    assert!(config(&home).contains("${secret:API_KEY}"), "{}", config(&home));
    run(&home, &CALL).ends_with(0);
}

#[test]
fn at_a_terminal_a_call_asks_for_the_key_after_it_has_said_who_needs_it() {
    let home = home();
    let mut terminal = Terminal::start_with(&home, &CALL, &NO_KEYRING);
    terminal.shows("weather needs `API_KEY`, which is not set.", 1);
    // A key that is typed too early is no answer.
    terminal.answers(QUESTION, "typed-early");
    terminal.answers("please answer y or n: ", "y");
    terminal.answers("API_KEY (not shown; empty leaves it): ", "typed-s3cret");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(3), "{shown}");
    let (before, _) = shown.split_once("This machine has no keyring").unwrap();
    assert!(before.contains("weather needs"), "{shown}");
    assert!(!shown.contains("typed-s3cret"), "{shown}");
    assert!(shown.contains("give the command again"), "{shown}");
    run(&home, &CALL).ends_with(0);
}

#[test]
fn doctor_asks_for_the_key_and_looks_again() {
    let home = home();
    let mut terminal = Terminal::start_with(&home, &["doctor", "weather", "--fix"], &NO_KEYRING);
    terminal.answers(QUESTION, "y");
    terminal.answers("API_KEY (not shown; empty leaves it): ", "typed-s3cret");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("no problem with 1 server"), "{shown}");
    run(&home, &CALL).ends_with(0);
}

#[test]
fn a_person_who_wants_no_file_is_not_asked_a_second_time() {
    let home = home();
    let text = config(&home);
    home.config(&format!(
        "{text}[servers.other]\ncommand = 'x'\nenv = {{ B_TOKEN = '${{B_TOKEN}}', C_TOKEN = '${{C_TOKEN}}' }}\n"
    ));
    let mut terminal = Terminal::start_with(&home, &["tools"], &NO_KEYRING);
    terminal.answers(QUESTION, "n");
    let (_, shown) = terminal.ends();
    assert_eq!(shown.matches("This machine has no keyring").count(), 1, "{shown}");
    assert!(!shown.contains("not shown"), "{shown}");
}

#[test]
fn a_key_is_passed_on_only_to_a_process_of_our_own_config() {
    let home = home();
    let text = config(&home);
    home.config(&format!("{text}[servers.web]\nurl = 'http://127.0.0.1:9/mcp'\n"));
    let set = |server: &str| run(&home, &["secret", "set", "A_KEY", "--in-file", "--for", server]);
    set("web").ends_with(2).says("takes no variables").says("`headers`");
    set("nobody").ends_with(2).says("there is no server `nobody`");
    assert!(!home.path(".local/state/pegboard/secrets.json").exists());
}

#[test]
fn without_a_place_for_secrets_the_hint_names_the_secret() {
    run(&Home::new(), &["secret", "set", "API_KEY"])
        .ends_with(3)
        .says("`pegboard secret set API_KEY --in-file`");
}
