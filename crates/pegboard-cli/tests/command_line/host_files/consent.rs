//! The one question before servers of hosts are started, and that for a secret that is missing.

use std::fs;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use super::without_config::{entry, file, two_hosts};
use crate::{
    home::{Home, Ran},
    pty::Terminal,
};

#[test]
fn a_person_agrees_once_to_the_command_lines_and_is_asked_again_when_one_changes() {
    let home = two_hosts();
    let mut terminal = Terminal::start(&home, &["tools"]);
    terminal.answers("Start 3 servers of Claude Code and Cursor? [y/N] ", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("fake-mcp-server") && shown.contains("own-2"), "{shown}");
    assert!(shown.contains("pegboard trust forget --hosts"), "{shown}");
    // It is remembered, also where nobody can be asked.
    home.run(&["tools"]).ends_with(0).prints("(Cursor)");
    let mut changed = entry(&home, "own");
    changed["env"] = json!({"OTHER": "1"});
    home.write(".cursor/mcp.json", &file(&[("new", changed)]));
    let ran = home.run(&["tools"]);
    ran.ends_with(0).says("not approved to start: new (Cursor)");
    home.run(&["trust", "forget", "--hosts"])
        .ends_with(0)
        .prints("3 servers of hosts");
    home.run(&["tools"]).ends_with(5);
}

#[test]
fn a_call_asks_for_its_server_only_and_no_leaves_it_alone() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        &file(&[("one", entry(&home, "one")), ("two", entry(&home, "two"))]),
    );
    let mut terminal = Terminal::start(&home, &["call", "one.echo", "text=hi"]);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(5), "{shown}");
    assert!(!shown.contains("two"), "{shown}");
    assert!(
        shown.contains("`--trust` starts them this time") && !shown.contains("you are asked"),
        "{shown}"
    );
    let mut terminal = Terminal::start(&home, &["call", "one.echo", "text=hi"]);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(home.path("one.log").exists() && !home.path("two.log").exists());
}

/// The variables with which secrets are kept in an encrypted file.
fn with_key_file(home: &Home) -> String {
    let key = home.write("key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n");
    key.display().to_string()
}

#[test]
fn a_missing_key_is_asked_for_without_echo_kept_and_referred_to_in_our_config() {
    let home = Home::new();
    let key = with_key_file(&home);
    let variables = [("PEGBOARD_TOKEN_KEY_FILE", key.as_str()), ("PEGBOARD_KEYRING", "off")];
    let server = entry(&home, "fx");
    let file = home.config(&format!(
        "# mine\n[servers.fx]\ncommand = {}\nargs = {}\nenv.FX_TOKEN = \"${{FX_TOKEN}}\" # from the site\n",
        server["command"], server["args"]
    ));
    let mut terminal = Terminal::start_with(&home, &["call", "fx.echo", "text=hi"], &variables);
    terminal.shows("fx needs `FX_TOKEN`, which is not set.", 1);
    terminal.answers("FX_TOKEN (not shown; empty leaves it): ", "typed-s3cret");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("typed-s3cret"), "{shown}");
    // The terminal breaks the line.
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("start `pegboard mcp`, which needs the variable PEGBOARD_TOKEN_KEY_FILE"),
        "{shown}"
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("\"${secret:FX_TOKEN}\" # from the site") && text.starts_with("# mine"),
        "{text}"
    );
    let stored = fs::read_to_string(home.path(".local/state/pegboard/secrets.json")).unwrap();
    assert!(
        stored.contains("FX_TOKEN") && !stored.contains("typed-s3cret"),
        "{stored}"
    );
    // From now on it is simply there, and the value is known as a secret.
    let mut command = home.pegboard(&["call", "fx.echo", "text=typed-s3cret"]);
    command.envs(variables);
    let ran = Ran::of(command);
    ran.ends_with(0);
    assert!(!ran.out.contains("typed-s3cret"), "{ran:?}");
}

