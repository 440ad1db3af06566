//! Many processes use one daemon while clients, servers and the daemon itself are killed.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{FakeServer, Tool, is_alive};
use serde_json::json;

use super::{
    gateway::Served,
    home::{Home, Ran, until},
    mcp::Mcp,
};

/// How many rounds there are unless `PEGBOARD_KILLS` says otherwise: each of the three victims three times.
const ROUNDS: usize = 9;

/// How many processes call at once.
const CALLERS: usize = 16;

fn kill(pid: u32) {
    // The victim may have ended by itself.
    let _ = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .stderr(Stdio::null())
        .status();
}

fn callers(home: &Home) -> Vec<Child> {
    let one = |_| {
        let mut command = home.pegboard(&["call", "fx.slow", "-o", "json", "--timeout", "20s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    (0..CALLERS).map(one).collect()
}

#[test]
fn twenty_processes_share_one_daemon_and_survive_every_kill() {
    let home = Home::new();
    let slow = Tool::new("slow").answers_text("done").after(Duration::from_millis(300));
    let fake = FakeServer::new("fx")
        .tool(slow)
        .tool(Tool::new("read").read_only().answers_text("read it"));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let rounds = std::env::var("PEGBOARD_KILLS")
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    let mut served = Some(Served::start(&home, &[]));
    let mut hosts: Vec<Mcp> = (0..4).map(|_| Mcp::start(&home, &[]).0).collect();
    for host in &mut hosts {
        host.ready();
    }
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let before = home.log("fx").spawned.len();
        let calls = home.log("fx").count("tools/call");
        let mut children = callers(&home);
        until("calls have arrived", || home.log("fx").count("tools/call") > calls);
        match round % 3 {
            0 => kill(children[round % CALLERS].id()),
            1 => kill(*home.log("fx").spawned.last().unwrap()),
            _ => {
                let daemon = served.take().unwrap();
                daemon.signal("KILL");
                daemon.code();
                served = Some(Served::start(&home, &[]));
            }
        }
        for child in children.drain(..) {
            check(round, &Ran::end_of(child));
        }
        let answered = home.run(&["call", "fx.read"]);
        answered.ends_with(0);
        assert_eq!(answered.out, "read it\n", "round {round}");
        for host in &mut hosts {
            until("the host goes on", || {
                let message = host.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
                message["result"]["content"][0]["text"] == "read it"
            });
        }
        let log = home.log("fx");
        let alive: Vec<_> = log.spawned.iter().filter(|pid| is_alive(**pid)).collect();
        until("one process is left", || {
            home.log("fx").spawned.iter().filter(|pid| is_alive(**pid)).count() == 1
        });
        if round.is_multiple_of(3) {
            assert_eq!(log.spawned.len(), before, "round {round}: {alive:?}");
        }
    }
    served.take().unwrap().signal("TERM");
    drop(hosts);
    home.assert_gone("fx");
}

/// Every caller is told what became of its call: it is done, it was refused before it ran, or it is lost and may have run.
fn check(round: usize, ran: &Ran) {
    let Some(code) = ran.code else {
        assert_eq!(round % 3, 0, "only a caller was killed: {ran:?}");
        return;
    };
    let document = ran.json();
    let status = document["status"].as_str().unwrap();
    match status {
        "done" => assert_eq!((code, document["text"].as_str()), (0, Some("done")), "{ran:?}"),
        "lost" => assert_eq!(document["outcome"]["may_have_executed"], true, "{ran:?}"),
        "refused" => assert_eq!(document["outcome"]["may_have_executed"], false, "{ran:?}"),
        other => panic!("{other}: {ran:?}"),
    }
    if round.is_multiple_of(3) {
        assert_eq!(status, "done", "a killed caller costs the others nothing: {ran:?}");
    }
}
