//! Which servers an import takes, and what it asks.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::home::Home;

const CLAUDE: &str = r#"{"mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]},
    "github": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ghp_0123456789"}}
}}"#;

#[test]
fn nothing_is_written_without_agreement() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    let ran = home.run(&["import"]);
    ran.ends_with(5).says("there is no terminal to ask at").says("--yes");
    home.run(&["import", "--dry-run"])
        .ends_with(0)
        .prints("2 servers would be written");
    assert!(!home.path(".config/pegboard/pegboard.toml").exists());
}

#[test]
fn imported_servers_are_in_the_config_and_only_the_user_can_read_it() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    let ran = home.run(&["import", "--yes"]);
    ran.ends_with(0).says("the secrets of github are in");
    assert!(!ran.out.contains("ghp_0123456789"), "{ran:?}");
    let file = home.path(".config/pegboard/pegboard.toml");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert_eq!(shown["servers"]["time"]["args"][0], "mcp-server-time");
    assert_eq!(shown["servers"]["github"]["url"], "https://mcp.example.com/mcp");
}

#[test]
fn the_same_server_of_two_hosts_is_imported_once_and_others_get_names_of_their_own() {
    let home = Home::new();
    home.write(".claude.json", CLAUDE);
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "clock": {"command": "uvx", "args": ["mcp-server-time"]},
            "github": {"url": "https://other.example.com/mcp"},
            "awslabs.core-mcp-server": {"command": "uvx", "args": ["x==1"]},
            "pegboard": {"command": "/opt/pegboard", "args": ["mcp"]}
        }}"#,
    );
    let document = home.run(&["import", "--yes", "-o", "json"]).json();
    let rows = document["servers"].as_array().unwrap();
    let row = |name: &str, host: &str| {
        rows.iter()
            .find(|row| row["original"] == name && row["host"] == host)
            .unwrap()
    };
    assert_eq!(
        (&row("clock", "cursor")["action"], &row("clock", "cursor")["name"]),
        (&"same".into(), &"time".into())
    );
    assert_eq!(row("github", "cursor")["name"], "github-2");
    assert_eq!(
        row("awslabs.core-mcp-server", "cursor")["name"],
        "awslabs-core-mcp-server"
    );
    assert_eq!(row("pegboard", "cursor")["action"], "skip");
    let shown = home.run(&["config", "show", "-o", "json"]).json();
    assert_eq!(shown["servers"].as_object().unwrap().len(), 4, "{shown}");
}

#[test]
fn force_replaces_a_server_of_the_same_name_and_keeps_the_comments_of_the_file() {
    let home = Home::new();
    home.config(
        "# mine\n[servers.github]\nurl = \"https://old.example.com/mcp\" # old\n\n[servers.mine]\ncommand = \"x\"\n",
    );
    home.write(".claude.json", CLAUDE);
    home.run(&["import", "claude", "--yes", "--force"]).ends_with(0);
    let text = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    assert!(
        text.starts_with("# mine\n") && text.contains("[servers.mine]") && !text.contains("old.example.com"),
        "{text}"
    );
}

#[test]
fn the_projects_files_go_to_the_projects_config() {
    let home = Home::new();
    home.write(
        ".vscode/mcp.json",
        r#"{"servers": {"here": {"command": "${workspaceFolder}/run", "args": []}}}"#,
    );
    home.run(&["import", "--yes"])
        .ends_with(0)
        .prints("no config file of a host was found");
    home.run(&["import", "--project", "--yes"]).ends_with(0);
    let text = fs::read_to_string(home.path("pegboard.toml")).unwrap();
    assert!(text.contains("/run\""), "{text}");
    // It is a project's file, so its servers are not used before it is approved.
    home.run(&["status"]).ends_with(5);
}

#[test]
fn a_broken_file_does_not_keep_others_from_being_imported() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{ not json");
    home.write(".claude.json", CLAUDE);
    home.run(&["import", "--yes"])
        .ends_with(0)
        .says(".cursor/mcp.json")
        .prints("2 servers written");
}

#[test]
fn an_unknown_host_is_an_error_that_lists_the_known_ones() {
    Home::new()
        .run(&["import", "emacs"])
        .ends_with(2)
        .says("neither a file nor a host")
        .says("cursor");
    Home::new()
        .run(&["import", "cursor"])
        .ends_with(2)
        .says("has no config file here");
}
