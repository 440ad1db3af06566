//! `pegboard` alone: at most fifteen lines about what runs, what needs attention and what to do next.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use super::home::Home;

fn fake(name: &str) -> FakeServer {
    FakeServer::new(name).tool(Tool::new("t").answers_text("hi"))
}

#[test]
fn without_a_config_it_names_the_next_step() {
    let ran = Home::new().run(&[]);
    assert_eq!(ran.ends_with(0).err, "");
    insta::assert_snapshot!(ran.out, @r#"
    no config found: the built-in demo server is used

    next: pegboard call demo.calculate expression='6 * 7'  call a tool of the demo server

      pegboard tools             list the tools of all servers
      pegboard call SERVER.TOOL  call a tool
      pegboard status            show the state of every server
      pegboard doctor            find out what is wrong, and how to fix it
      pegboard help              list the other commands
    "#);
}

#[test]
fn without_a_config_it_tells_of_the_servers_of_hosts_and_starts_none() {
    let home = Home::new();
    home.write(
        ".claude.json",
        r#"{"mcpServers": {"fx": {"command": "touch", "args": ["started"]}}}"#,
    );
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"web": {"url": "http://127.0.0.1:9/mcp"}}}"#,
    );
    let ran = home.run(&[]);
    assert_eq!(ran.ends_with(0).err, "");
    let mut lines = ran.out.lines();
    assert_eq!(
        lines.next(),
        Some("no config found: 2 servers of Claude Code and Cursor, none is running")
    );
    ran.prints("  fx, web  wait for your approval to start\n")
        .prints("next: pegboard init  put them into a config, and Pegboard into these programs");
    assert!(ran.out.lines().count() <= 15, "{}", ran.out);
    assert!(!home.path("started").exists());
}

#[test]
fn without_a_daemon_it_says_what_is_configured_and_what_is_wrong() {
    let home = Home::new();
    let good = home.entry("good", fake("good"), "");
    let off = home.entry("off", fake("off"), "enabled = false");
    home.config(&format!(
        "{good}{off}[servers.github]\nurl = 'https://example.com/mcp'\nauth = {{ bearer = '${{GITHUB_PAT}}' }}\n"
    ));
    let ran = home.run(&[]);
    assert_eq!(ran.ends_with(0).err, "");
    insta::assert_snapshot!(ran.out, @r"
    2 servers configured in ~/.config/pegboard/pegboard.toml, none is running

    needs attention:
      github  variable `GITHUB_PAT` is not set

    next: pegboard doctor github  see what to do about it

      pegboard tools             list the tools of all servers
      pegboard call SERVER.TOOL  call a tool
      pegboard status            show the state of every server
      pegboard doctor            find out what is wrong, and how to fix it
      pegboard help              list the other commands
    ");
    // Nothing was started.
    assert!(!home.path("good.log").exists());
    let shown = home.run(&["-o", "json"]).ends_with(0).json();
    assert_eq!(
        (
            &shown["servers"]["configured"],
            &shown["daemon"],
            &shown["attention"][0]["of"]
        ),
        (&json!(2), &json!(null), &json!("github"))
    );
}

#[test]
fn a_server_whose_program_is_not_there_needs_attention_before_anything_was_started() {
    let home = Home::new();
    home.config("[servers.gone]\ncommand = 'no-such-program'\n[servers.off]\ncommand = 'nor-this'\nenabled = false\n");
    let ran = home.run(&[]);
    ran.ends_with(0)
        .prints("  gone  its program `no-such-program` was not found\n")
        .prints("next: pegboard doctor gone");
    assert!(!ran.out.contains("nor-this"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn a_gateway_that_goes_on_with_the_config_from_before_is_named() {
    let home = Home::new();
    home.config(&home.entry("good", fake("good"), ""));
    let served = super::gateway::Served::start(&home, &[]);
    home.config("not toml at all [");
    home.run(&[]).ends_with(0).prints(&format!(
        "the config cannot be read; the gateway (process {}) goes on with the one that it has",
        served.pid()
    ));
}

#[test]
fn it_never_has_more_than_fifteen_lines() {
    let home = Home::new();
    let broken = |number: usize| format!("[servers.s{number}]\ncommand = 'x'\nargs = ['${{NOT_SET_{number}}}']\n");
    home.config(&(0..9).map(broken).collect::<String>());
    let ran = home.run(&[]);
    ran.ends_with(0)
        .prints("6 more: pegboard doctor\n")
        .prints("next: pegboard doctor s0");
    assert!(ran.out.lines().count() <= 15, "{}", ran.out);
    home.config("not toml at all [");
    let ran = home.run(&[]);
    ran.ends_with(0).prints("cannot be read");
    assert!(ran.out.lines().count() <= 15, "{}", ran.out);
}

#[cfg(unix)]
#[test]
fn with_a_daemon_it_says_how_many_servers_are_ready() {
    let home = Home::new();
    let good = home.entry("good", fake("good"), "");
    home.config(&format!("{good}[servers.gone]\ncommand = '/does/not/exist'\n"));
    let _served = super::gateway::Served::start(&home, &[]);
    home.run(&["tools"]);
    let ran = home.run(&[]);
    ran.ends_with(0)
        .prints("1 of 2 servers ready in the daemon (process ")
        .prints("  gone  is down: ")
        .prints("next: pegboard doctor gone");
}