#[test]
fn a_missing_key_of_a_host_is_kept_and_the_hosts_file_stays_as_it_is() {
    let home = Home::new();
    let key = with_key_file(&home);
    let variables = [("PEGBOARD_TOKEN_KEY_FILE", key.as_str()), ("PEGBOARD_KEYRING", "off")];
    let mut server = entry(&home, "fx");
    server["env"] = json!({"FX_TOKEN": "${env:FX_TOKEN}"});
    let path = home.write(".cursor/mcp.json", &file(&[("fx", server)]));
    let before = fs::read_to_string(&path).unwrap();
    let mut terminal = Terminal::start_with(&home, &["tools"], &variables);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "y");
    terminal.answers("FX_TOKEN (not shown; empty leaves it): ", "typed-s3cret");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("fx (Cursor) (1 tool)"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    // An import writes the reference too, and finds the server again.
    let mut import = home.pegboard(&["import", "--yes"]);
    import.envs(variables);
    Ran::of(import).ends_with(0);
    let text = fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    assert!(text.contains("FX_TOKEN"), "{text}");
}

#[test]
fn without_a_keyring_a_secret_is_kept_in_a_file_if_the_user_agrees() {
    let home = Home::new();
    let server = entry(&home, "fx");
    home.config(&format!(
        "[servers.fx]\ncommand = {}\nargs = {}\nenv = {{ FX_TOKEN = \"${{FX_TOKEN}}\" }}\n",
        server["command"], server["args"]
    ));
    let no_keyring = [("PEGBOARD_KEYRING", "off")];
    let question = "Keep secrets in a file that only you can read? [y/N] ";
    let start = || Terminal::start_with(&home, &["call", "fx.echo", "text=hi"], &no_keyring);
    let mut terminal = start();
    terminal.answers(question, "n");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("pegboard secret set FX_TOKEN") && !shown.contains(":-default") && !shown.contains("not shown"),
        "{shown}"
    );
    let mut terminal = start();
    terminal.answers(question, "y");
    terminal.answers("FX_TOKEN (not shown; empty leaves it): ", "typed-s3cret");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    // No variable is needed from then on, and nothing is asked.
    let mut again = home.pegboard(&["call", "fx.echo", "text=hi"]);
    again.envs(no_keyring);
    Ran::of(again).ends_with(0);
    let state = home.path(".local/state/pegboard");
    let stored = fs::read_to_string(state.join("secrets.json")).unwrap();
    assert!(!stored.contains("typed-s3cret"), "{stored}");
    for file in ["secrets.json", "secrets.key"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(state.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_folder_with_a_program_of_the_same_name_runs_nothing_of_its_own() {
    let home = Home::new();
    let command = home.command_of("fx", FakeServer::new("fx").tool(Tool::new("echo").echoes()));
    home.write("run.sh", &format!("exec {command}\n"));
    home.write("cloned/run.sh", "touch ran-here\n");
    let server = json!({"command": "sh", "args": ["run.sh"]});
    home.write(".cursor/mcp.json", &file(&[("fx", server)]));
    let mut terminal = Terminal::start(&home, &["call", "fx.echo", "text=hi"]);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    let mut cloned = home.pegboard(&["call", "fx.echo", "text=hi"]);
    cloned.current_dir(home.path("cloned"));
    Ran::of(cloned).ends_with(0).prints("hi");
    assert!(!home.path("cloned/ran-here").exists());
}

#[test]
fn another_content_of_an_environment_file_is_another_server() {
    let home = Home::new();
    let variables = home.write("fx.env", "MODE=a\n");
    let mut server = entry(&home, "fx");
    server["envFile"] = json!(variables);
    home.write(".cursor/mcp.json", &file(&[("fx", server)]));
    let mut terminal = Terminal::start(&home, &["call", "fx.echo", "text=hi"]);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "y");
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("MODE"), "{shown}");
    home.run(&["call", "fx.echo", "text=hi"]).ends_with(0);
    home.write("fx.env", "MODE=a\nPATH=/tmp/elsewhere:/usr/bin\n");
    home.run(&["call", "fx.echo", "text=hi"]).ends_with(5);
}

#[test]
fn what_is_approved_is_shown_word_for_word() {
    let home = Home::new();
    let script = "x=\"https://u:$(touch pwned)@h/\"; exec python3 srv.py";
    let server = json!({"command": "sh", "args": ["-c", script], "env": {"NODE_OPTIONS": "--require ./x.js"}});
    home.write(".cursor/mcp.json", &file(&[("fx", server)]));
    let mut terminal = Terminal::start(&home, &["call", "fx.echo", "text=hi"]);
    terminal.answers("Start 1 server of Cursor? [y/N] ", "n");
    let (_, shown) = terminal.ends();
    let words: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("sh -c '{script}'")), "{shown}");
    assert!(words.contains("--require ./x.js"), "{shown}");
    assert!(!home.path("pwned").exists());
}
