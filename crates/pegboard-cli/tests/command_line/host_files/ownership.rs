//! What belongs to others is left alone, and what cannot be done is said.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::home::Home;

const FOREIGN: &str = r#"{"mcpServers": {"docs": {"url": "https://docs.example.com/mcp"}}}"#;

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_remote_server_of_someone_else_is_neither_replaced_nor_removed() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", FOREIGN);
    home.run(&["install", "cursor", "--name", "docs"])
        .ends_with(2)
        .says("has another `docs`");
    home.run(&["uninstall", "cursor", "--name", "docs"])
        .ends_with(0)
        .says("which stays");
    assert_eq!(fs::read_to_string(file).unwrap(), FOREIGN);
}

#[test]
fn a_url_that_was_installed_can_be_changed_and_removed() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", "{}\n");
    for url in ["http://127.0.0.1:7337/mcp", "http://127.0.0.1:7338/mcp"] {
        home.run(&["install", "cursor", "--url", url]).ends_with(0);
        assert_eq!(read(&file)["mcpServers"]["pegboard"]["url"], url);
    }
    // Taking over does not take Pegboard for a server of the host.
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    assert_eq!(
        read(&file)["mcpServers"]["pegboard"]["url"],
        "http://127.0.0.1:7338/mcp"
    );
    home.run(&["uninstall", "cursor"]).ends_with(0).prints("removed from");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
}

#[test]
fn an_installed_url_is_pegboard_itself_to_every_command() {
    let home = Home::new();
    home.write(".claude.json", FOREIGN);
    home.run(&["install", "claude", "--url", "http://127.0.0.1:17555/mcp"])
        .ends_with(0);
    let rows = home.run(&["import", "claude", "--yes", "-o", "json"]).json();
    let row = |name: &str| {
        let mut rows = rows["servers"].as_array().unwrap().iter();
        rows.find(|row| row["original"] == name).unwrap().clone()
    };
    assert_eq!(
        (&row("pegboard")["action"], &row("pegboard")["reason"]),
        (&"skip".into(), &"Pegboard itself".into())
    );
    assert_eq!(row("docs")["action"], "add");
    // `docs` is in the config now, and Pegboard is no server that it does not manage.
    let doctor = home.run(&["doctor", "--offline", "-o", "json"]);
    assert!(
        doctor.out.contains("server-twice") && !doctor.out.contains("unmanaged-server"),
        "{doctor:?}"
    );
    // Another address under that name is another server.
    let other = r#"{"mcpServers": {"pegboard": {"url": "https://docs.example.com/mcp"}}}"#;
    home.write(".claude.json", other);
    let rows = home.run(&["import", "claude", "--dry-run", "-o", "json"]).json();
    assert_ne!(rows["servers"][0]["action"], "skip", "{rows}");
}

#[test]
fn continues_file_is_backed_up_before_it_is_removed() {
    let home = Home::new();
    home.run(&["install", "continue"]).ends_with(0);
    let before = fs::read_to_string(home.path(".continue/mcpServers/pegboard.yaml")).unwrap();
    let ran = home.run(&["uninstall", "continue", "-o", "json"]);
    let backup = ran.json()["hosts"][0]["backup"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    let file = home.write(
        ".continue/mcpServers/docs.yaml",
        "mcpServers:\n  - name: docs\n    url: https://docs.example.com/mcp\n",
    );
    home.run(&["uninstall", "continue", "--name", "docs"]).ends_with(0);
    assert!(file.exists());
}

#[test]
fn an_entry_that_is_pegboards_already_stays_as_it_is() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_pegboard");
    let entry = json!({"command": program, "args": ["mcp", "--view", "readonly"], "env": {"A": "b"}});
    let text = json!({"mcpServers": {"pegboard": entry}}).to_string();
    let file = home.write(".cursor/mcp.json", &text);
    home.run(&["init", "--yes"]).ends_with(0).prints("has it already");
    home.run(&["install", "cursor"]).ends_with(0).prints("has it already");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    home.run(&["install", "cursor", "--daemon"]).ends_with(0);
    assert_eq!(
        read(&file)["mcpServers"]["pegboard"]["args"],
        json!(["mcp", "--daemon"])
    );
    home.run(&["install", "cursor", "--force", "--no-daemon"]).ends_with(0);
    assert_eq!(read(&file)["mcpServers"]["pegboard"]["args"], json!(["mcp"]));
}

