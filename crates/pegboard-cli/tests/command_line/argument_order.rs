//! Values without a name are given to arguments in the order in which the server lists them, with a daemon and without.

use super::{gateway::Served, home::Home};

/// A home with a server whose tool is `copy(source, destination, mode?, force?)`.
fn home() -> Home {
    let home = Home::new();
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/copy_server.py");
    home.config(&format!("[servers.fx]\ncommand = ['python3', '{program}']\n"));
    home
}

/// Checks the calls and what `tools` says of their order.
fn check(home: &Home) {
    for (words, expected) in [
        (&["fx.copy", "a", "b"][..], r#"{"destination": "b", "source": "a"}"#),
        (
            &["fx.copy(a, b, 7)"],
            r#"{"destination": "b", "mode": 7, "source": "a"}"#,
        ),
        (
            &["fx", "copy", "a", "mode=7", "b", "true"],
            r#"{"destination": "b", "force": true, "mode": 7, "source": "a"}"#,
        ),
    ] {
        let ran = home.run(&[&["call"], words].concat());
        assert_eq!(ran.ends_with(0).out, format!("{expected}\n"), "{words:?}");
    }
    let explained = home.run(&["tools", "fx.copy"]);
    for line in [
        "copy(source: string, destination: string, mode?: integer, force?: boolean)",
        "pegboard call fx.copy source=text destination=text",
    ] {
        assert!(explained.ends_with(0).out.contains(line), "{}", explained.out);
    }
    home.run(&["call", "fx.copy(a, b, 7, true, 9)"])
        .ends_with(2)
        .says("with one of source, destination, mode, force");
}

#[test]
fn a_command_gives_values_in_the_order_of_the_server() {
    check(&home());
}

#[test]
fn the_order_comes_through_a_daemon() {
    let home = home();
    let _served = Served::start(&home, &[]);
    check(&home);
}

#[test]
fn the_order_is_that_of_the_gateways_list() {
    let home = home();
    let served = Served::start(&home, &[]);
    let listed = served.post(
        "/mcp",
        &[("Mcp-Method", "tools/list"), ("MCP-Protocol-Version", "2026-07-28")],
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );
    let order: Vec<_> = ["\"source\":{", "\"destination\":{", "\"mode\":{", "\"force\":{"]
        .iter()
        .map(|name| listed.body.find(name).unwrap_or_else(|| panic!("{}", listed.body)))
        .collect();
    assert!(order.is_sorted(), "{}", listed.body);
}
