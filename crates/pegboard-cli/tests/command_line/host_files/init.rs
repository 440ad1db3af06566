//! The first minute, without questions.

use std::fs;

use crate::home::Home;

#[test]
fn without_a_terminal_it_needs_yes() {
    Home::new().run(&["init"]).ends_with(5).says("--yes");
}

#[test]
fn everything_is_imported_and_every_host_that_is_there_gets_pegboard() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time==1.0"]}}}"#,
    );
    home.write(".cursor/mcp.json", "{}\n");
    let ran = home.run(&["init", "--yes"]);
    ran.ends_with(0)
        .prints("found Claude Code, Cursor")
        .prints("1 server written")
        // `uvx` is not on the PATH here, which is told without starting anything.
        .prints("1 server, none of them started: 1 has a problem; `pegboard doctor` tries them and says more\n");
    for file in [".claude.json", ".cursor/mcp.json"] {
        assert!(
            fs::read_to_string(home.path(file)).unwrap().contains("\"mcp\""),
            "{file}"
        );
    }
    // Doing it again finds nothing to do.
    let again = home.run(&["init", "--yes", "-o", "json"]).json();
    assert_eq!(again["imported"]["written"], false);
    assert_eq!(again["hosts"][0]["action"], "unchanged");
}

#[test]
fn a_host_that_keeps_its_servers_has_them_twice_which_is_said_until_they_are_taken_over() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time==1.0"]}}}"#,
    );
    let told = "Cursor still starts `time` itself, so the tools are there twice\n  to move them: pegboard install cursor --take-over\n";
    home.run(&["init", "--dry-run"])
        .ends_with(0)
        .prints("Cursor would still start `time` itself");
    home.run(&["init", "--yes"]).ends_with(0).prints(told);
    // Also by its two steps.
    home.run(&["install", "cursor"]).ends_with(0).prints(told);
    let again = home.run(&["init", "--yes", "-o", "json"]).ends_with(0).json();
    assert_eq!(again["twice"][0]["servers"][0], "time", "{again}");
    let taken = home.run(&["init", "--yes", "--take-over"]);
    taken.ends_with(0).prints("taken over: time");
    assert!(!taken.out.contains("twice"), "{taken:?}");
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("pegboard") && !now.contains("mcp-server-time"), "{now}");
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .prints("put back: time");
}

#[test]
fn one_run_imports_and_takes_over() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time==1.0"]}}}"#,
    );
    let ran = home
        .run(&["init", "--yes", "--take-over", "-o", "json"])
        .ends_with(0)
        .json();
    assert_eq!(ran["hosts"][0]["moved"][0], "time", "{ran}");
    assert_eq!(ran["twice"], serde_json::json!([]));
    assert!(!fs::read_to_string(&file).unwrap().contains("mcp-server-time"));
    assert!(config(&home).unwrap().contains("mcp-server-time"));
}

/// The user's config file.
fn config(home: &Home) -> Option<String> {
    fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).ok()
}

#[test]
fn where_there_is_nothing_to_import_a_first_config_is_written_that_works() {
    let home = Home::new();
    let told = "a first config with the built-in demo server";
    home.run(&["init", "--dry-run"])
        .ends_with(0)
        .prints(&format!("{told} would be written"));
    assert_eq!(config(&home), None);
    let ran = home.run(&["init", "--yes"]);
    ran.ends_with(0)
        .prints("no host such as Claude")
        .prints(&format!("{told} written to"))
        .prints("1 server, none of them started: 1 looks fine; `pegboard doctor` tries them and says more\n")
        .prints("pegboard add")
        // The program of this test is in a folder that is cleared from time to time.
        .says("may be removed at any time, and the demo server with it");
    let written = config(&home).unwrap();
    assert!(written.starts_with("# The servers that Pegboard runs"), "{written}");
    let called = home.run(&["call", "demo.echo", "text=hello"]);
    assert_eq!((called.ends_with(0).out.as_str(), called.err.as_str()), ("hello\n", ""));
    home.run(&["doctor"]).ends_with(0).prints("no problem with 1 server");
    // Comments stay, and a second run changes nothing.
    home.run(&["remove", "demo"]).ends_with(0);
    let emptied = config(&home).unwrap();
    assert!(
        emptied.contains("# [servers.github]") && !emptied.contains("\n[servers.demo]"),
        "{emptied}"
    );
    let again = home.run(&["init", "--yes", "-o", "json"]).ends_with(0).json();
    assert_eq!(
        (&again["first_config"], &again["checked"]),
        (&false.into(), &serde_json::Value::Null)
    );
    assert_eq!(config(&home).unwrap(), emptied);
}

#[test]
fn a_first_config_of_another_format_and_a_host_beside_it() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}\n");
    let ran = home
        .run(&["init", "--yes", "-o", "json", "-c", "mine.json"])
        .ends_with(0)
        .json();
    assert_eq!(
        (&ran["first_config"], &ran["checked"]["fine"]),
        (&true.into(), &1.into()),
        "{ran}"
    );
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(home.path("mine.json")).unwrap()).unwrap();
    assert_eq!(written["servers"]["demo"]["args"][0], "demo-server");
    assert_eq!(ran["hosts"][0]["action"], "added");
}

#[test]
fn the_next_steps_beside_a_server_of_the_config_are_about_it() {
    let home = Home::new();
    home.config("[servers.a]\ncommand = 'cat'\n");
    home.run(&["init", "--yes"])
        .ends_with(0)
        .prints("lists the tools of all servers");
}
