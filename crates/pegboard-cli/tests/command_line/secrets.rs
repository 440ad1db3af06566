//! `pegboard secret`, and `${secret:NAME}` in configs.

use std::{fs, process::Command};

use pegboard_testkit::{FakeServer, Tool};

#[cfg(unix)]
use crate::home::until;
use crate::home::{Home, Ran};

/// A home whose secrets are in an encrypted file.
struct Keeper {
    home: Home,
    key: String,
}

impl Keeper {
    fn new() -> Self {
        let home = Home::new();
        let key = home.write("key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n");
        Self {
            key: key.display().to_string(),
            home,
        }
    }

    fn pegboard(&self, args: &[&str]) -> Command {
        let mut command = self.home.pegboard(args);
        command
            .env("PEGBOARD_TOKEN_KEY_FILE", &self.key)
            .env("PEGBOARD_KEYRING", "off");
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.pegboard(args))
    }

    fn set(&self, name: &str, value: &str) -> Ran {
        Ran::fed(self.pegboard(&["secret", "set", name]), value)
    }
}

/// A server whose tool answers with its variables.
fn config(home: &Home, value: &str) {
    let fake = FakeServer::new("fx").tool(Tool::new("echo").echoes());
    let entry = home.entry("fx", fake, &format!("env = {{ FX_TOKEN = \"{value}\" }}"));
    home.config(&entry);
}

#[test]
fn a_secret_is_piped_in_listed_without_its_value_used_and_removed() {
    let keeper = Keeper::new();
    config(&keeper.home, "${secret:FX_TOKEN}");
    keeper
        .run(&["call", "fx.echo", "text=a"])
        .ends_with(2)
        .says("`${secret:FX_TOKEN}` cannot be read: no secret of this name is stored")
        .says("`pegboard secret set FX_TOKEN`");
    keeper
        .set("FX_TOKEN", "s3cr3t-c4nary\n")
        .ends_with(0)
        .prints("FX_TOKEN is stored in an encrypted file of yours")
        .says("fx gets it");
    let called = keeper.run(&["call", "fx.echo", "text=s3cr3t-c4nary"]);
    called.ends_with(0);
    assert!(!called.out.contains("c4nary"), "its value is masked: {called:?}");
    let listed = keeper.run(&["secret", "list"]);
    listed
        .ends_with(0)
        .prints("FX_TOKEN")
        .prints("encrypted file")
        .prints("fx");
    assert!(!listed.out.contains("c4nary"), "{listed:?}");
    let document = keeper.run(&["secret", "list", "-o", "json"]).ends_with(0).json();
    assert_eq!(document["secrets"][0]["used_by"][0], "fx", "{document}");
    keeper
        .run(&["secret", "remove", "FX_TOKEN"])
        .ends_with(0)
        .says("fx cannot be started without it");
    keeper.run(&["secret", "remove", "FX_TOKEN"]).ends_with(2);
    keeper.run(&["call", "fx.echo", "text=a"]).ends_with(2);
    let file = fs::read_to_string(keeper.home.path(".local/state/pegboard/secrets.json")).unwrap();
    assert!(!file.contains("FX_TOKEN"), "{file}");
}

#[test]
fn the_removal_of_a_secret_names_the_servers_of_hosts_that_take_it() {
    let keeper = Keeper::new();
    keeper.home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"fx": {"command": "x", "env": {"FX_TOKEN": "${env:FX_TOKEN}"}}}}"#,
    );
    keeper.set("FX_TOKEN", "s3cr3t").ends_with(0);
    keeper.run(&["secret", "list"]).ends_with(0).prints("fx (Cursor)");
    keeper
        .run(&["secret", "remove", "FX_TOKEN"])
        .ends_with(0)
        .says("fx (Cursor) cannot be started without it");
}

#[test]
fn times_for_people_have_no_fraction_of_a_second() {
    let keeper = Keeper::new();
    keeper.set("A", "s3cr3t").ends_with(0);
    let listed = keeper.run(&["secret", "list"]);
    let row = listed.out.lines().find(|line| line.starts_with("A ")).unwrap();
    let set_at = row.split_whitespace().nth(3).unwrap();
    assert!(set_at.ends_with('Z') && !set_at.contains('.'), "{listed:?}");
}

