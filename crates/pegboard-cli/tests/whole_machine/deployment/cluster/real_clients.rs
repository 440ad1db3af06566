//! Clients of real SDKs that do not shake hands again, at replicas that are restarted and killed one after the other.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use super::{Cluster, fx, store::folder};
use crate::gateway_clients::scratch::{node, peers, source};

/// A client with one session.
struct Session {
    name: &'static str,
    child: Child,
    tools: ChildStdin,
    results: BufReader<ChildStdout>,
}

impl Session {
    fn open(name: &'static str, mut command: Command, address: &str, version: &str) -> Self {
        let url = format!("http://{address}/mcp");
        command.args([url.as_str(), "pgb_ada", version]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self {
            name,
            tools: child.stdin.take().unwrap(),
            results: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    #[track_caller]
    fn calls_a_tool(&mut self, when: &str) {
        let mut line = String::new();
        let asked = writeln!(self.tools, "fx__read").and_then(|()| self.results.read_line(&mut line));
        assert!(asked.is_ok(), "{} {when}: {asked:?}", self.name);
        assert_eq!(line.trim(), "read it", "{} {when}", self.name);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn real_clients_keep_their_sessions_while_replicas_are_restarted_and_killed() {
    let (_folder, store) = folder();
    let mut cluster = Cluster::start(2, &store, fx, "stop_timeout = '200ms'");
    let script = |program: &str, script: &str| {
        let mut command = Command::new(Path::new(program));
        command.arg(source(&format!("clients/{script}")));
        command
    };
    let python = peers("python-legacy/bin/python");
    let mut sessions = [
        Session::open(
            "the Python SDK 1.x",
            script(&python, "session_client.py"),
            &cluster.address,
            "",
        ),
        Session::open(
            "the TypeScript SDK 1.x",
            script(&node(), "session_client.mjs"),
            &cluster.address,
            "1",
        ),
        Session::open(
            "the TypeScript SDK 2.x",
            script(&node(), "session_client.mjs"),
            &cluster.address,
            "2",
        ),
    ];
    let mut all_call = |when: &str| sessions.iter_mut().for_each(|session| session.calls_a_tool(when));
    all_call("at first");
    for index in 0..2 {
        cluster.stop(index);
        all_call("with one replica");
        cluster.restart(index);
        all_call("after a rolling restart");
    }
    for index in 0..2 {
        cluster.kill(index);
        all_call("after a replica was killed");
        cluster.restart(index);
        all_call("after it was started again");
    }
}
