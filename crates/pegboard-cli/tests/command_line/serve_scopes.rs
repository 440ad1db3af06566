//! Scopes of tokens at `pegboard serve`: what their holders may do, and what the audit log has of the rest.

use std::fs;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{gateway::Served, home::Home};

/// A home with a server, an audit log, and tokens with these scopes.
fn home(tokens: &[(&str, &str)]) -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    let mut config = format!("audit = '{}'\n", home.path("audit.jsonl").display());
    for (name, more) in tokens {
        let digest = pegboard::config::TokenDigest::of(&format!("pgb_{name}"));
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
