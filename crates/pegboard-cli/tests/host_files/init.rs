//! The first minute, without questions.

use std::fs;

use super::home::Home;

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
        .prints("pegboard doctor");
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
fn a_machine_without_hosts_is_told_what_to_do() {
    let ran = Home::new().run(&["init", "--yes"]);
    ran.ends_with(0).prints("no host such as Claude").prints("pegboard add");
}
