//! Commands without a config use what hosts on this machine have, after a person has agreed.

use std::fs;

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A host's file with these servers, in the form that most hosts have.
pub(super) fn file(servers: &[(&str, Value)]) -> String {
    let servers: serde_json::Map<String, Value> = servers
        .iter()
        .map(|(name, entry)| ((*name).to_owned(), entry.clone()))
        .collect();
    json!({"mcpServers": servers}).to_string()
}

/// The entry that starts a fake server, and the log of which says whether it was.
pub(super) fn entry(home: &Home, name: &str) -> Value {
    let fake = FakeServer::new(name).tool(Tool::new("echo").echoes());
    let command = home.command_of(name, fake);
    let (program, args) = command.split_once(' ').unwrap();
    json!({"command": program, "args": args.split(' ').collect::<Vec<_>>()})
}

/// Two hosts that share one server, and have another one each.
pub(super) fn two_hosts() -> Home {
    let home = Home::new();
    let (shared, own, other) = (entry(&home, "shared"), entry(&home, "own"), entry(&home, "other"));
    home.write(".cursor/mcp.json", &file(&[("shared", shared.clone()), ("own", own)]));
    let pegboard = json!({"command": "pegboard", "args": ["mcp"]});
    home.write(
        ".claude.json",
        &file(&[("common", shared), ("own", other), ("pegboard", pegboard)]),
    );
    home
}

fn was_started(home: &Home, name: &str) -> bool {
    home.path(&format!("{name}.log")).exists()
}

#[test]
fn servers_of_hosts_are_listed_with_their_hosts_and_nothing_is_started() {
    let home = two_hosts();
    let files = |home: &Home| [".cursor/mcp.json", ".claude.json"].map(|file| fs::read(home.path(file)).unwrap());
    let before = files(&home);
    let listed = home.run(&["list"]);
    listed.ends_with(0).says("pegboard init");
    // Equal servers are one, under the name that was found first; conflicting names get a number, as an import gives them.
    assert!(
        listed.out.contains("own (Cursor)") || listed.out.contains("own-2 (Cursor)"),
        "{listed:?}"
    );
    assert_eq!(listed.out.matches("not approved").count(), 3, "{listed:?}");
    assert!(
        !listed.out.contains("demo") && !listed.out.contains("pegboard "),
        "{listed:?}"
    );
    let document = home.run(&["list", "-o", "json"]).ends_with(0).json();
    let hosts = document["from_hosts"].as_object().unwrap();
    let of_two = hosts
        .values()
        .filter(|server| server["hosts"].as_array().unwrap().len() == 2);
    assert_eq!((hosts.len(), of_two.count()), (3, 1), "{document}");
    assert!(!["shared", "own", "other"].iter().any(|name| was_started(&home, name)));
    assert_eq!(files(&home), before, "the hosts' files are only read");
}

#[test]
fn where_nobody_can_be_asked_they_are_named_and_not_started() {
    let home = two_hosts();
    for command in [&["tools"][..], &["resources"], &["prompts"]] {
        let ran = home.run(command);
        ran.ends_with(5)
            .says("not approved to start")
            .says("(Cursor)")
            .says("(Claude Code)")
            .says("pegboard init")
            .says("--trust");
    }
    let status = home.run(&["status", "-o", "json"]).ends_with(5).json();
    assert_eq!(status["servers"][0]["state"], "pending_trust", "{status}");
    let tools = home.run(&["tools", "-o", "json"]).ends_with(5).json();
    assert_eq!(tools["unavailable"].as_array().unwrap().len(), 3, "{tools}");
    assert_eq!(tools["unavailable"][0]["state"], "pending_trust", "{tools}");
    home.run(&["call", "common.echo", "text=hi"]).ends_with(5);
    assert!(!["shared", "own", "other"].iter().any(|name| was_started(&home, name)));
}

#[test]
fn trust_for_one_run_starts_them_and_a_call_starts_only_its_own() {
    let home = two_hosts();
    let document = home.run(&["list", "-o", "json"]).json();
    let shared = document["from_hosts"].as_object().unwrap().iter();
    let shared = shared
        .clone()
        .find(|(_, server)| server["hosts"].as_array().unwrap().len() == 2);
    let tool = format!("{}.echo", shared.unwrap().0);
    home.run(&["--trust", "call", &tool, "text=hi"])
        .ends_with(0)
        .prints("hi");
    assert!(was_started(&home, "shared") && !was_started(&home, "own") && !was_started(&home, "other"));
    let tools = home.run(&["--trust", "tools"]);
    tools
        .ends_with(0)
        .prints("(Cursor) (1 tool)")
        .prints("(Claude Code) (1 tool)");
    // It was for those runs only.
    home.run(&["tools"]).ends_with(5);
}

