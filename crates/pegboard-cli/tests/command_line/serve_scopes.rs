//! Scopes of tokens at `pegboard serve`: what their holders may do, and what the audit log has of the rest.

use std::fs;

use pegboard_testkit::{FakeServer, Tool, is_alive};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

/// A home with a server, an audit log, and tokens with these scopes.
fn home(tokens: &[(&str, &str)]) -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    let mut config = format!("audit = '{}'\n", home.path("audit.jsonl").display());
    for (name, more) in tokens {
        let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
        config += &format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n{more}\n");
    }
    home.config(&format!("{config}{entry}"));
    home
}

fn bearer(name: &str) -> String {
    format!("Bearer pgb_{name}")
}

fn call(served: &Served, name: &str) -> Value {
    let bearer = bearer(name);
    let headers = [("Authorization", bearer.as_str())];
    let (session, _) = served.initialize("/mcp", &headers);
    let params = json!({"name": "fx__read", "arguments": {}});
    served.ask("/mcp", &headers, &session, "tools/call", &params)
}

#[test]
fn the_servers_of_a_removed_token_end_with_it() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let entry = home.entry("fx", fake, "scope = 'session'\nstop_timeout = '200ms'");
    let token = |name: &str| {
        let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
        format!("[serve.tokens.{name}]\nsha256 = '{digest}'\nscopes = ['read', 'call']\n")
    };
    home.config(&(token("one") + &token("two") + &entry));
    let served = Served::start(&home, &[]);
    let bearer = bearer("one");
    let authorization = ("Authorization", bearer.as_str());
    let of_api = [authorization, ("Accept", "application/json")];
    let called = served.post("/api/v1/mcp/call", &of_api, r#"{"name": "fx.read"}"#);
    assert_eq!(called.status, 200, "{called:?}");
    let modern = [
        authorization,
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "fx__read"),
    ];
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "fx__read", "arguments": {}, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let called = served.post("/mcp", &modern, &request.to_string());
    assert!(called.body.contains("read it"), "{called:?}");
    let alive = || home.log("fx").spawned.into_iter().filter(|pid| is_alive(*pid)).count();
    assert_eq!(alive(), 3, "each has a process of its own, and the board");
    home.config(&(token("two") + &entry));
    served.signal("HUP");
    until("only the process of the board itself is left", || alive() == 1);
}

#[test]
fn the_scopes_of_a_token_say_what_it_may_do() {
    let home = home(&[
        ("default", ""),
        ("reader", "scopes = ['read']"),
        ("runner", "scopes = ['call']"),
    ]);
    let served = Served::start(&home, &[]);
    for (name, lists, calls) in [
        ("default", true, true),
        ("reader", true, false),
        ("runner", false, true),
    ] {
        let bearer = bearer(name);
        let tools = served.tools_if_admitted("/mcp", &[("Authorization", &bearer)]);
        assert_eq!(tools.is_some(), lists, "{name}");
        let answer = call(&served, name);
        match calls {
            true => assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}"),
            false => assert_eq!(answer["error"]["code"], -32011, "{answer}"),
        }
    }
    assert_eq!(home.log("fx").count("tools/call"), 2, "the third never left");
}

#[test]
fn a_call_without_its_scope_is_in_the_audit_log() {
    let home = home(&[("reader", "scopes = ['read']")]);
    let served = Served::start(&home, &[]);
    let bearer = bearer("reader");
    served.tools("/mcp", &[("Authorization", &bearer)]);
    call(&served, "reader");
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
    let log = fs::read_to_string(home.path("audit.jsonl")).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decision = records.iter().find(|record| record["event"] == "decision").unwrap();
    assert_eq!(
        (&decision["decision"], &decision["rule"], &decision["principal"]),
        (&json!("denied"), &json!("scope"), &json!("reader")),
        "{decision}"
    );
    home.run(&["audit", "verify"]).ends_with(0);
}

#[test]
fn a_scope_that_does_not_exist_makes_the_token_unusable() {
    let home = home(&[("typo", "scopes = ['reed']")]);
    home.run(&["serve", "--listen", "0"])
        .ends_with(2)
        .says("serve.tokens.typo.scopes");
}

#[test]
fn a_new_token_has_the_scopes_that_it_is_given() {
    let home = home(&[]);
    home.run(&["token", "new", "ci", "--scope", "read", "--scope", "admin"])
        .ends_with(0)
        .says("scopes = [\"read\",\"admin\"]");
    home.run(&["token", "new", "ci", "--scope", "root"])
        .ends_with(2)
        .says("`--scope` cannot be used");
}
