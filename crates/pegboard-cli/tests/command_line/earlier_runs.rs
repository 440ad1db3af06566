//! What an earlier run has seen of a server is listed while the server hangs or is dead: by `pegboard mcp`, with and without the daemon, and by
//! `pegboard serve`.

use std::os::unix::fs::PermissionsExt as _;

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
    mcp::Mcp,
};

const VIEW: &str = "[views.tight]\nservers = ['fx']\n";

/// A home with a server that works in its first process, and is `broken` from the second one on.
fn home(broken: impl FnOnce(FakeServer) -> FakeServer) -> Home {
    let home = Home::new();
    let fake = || FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"));
    let fake = fake().then_after(1, broken(fake()));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'\nconnect_timeout = '2m'");
    home.config(&format!("{entry}\n{VIEW}"));
    home
}

fn hanging(fake: FakeServer) -> FakeServer {
    fake.fault_on(When::method("initialize"), Fault::NeverAnswers)
}

fn dead(fake: FakeServer) -> FakeServer {
    fake.fault(Fault::ExitsAtStart {
        code: 1,
        stderr: "no licence".to_owned(),
    })
}

/// The first list that a new client gets, for a client of either era.
fn first_list(home: &Home, options: &[&str], is_modern: bool) -> Vec<String> {
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    match is_modern {
        true => Mcp::spawn(home, options).tools_for(&modern),
        false => Mcp::start(home, options).0.tools_for(&json!({})),
    }
}

#[test]
fn mcp_lists_at_once_what_its_last_run_has_seen() {
    for broken in [hanging, dead] {
        let home = home(broken);
        assert_eq!(Mcp::start(&home, &[]).0.ready(), ["fx__read"]);
        for (options, tool) in [
            (&[][..], "fx__read"),
            (&["--view", "tight"], "fx__read"),
            (&["--server", "fx"], "read"),
        ] {
            for is_modern in [false, true] {
                assert_eq!(first_list(&home, options, is_modern), [tool], "{options:?} {is_modern}");
            }
        }
    }
}

#[test]
fn a_call_of_a_tool_that_is_only_known_waits_for_its_server_or_says_why_it_fails() {
    let slow = home(|fake| fake.fault(Fault::SlowStart { ms: 1500 }));
    assert_eq!(Mcp::start(&slow, &[]).0.ready(), ["fx__read"]);
    let call = json!({"name": "fx__read", "arguments": {}});
    let (mut mcp, _) = Mcp::start(&slow, &[]);
    let called = mcp.ask("tools/call", &call);
    assert_eq!(called["result"]["content"][0]["text"], "read it", "{called}");

    let broken = home(dead);
    assert_eq!(Mcp::start(&broken, &[]).0.ready(), ["fx__read"]);
    let (mut mcp, _) = Mcp::start(&broken, &[]);
    let called = mcp.ask("tools/call", &call);
    assert_eq!(called["result"]["isError"], true, "{called}");
    let text = called["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no licence"), "{text}");
}

#[test]
fn mcp_with_a_new_daemon_lists_at_once_what_it_has_seen_through_the_last_one() {
    for broken in [hanging, dead] {
        let home = home(broken);
        let served = Served::start(&home, &[]);
        assert_eq!(Mcp::start(&home, &[]).0.ready(), ["fx__read"]);
        assert_eq!(home.log("fx").spawned.len(), 1, "it was seen through the daemon");
        drop(served);
        let _served = Served::start(&home, &[]);
        for is_modern in [false, true] {
            assert_eq!(first_list(&home, &[], is_modern), ["fx__read"]);
        }
    }
}

#[test]
fn serve_lists_at_once_what_its_last_run_has_seen() {
    let home = home(hanging);
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("fx__read");
    drop(served);
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("fx__read");
}

/// They ask the servers themselves.
#[test]
fn commands_do_not_take_what_an_earlier_run_has_seen_for_what_is_there() {
    let home = home(dead);
    assert_eq!(Mcp::start(&home, &[]).0.ready(), ["fx__read"]);
    let listed: Value = home.run(&["tools", "-o", "json"]).json();
    assert!(!listed.to_string().contains("fx__read"), "{listed}");
}

#[test]
fn what_was_seen_is_in_a_file_that_only_the_user_can_read() {
    let home = home(hanging);
    assert_eq!(Mcp::start(&home, &[]).0.ready(), ["fx__read"]);
    let folder = home.path(".cache/pegboard/catalogs");
    let files = || std::fs::read_dir(&folder).map_or(0, |files| files.count());
    until("it is stored", || files() == 1);
    for file in std::fs::read_dir(&folder).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