#[test]
fn doctor_says_once_how_servers_of_hosts_are_approved() {
    let home = two_hosts();
    let found = home.run(&["doctor"]);
    found.ends_with(1).prints("3 problems with 3 servers");
    assert_eq!(found.out.matches("pegboard init").count(), 1, "{found:?}");
    assert_eq!(found.out.matches("host-server-unapproved").count(), 1, "{found:?}");
    let document = home.run(&["doctor", "-o", "json"]).json();
    assert_eq!(document["servers"].as_array().unwrap().len(), 3, "{document}");
}

#[test]
fn a_secret_that_a_host_would_ask_for_needs_no_change_of_its_file() {
    let home = Home::new();
    let vscode = json!({
        "inputs": [{"type": "promptString", "id": "api_key", "description": "API key", "password": true}],
        "servers": {"fx": {"command": "x", "env": {"API_KEY": "${input:api_key}"}}},
    });
    home.write(".config/Code/User/mcp.json", &vscode.to_string());
    for command in [&["doctor"][..], &["call", "fx.echo"]] {
        let ran = home.run(&[&["--trust"], command].concat());
        let all = format!("{}{}", ran.out, ran.err);
        assert!(
            all.contains("`pegboard secret set API_KEY` stores it, which is enough") && !all.contains("${secret:"),
            "{ran:?}"
        );
    }
}

#[test]
fn every_command_about_a_server_knows_those_of_hosts() {
    let home = Home::new();
    home.write(".cursor/mcp.json", &file(&[("fx", entry(&home, "fx"))]));
    let unapproved: [&[&str]; 3] = [&["logs", "fx"], &["generate", "ts", "fx"], &["login", "fx"]];
    for command in unapproved {
        home.run(command).ends_with(5).says("not approved");
    }
    home.run(&["get", "fx"]).ends_with(0).prints("not approved");
    home.run(&["login", "--list"]).ends_with(0);
    home.run(&["doctor"]).ends_with(1).prints("not approved");
    assert!(!was_started(&home, "fx"));

    home.run(&["--trust", "doctor", "fx"]).ends_with(0).prints("1 tool");
    home.run(&["--trust", "generate", "ts", "fx"])
        .ends_with(0)
        .prints("echo");
    home.run(&["--trust", "logs", "fx"]).ends_with(0);
    home.run(&["--trust", "get", "fx"])
        .ends_with(0)
        .prints("~/.cursor/mcp.json");
}

#[test]
fn the_demo_server_is_for_machines_without_servers_and_a_config_reads_no_host() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        &file(&[("pegboard", json!({"command": "pegboard", "args": ["mcp"]}))]),
    );
    home.run(&["list"]).ends_with(0).prints("demo");
    // With a config, not even a broken file of a host is noticed.
    home.write(".cursor/mcp.json", "{ broken");
    home.config("[servers]\n");
    let ran = home.run(&["list", "-o", "json"]);
    let document = ran.ends_with(0).json();
    assert!(
        document.get("from_hosts").is_none() && !ran.err.contains("cursor"),
        "{ran:?}"
    );
}

#[test]
fn doors_for_hosts_never_serve_the_servers_of_hosts_and_say_so() {
    let home = two_hosts();
    let ran = Ran::fed(home.pegboard(&["--trust", "mcp"]), "");
    ran.ends_with(0)
        .says("are not served without a config")
        .says("pegboard init");
    assert!(!["shared", "own", "other"].iter().any(|name| was_started(&home, name)));
}

#[test]
fn the_secrets_of_a_host_are_shown_nowhere() {
    let home = Home::new();
    let mut server = entry(&home, "fx");
    server["env"] = json!({"GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"});
    server["args"]
        .as_array_mut()
        .unwrap()
        .push(json!("--api-key=sk-s3cr3t-c4nary-0123456789"));
    home.write(".cursor/mcp.json", &file(&[("fx", server)]));
    for command in [
        &["list"][..],
        &["list", "-o", "json"],
        &["tools"],
        &["status", "-o", "json"],
        &["tools", "-o", "json"],
    ] {
        let ran = home.run(command);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains("ghp_0123") && !all.contains("c4nary"), "{ran:?}");
        assert!(all.contains("fx"), "{ran:?}");
    }
}

#[test]
fn whoever_names_the_demo_server_gets_it() {
    let home = two_hosts();
    home.run(&["call", "demo.calculate", "6 * 7"]).ends_with(0).prints("42");
    home.run(&["tools", "demo.*"]).ends_with(0).prints("demo.calculate");
    assert!(!["shared", "own", "other"].iter().any(|name| was_started(&home, name)));
}

#[test]
fn nothing_of_a_server_is_expanded_before_a_person_has_agreed() {
    let home = Home::new();
    let needs = json!({"command": "x", "env": {"TOKEN": "${env:NOT_SET_HERE_TOKEN}"}});
    home.write(".cursor/mcp.json", &file(&[("fx", needs)]));
    let ran = home.run(&["tools"]);
    ran.ends_with(5).says("not approved to start: fx (Cursor)");
    assert!(!ran.err.contains("NOT_SET_HERE"), "{ran:?}");
    home.run(&["--trust", "tools"]).ends_with(2).says("NOT_SET_HERE_TOKEN");
}
