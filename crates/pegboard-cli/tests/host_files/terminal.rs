//! The questions at a terminal.

use std::fs;

use super::{home::Home, pty::Terminal};

const VSCODE: &str = r#"{
    "inputs": [
        {"type": "promptString", "id": "region", "description": "Your region", "default": "eu"},
        {"type": "promptString", "id": "gh-token", "description": "GitHub token", "password": true}
    ],
    "servers": {"github": {"type": "stdio", "command": "gh", "env": {"REGION": "${input:region}", "TOKEN": "${input:gh-token}"}}}
}"#;

fn home() -> Home {
    let home = Home::new();
    home.write(".config/Code/User/mcp.json", VSCODE);
    home
}

fn config(home: &Home) -> String {
    fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap_or_default()
}

#[test]
fn what_the_host_would_ask_for_is_asked_and_a_password_is_not_echoed() {
    let home = home();
    let mut terminal = Terminal::start(&home, &["import", "vscode"]);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("GitHub token: ", "typed-secret");
    terminal.answers("Your region [eu]: ", "us$1");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("typed-secret"), "{shown}");
    let config = config(&home);
    assert!(config.contains("REGION = \"us$$1\""), "{config}");
    // Without a keyring here, a variable takes the place of the secret.
    assert!(
        config.contains("TOKEN = \"${GH_TOKEN}\"") || config.contains("${keyring:pegboard/gh-token}"),
        "{config}"
    );
    assert!(!config.contains("typed-secret"), "{config}");
}

#[test]
fn whoever_does_not_say_yes_gets_nothing_written() {
    let home = home();
    let mut terminal = Terminal::start(&home, &["import", "vscode"]);
    terminal.answers("Write 1 server to", "");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(5), "{shown}");
    assert_eq!(config(&home), "");
}

#[test]
fn the_guided_minute_asks_twice() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#,
    );
    let mut terminal = Terminal::start(&home, &["init"]);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("Make Cursor use Pegboard?", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("pegboard doctor"), "{shown}");
    assert!(config(&home).contains("mcp-server-time"));
    assert!(fs::read_to_string(file).unwrap().contains("pegboard"));
}