#[test]
fn an_entry_without_options_is_updated_to_share_the_daemon_or_not_to() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_pegboard");
    let entry = json!({"command": program, "args": ["mcp"], "env": {"A": "b"}});
    let file = home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": {"pegboard": entry}}).to_string(),
    );
    home.run(&["init", "--yes"]).ends_with(0).prints("has it already");
    for (args, words) in [
        (&["install", "cursor"][..], json!(["mcp", "--daemon"])),
        (&["install", "cursor", "--no-daemon"], json!(["mcp"])),
    ] {
        home.run(args).ends_with(0);
        let made = read(&file)["mcpServers"]["pegboard"].clone();
        assert_eq!((&made["args"], &made["env"]), (&words, &json!({"A": "b"})), "{args:?}");
    }
    home.run(&["uninstall", "cursor"]).ends_with(0);
    assert_eq!(read(&file)["mcpServers"], json!({}));
}

#[test]
fn only_the_program_is_updated_if_it_is_gone() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"pegboard": {"command": "/nowhere/pegboard", "args": ["mcp", "--view", "readonly"]}}}"#,
    );
    home.run(&["install", "cursor"]).ends_with(0).prints("updated in");
    assert_eq!(
        read(&file)["mcpServers"]["pegboard"],
        json!({"command": env!("CARGO_BIN_EXE_pegboard"), "args": ["mcp", "--view", "readonly"]})
    );
}

#[test]
fn one_broken_file_does_not_stop_the_other_hosts() {
    let home = Home::new();
    let broken = home.write(".claude.json", "{ broken");
    let cursor = home.write(".cursor/mcp.json", "{}\n");
    home.run(&["init", "--dry-run"])
        .ends_with(0)
        .says("Claude Code is left as it is")
        .prints("Cursor: would be added");
    let ran = home.run(&["init", "--yes", "-o", "json"]);
    ran.ends_with(0).says("Claude Code is left as it is");
    assert_eq!(ran.json()["skipped"][0]["host"], "claude");
    assert_eq!(ran.json()["hosts"][0]["action"], "added");
    home.run(&["uninstall", "claude", "cursor"])
        .ends_with(0)
        .says("Claude Code is left as it is")
        .prints("Cursor: removed");
    assert_eq!(fs::read_to_string(&cursor).unwrap(), "{}\n");
    assert_eq!(fs::read_to_string(&broken).unwrap(), "{ broken");
    fs::write(&cursor, "{ broken").unwrap();
    home.run(&["init", "--yes"]).ends_with(1);
    home.run(&["uninstall", "claude", "cursor"]).ends_with(1);
}

#[test]
fn what_is_not_put_back_is_remembered() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", r#"{"mcpServers": {"time": {"command": "uvx"}}}"#);
    home.run(&["install", "cursor", "--take-over", "--yes"]).ends_with(0);
    fs::write(&file, r#"{"mcpServers": {"time": {"command": "other"}}}"#).unwrap();
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .says("`time` is not put back");
    fs::write(&file, "{}").unwrap();
    home.run(&["uninstall", "cursor", "--restore"])
        .ends_with(0)
        .prints("put back: time");
    assert_eq!(read(&file)["mcpServers"]["time"]["command"], "uvx");
}

#[test]
fn nothing_is_written_if_the_hosts_file_is_read_only() {
    let home = Home::new();
    let file = home.write(".cursor/mcp.json", r#"{"mcpServers": {"time": {"command": "uvx"}}}"#);
    set_mode(&file, 0o444);
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(3)
        .says("read-only");
    assert!(!home.path(".config/pegboard").exists());
    // Also if only the moves would change it.
    set_mode(&file, 0o644);
    home.run(&["install", "cursor"]).ends_with(0);
    set_mode(&file, 0o444);
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(3)
        .says("read-only");
    assert!(!home.path(".config/pegboard").exists());
}

#[test]
fn taking_over_says_what_is_different_and_leaves_what_would_not_work() {
    let home = Home::new();
    home.config(
        "[servers.known]\ncommand = \"x\"\nenv = { TOKEN = \"one\" }\n[servers.moved]\ncommand = \"z\"\nenv = { TOKEN = \"${HOME}\" }\n",
    );
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "fine": {"command": "uvx", "someKey": 1},
            "asks": {"command": "uvx", "args": ["y"], "env": {"TOKEN": "${input:token}"}},
            "wrong": {"url": "not a URL"},
            "other": {"command": "x", "env": {"TOKEN": "two"}},
            "moved": {"command": "z", "env": {"TOKEN": "three"}},
            "equal": {"command": "x", "env": {"TOKEN": "one"}}
        }}"#,
    );
    home.run(&["install", "cursor", "--take-over", "--yes"])
        .ends_with(0)
        .prints("`some_key` left out")
        .prints("stays in the host: cannot be used as it is")
        .prints("stays in the host: `moved` has other variables or headers");
    let left = read(&file)["mcpServers"].clone();
    let mut left: Vec<&String> = left.as_object().unwrap().keys().collect();
    left.sort();
    assert_eq!(left, ["asks", "moved", "pegboard", "wrong"]);
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    let mut names: Vec<&String> = shown["servers"].as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["fine", "known", "moved", "other"]);
}
