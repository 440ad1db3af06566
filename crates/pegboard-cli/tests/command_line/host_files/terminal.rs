//! The questions at a terminal.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    home::{Home, Ran},
    pty::Terminal,
};

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
    let mut terminal = Terminal::start_with(&home, &["import", "vscode"], &[("PEGBOARD_KEYRING", "off")]);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("Keep secrets in a file that only you can read? [y/N] ", "y");
    terminal.shows(
        "github needs `GH_TOKEN`, which is not set. It is described as: GitHub token",
        1,
    );
    terminal.answers("GH_TOKEN (not shown; empty leaves it): ", "typed-secret");
    terminal.answers("Your region [eu]: ", "us$1");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("typed-secret"), "{shown}");
    let config = config(&home);
    assert!(config.contains("REGION = \"us$$1\""), "{config}");
    assert!(config.contains("${secret:GH_TOKEN}"), "{config}");
    assert!(!config.contains("typed-secret"), "{config}");
}

#[test]
fn a_password_is_kept_in_the_keyring_of_the_desktop_and_read_from_there() {
    let home = home();
    // As `secret-tool` of libsecret does: the secret comes on stdin, and goes to stdout without a line end.
    let program = home.write(
        "bin/secret-tool",
        "#!/bin/sh\ncase \"$1\" in\n\
         store) echo \"$@\" > \"$HOME/asked\"; shift 2; cat > \"$HOME/entry $*\";;\n\
         lookup) shift; cat \"$HOME/entry $*\" 2>/dev/null || exit 1;;\nesac\n",
    );
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let variables = [("PATH", path.as_str()), ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none")];
    let mut terminal = Terminal::start_with(&home, &["import", "vscode"], &variables);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("GH_TOKEN (not shown; empty leaves it): ", "typed-secret");
    terminal.answers("Your region [eu]: ", "");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let config = config(&home);
    assert!(config.contains("TOKEN = \"${secret:GH_TOKEN}\""), "{config}");
    let asked = fs::read_to_string(home.path("asked")).unwrap();
    assert!(
        asked.contains("service pegboard-secret username GH_TOKEN") && !asked.contains("typed-secret"),
        "{asked}"
    );
    let stored = home.path("entry service pegboard-secret username GH_TOKEN");
    assert_eq!(fs::read_to_string(&stored).unwrap(), "typed-secret");
    let origin = |home: &Home| {
        let mut command = home.pegboard(&["config", "show", "-o", "json"]);
        command.envs(variables);
        Ran::of(command)
    };
    let shown = origin(&home);
    let servers = &shown.ends_with(0).json()["servers"];
    assert!(
        servers["github"].is_object() && !shown.out.contains("typed-secret"),
        "{shown:?}"
    );
    fs::remove_file(stored).unwrap();
    assert!(
        format!("{:?}", origin(&home)).contains("pegboard secret set GH_TOKEN"),
        "it is read from the keyring"
    );
}

#[test]
fn a_server_whose_password_cannot_be_kept_stays_in_the_host() {
    let home = home();
    let file = home.path(".config/Code/User/mcp.json");
    let program = home.write("bin/secret-tool", "#!/bin/sh\nexit 1\n");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let variables = [("PATH", path.as_str()), ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none")];
    let mut terminal = Terminal::start_with(&home, &["init"], &variables);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("GH_TOKEN (not shown; empty leaves it): ", "typed-secret");
    terminal.answers("Your region [eu]: ", "");
    // There is nothing to take out of the file: the server could not be used here.
    terminal.answers("Make VS Code use Pegboard?", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("`GH_TOKEN` is not stored") && shown.contains("asks for GH_TOKEN, which is needed by github"),
        "{shown}"
    );
    assert!(fs::read_to_string(&file).unwrap().contains("${input:gh-token}"));
    // The same with the two steps.
    let mut terminal = Terminal::start_with(
        &home,
        &["-c", "other.toml", "install", "vscode", "--take-over"],
        &variables,
    );
    terminal.answers("Move them to", "y");
    terminal.answers("GH_TOKEN (not shown; empty leaves it): ", "typed-secret");
    terminal.answers("Your region [eu]: ", "");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("`github` stays in VS Code: the variable GH_TOKEN is not set: GitHub token"),
        "{shown}"
    );
    assert!(fs::read_to_string(&file).unwrap().contains("${input:gh-token}"));
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
fn the_guided_minute_asks_before_each_step() {
    let home = Home::new();
    let file = home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#,
    );
    let mut terminal = Terminal::start(&home, &["init"]);
    terminal.answers("Write 1 server to", "y");
    terminal.answers("Make Cursor use Pegboard?", "y");
    terminal.answers("Take time out of the hosts' files?", "n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("pegboard doctor"), "{shown}");
    assert!(shown.contains("pegboard install cursor --take-over"), "{shown}");
    assert!(config(&home).contains("mcp-server-time"));
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("pegboard") && now.contains("mcp-server-time"), "{now}");
    // Whoever changes their mind is asked again.
    let mut terminal = Terminal::start(&home, &["init"]);
    terminal.answers("Make Cursor use Pegboard?", "y");
    terminal.answers("Take time out of the hosts' files?", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let now = fs::read_to_string(file).unwrap();
    assert!(now.contains("pegboard") && !now.contains("mcp-server-time"), "{now}");
}

#[test]
fn a_name_that_two_hosts_have_is_asked_about_once() {
    let home = Home::new();
    let server =
        |package: &str| format!(r#"{{"mcpServers": {{"time": {{"command": "uvx", "args": ["{package}"]}}}}}}"#);
    home.write(".cursor/mcp.json", &server("one"));
    home.write(".claude.json", &server("two"));
    let mut terminal = Terminal::start(&home, &["init"]);
    terminal.answers("Write 2 servers to", "y");
    terminal.answers("use Pegboard?", "y");
    terminal.answers("Take time out of the hosts' files?", "n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn whoever_does_not_say_yes_gets_no_first_config() {
    let home = Home::new();
    for (answer, is_written) in [("n", false), ("y", true)] {
        let mut terminal = Terminal::start(&home, &["init"]);
        terminal.answers("Write a first config with the built-in demo server to", answer);
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(config(&home).contains("[servers.demo]"), is_written, "{shown}");
    }
}

#[test]
fn a_reason_that_does_not_fit_into_the_table_is_whole_below_it() {
    let home = Home::new();
    let project = format!("/srv/{}/app", "a-long-name/".repeat(8));
    home.write(
        ".claude.json",
        &serde_json::json!({
            "mcpServers": {"empty": null},
            "projects": {&project: {"mcpServers": {"theirs": {"command": "x"}}}},
        })
        .to_string(),
    );
    for command in ["import", "init"] {
        let (code, shown) = Terminal::start(&home, &[command, "--dry-run"]).ends();
        assert_eq!(code, Some(0), "{shown}");
        let shown = shown.replace("\r\n", "\n");
        let below = format!("\n  theirs: only for {project}; `pegboard import --all` imports it\n");
        assert!(shown.contains(&below), "{shown}");
        // One that fits is not repeated.
        assert_eq!(shown.matches("its entry must be a table").count(), 1, "{shown}");
    }
}