#[test]
fn names_and_values_are_checked_and_a_value_is_never_an_argument() {
    let keeper = Keeper::new();
    keeper
        .set("../x", "v")
        .ends_with(2)
        .says("cannot be the name of a secret");
    keeper.set("A", "").ends_with(2).says("is empty");
    keeper.set("A", &"x".repeat(40_000)).ends_with(2).says("is longer than");
    keeper.run(&["secret", "set", "A", "value"]).ends_with(2);
    keeper.run(&["secret", "list"]).ends_with(0).says("no secret is stored");
}

#[test]
fn without_a_keyring_a_secret_is_stored_in_a_file_only_if_that_is_asked_for() {
    let home = Home::new();
    let mut command = home.pegboard(&["secret", "set", "A"]);
    command.env("PEGBOARD_KEYRING", "off");
    Ran::of(command)
        .ends_with(3)
        .says("there is no keyring on this machine")
        .says("--in-file");
    assert!(!home.path(".local/state/pegboard/secrets.json").exists());
    let mut command = home.pegboard(&["secret", "set", "A", "--in-file"]);
    command.env("PEGBOARD_KEYRING", "off");
    Ran::fed(command, "s3cr3t")
        .ends_with(0)
        .prints("an encrypted file of yours");
}

#[test]
fn advice_for_a_token_names_the_secret_and_no_default() {
    let keeper = Keeper::new();
    config(&keeper.home, "${FX_TOKEN}");
    for command in [&["tools"][..], &["doctor", "--offline"], &["call", "fx.echo"]] {
        let ran = keeper.run(command);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(all.contains("pegboard secret set FX_TOKEN"), "{ran:?}");
        assert!(
            all.contains("${secret:FX_TOKEN}") && !all.contains(":-default"),
            "{ran:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_gateway_that_runs_takes_a_changed_secret_without_being_asked() {
    let keeper = Keeper::new();
    config(&keeper.home, "${secret:FX_TOKEN}");
    keeper.set("FX_TOKEN", "f1rst-c4nary").ends_with(0);
    let variables = [
        ("PEGBOARD_TOKEN_KEY_FILE", keeper.key.as_str()),
        ("PEGBOARD_KEYRING", "off"),
    ];
    let served = crate::gateway::Served::start_with(&keeper.home, &[], &variables);
    served.has_tool("fx__echo");
    let before = keeper.home.log("fx").spawned.len();
    keeper.set("FX_TOKEN", "s3cond-c4nary").ends_with(0);
    until("the server runs again, with the new value", || {
        served.has_tool("fx__echo");
        keeper.home.log("fx").spawned.len() > before
    });
    assert!(!served.err().contains("c4nary"), "{}", served.err());
}

#[cfg(target_os = "linux")]
mod echo {
    use super::{Command, Keeper, fs, until};
    use crate::pty::Terminal;

    /// The program at the question for a secret, with echo off.
    fn asked(keeper: &Keeper) -> Terminal {
        let variables = [
            ("PEGBOARD_TOKEN_KEY_FILE", keeper.key.as_str()),
            ("PEGBOARD_KEYRING", "off"),
        ];
        let terminal = Terminal::start_with(&keeper.home, &["secret", "set", "A"], &variables);
        until("echo is off", || !terminal.echoes());
        terminal
    }

    fn send(terminal: &Terminal, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &terminal.pid().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    #[test]
    fn a_terminal_echoes_again_after_every_signal_that_ends_the_question() {
        let keeper = Keeper::new();
        for (signal, code) in [("-HUP", 129), ("-QUIT", 131), ("-INT", 130), ("-TERM", 130)] {
            let terminal = asked(&keeper);
            send(&terminal, signal);
            // It looks at the terminal too.
            assert_eq!(terminal.ends().0, Some(code), "{signal}");
        }
    }

    #[test]
    fn a_terminal_echoes_while_the_question_is_stopped_and_not_when_it_goes_on() {
        let keeper = Keeper::new();
        let mut terminal = asked(&keeper);
        send(&terminal, "-TSTP");
        let stat = format!("/proc/{}/stat", terminal.pid());
        until("it is stopped", || fs::read_to_string(&stat).unwrap().contains(") T "));
        assert!(terminal.echoes());
        send(&terminal, "-CONT");
        until("echo is off", || !terminal.echoes());
        terminal.types("s3cret\n");
        let (code, shown) = terminal.ends();
        assert_eq!(code, Some(0), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
