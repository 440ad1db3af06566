//! A host whose daemon is away: its calls wait for the next daemon, up to ten seconds.

use std::{
    thread,
    time::{Duration, SystemTime},
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{gateway::Served, home::Home, mcp::Mcp};

/// How long the daemon is away: past several attempts to reach it.
const OUTAGE: Duration = Duration::from_secs(5);

/// How long a call waits for a daemon.
const WAIT: Duration = Duration::from_secs(10);

fn home() -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("write").answers_text("wrote it"));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    home
}

fn send(host: &mut Mcp, id: u64) {
    let params = json!({"name": "fx__write", "arguments": {}});
    host.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
}

#[track_caller]
fn assert_written(answer: &Value) {
    assert_eq!(answer["result"]["content"][0]["text"], "wrote it", "{answer}");
}

/// A host that has used its daemon, which then got this signal and has ended.
fn without_daemon(home: &Home, signal: &str) -> Mcp {
    let daemon = Served::start(home, &[]);
    let (mut host, _) = Mcp::start(home, &[]);
    host.ready();
    send(&mut host, 10);
    assert_written(&host.answer_to(10));
    daemon.signal(signal);
    daemon.code();
    host
}

#[test]
fn calls_of_a_host_wait_for_the_next_daemon() {
    for signal in ["KILL", "TERM"] {
        let home = home();
        let mut host = without_daemon(&home, signal);
        // One call finds the connection just lost, the other one finds the host between two attempts.
        send(&mut host, 11);
        thread::sleep(OUTAGE);
        send(&mut host, 12);
        let daemon = Served::start(&home, &[]);
        for answer in host.answers_to(&[11, 12]) {
            assert_written(&answer);
        }
        assert_eq!(
            home.log("fx").count("tools/call"),
            3,
            "{signal}: each call has run once"
        );
        drop(daemon);
    }
}

#[test]
fn a_host_waits_for_every_daemon_that_is_killed() {
    let home = home();
    let mut host = without_daemon(&home, "KILL");
    for id in 11..15 {
        send(&mut host, id);
        let daemon = Served::start(&home, &[]);
        assert_written(&host.answer_to(id));
        daemon.signal("KILL");
        daemon.code();
    }
    assert_eq!(home.log("fx").count("tools/call"), 5);
}

#[test]
fn a_call_of_a_host_without_a_daemon_is_refused_after_ten_seconds() {
    let home = home();
    let mut host = without_daemon(&home, "KILL");
    for id in [11, 12] {
        let began = SystemTime::now();
        send(&mut host, id);
        let refused = host.answer_to(id);
        let waited = began.elapsed().unwrap();
        // It ends before, if the next attempt would begin after that time.
        assert!(waited > WAIT / 2, "{waited:?}: {refused}");
        assert!(waited < 3 * WAIT, "{waited:?}");
        let result = &refused["result"];
        assert_eq!(result["_meta"]["pegboard/may_have_executed"], false, "{refused}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("the daemon has ended"), "{refused}");
    }
    assert_eq!(home.log("fx").count("tools/call"), 1);
}
