//! Servers that start slowly or need a sign-in.

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;

use super::home::Home;

const COMMANDS: &[&[&str]] = &[
    &["tools"],
    &["status"],
    &["call", "fx.t"],
    &["call", "t"],
    &["call", "fx.t", "a=1"],
    &["resources"],
    &["resources", "read", "a:b"],
    &["prompts"],
    &["prompts", "get", "p"],
];

fn hung(home: &Home) -> String {
    let fake = FakeServer::new("fx").fault(Fault::SilentHandshake);
    let config = home.config(&home.entry("fx", fake, "era_silence = '60s'"));
    config.to_str().unwrap().to_owned()
}

#[test]
fn a_limit_that_passes_while_a_server_starts_is_a_timeout() {
    let home = Home::new();
    let config = hung(&home);
    for command in COMMANDS {
        let ran = home.run(&[command, &["--timeout", "0.3", "-c", &config][..]].concat());
        ran.ends_with(124).says("fx").says("--timeout");
        assert!(!ran.err.contains("ask again"), "{ran:?}");
    }
    let json = home
        .run(&["call", "fx.t", "--timeout", "300ms", "-o", "json", "-c", &config])
        .ends_with(124)
        .json();
    assert_eq!(
        (
            &json["status"],
            &json["outcome"]["kind"],
            &json["outcome"]["may_have_executed"]
        ),
        (&json!("refused"), &json!("timeout"), &json!(false))
    );
}

/// A tool named without its server is searched in all servers.
#[test]
fn a_slow_server_that_uses_up_the_time_for_another_tool_is_named() {
    let home = Home::new();
    let tool = Tool::new("hello")
        .answers_text("hi")
        .schema(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let entries = [
        home.entry(
            "slow",
            FakeServer::new("slow").fault(Fault::SilentHandshake),
            "stop_timeout = '200ms'\nera_silence = '60s'",
        ),
        home.entry("quick", FakeServer::new("quick").tool(tool), ""),
    ];
    home.config(&entries.concat());
    let ran = home.run(&["call", "hello", "a=1", "--timeout", "5s"]);
    ran.ends_with(124)
        .says("server `slow` was still starting")
        .says("SERVER.TOOL");
    home.run(&["call", "quick.hello", "a=1", "--timeout", "20s"])
        .ends_with(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_sign_in_is_exit_code_4_for_every_command() {
    let home = Home::new();
    let unauthorized = Fault::Status {
        status: 401,
        headers: Vec::new(),
        body: String::new(),
    };
    let fake = FakeServer::new("fx").fault_on(When::always(), unauthorized);
    let handle = fake.serve_http().await.unwrap();
    let server = format!("--server=fx={}", handle.url());
    for command in COMMANDS {
        let ran = home.run(&[command, &[server.as_str()][..]].concat());
        let code = if *command == ["status"] { 0 } else { 4 };
        ran.ends_with(code);
        if *command == ["status"] {
            ran.prints("needs_auth").prints("401");
        } else {
            ran.says("401");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_which_server_is_starting_and_that_it_may_be_fetched() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let npx = home.write("npx", "#!/bin/sh\nexec sleep 600\n");
    std::fs::set_permissions(&npx, PermissionsExt::from_mode(0o700)).unwrap();
    let server = format!("--server=cold={}", npx.display());
    let terminal = super::pty::Terminal::start(&home, &["tools", &server, "--timeout", "8"]);
    terminal.shows(" s  starting, npx may be fetching it", 1);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(124), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_messages_that_are_wrapped_at_words() {
    let home = Home::new();
    let variable = "A_VARIABLE_WITH_A_LONG_NAME_THAT_IS_NOT_SET_ANYWHERE";
    home.config(&format!("[servers.x]\ncommand = 'x'\nargs = ['${{{variable}}}']\n"));
    let (_, shown) = super::pty::Terminal::start(&home, &["list"]).ends();
    let warning = shown.split_once("warning: ").unwrap().1;
    assert!(warning.lines().count() > 1, "{shown}");
    for line in warning.lines() {
        let is_one_word = line.trim().split(' ').count() == 1;
        assert!(is_one_word || line.chars().count() <= 100, "{line}");
    }
    assert!(warning.contains(&format!("`{variable}`")), "{shown}");
    // A pipe gets whole lines.
    let piped = home.run(&["list"]).err;
    assert_eq!(piped.lines().count(), 1, "{piped}");
}
