//! `pegboard mcp`: the board as one MCP server on stdio.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    gateway::initialize,
    home::{Home, until},
};

/// How long a message may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `pegboard mcp`. It is killed when it is dropped.
pub(crate) struct Mcp {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// How many times it has said that the list of tools changed.
    changes: usize,
}

impl Mcp {
    /// Starts it without a handshake.
    pub(crate) fn spawn(home: &Home, options: &[&str]) -> Self {
        let mut command = home.pegboard(&[&["mcp"], options].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            messages,
            changes: 0,
            child,
        }
    }

    /// Starts it and shakes hands as a client of 2025-11-25.
    pub(crate) fn start(home: &Home, options: &[&str]) -> (Self, Value) {
        let mut mcp = Self::spawn(home, options);
        let hello = mcp.exchange(&initialize());
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (mcp, hello["result"].clone())
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    #[track_caller]
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        let message = message.unwrap_or_else(|error| panic!("no message: {error}"));
        self.changes += usize::from(message["method"] == "notifications/tools/list_changed");
        message
    }

    /// Sends a request and reads up to its response.
    #[track_caller]
    fn exchange(&mut self, request: &Value) -> Value {
        self.send(request);
        loop {
            let message = self.receive();
            if message["id"] == request["id"] {
                return message;
            }
        }
    }

    /// Waits for the end of the process, and returns its exit code.
    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let mut ended = None;
        until("it ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Begins a call, whose answer is read with [`Self::answer`].
    pub(crate) fn call(&mut self, tool: &str) {
        let params = json!({"name": tool, "arguments": {}});
        self.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}));
    }

    /// Reads up to the answer to the request with this id.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.answers_to(&[id]).remove(0)
    }

    /// Reads until the requests with these ids are answered, and returns the answers as they came.
    #[track_caller]
    pub(crate) fn answers_to(&mut self, ids: &[u64]) -> Vec<Value> {
        let mut answers = Vec::new();
        while answers.len() < ids.len() {
            let message = self.receive();
            if message["id"].as_u64().is_some_and(|id| ids.contains(&id)) {
                answers.push(message);
            }
        }
        answers
    }

    /// Closes stdin, as a host does that needs it no longer.
    pub(crate) fn close_input(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for the answer to a call; `None` if the process was killed.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Option<Value> {
        loop {
            match self.messages.recv_timeout(PATIENCE) {
                Ok(message) if message["id"] == 3 => return Some(message),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("no answer in {PATIENCE:?}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.exchange(&json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}))
    }

    fn tools(&mut self) -> Vec<String> {
        self.tools_for(&json!({}))
    }

    /// The names of the tools for a client whose requests have this `_meta`.
    pub(crate) fn tools_for(&mut self, meta: &Value) -> Vec<String> {
        let message = self.ask("tools/list", &json!({ "_meta": meta }));
        let tools = message["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{message}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until the server has been listed.
    pub(crate) fn ready(&mut self) -> Vec<String> {
        self.ready_for(&json!({}))
    }

    /// Waits until the server has been listed for a client whose requests have this `_meta`.
    pub(crate) fn ready_for(&mut self, meta: &Value) -> Vec<String> {
        let mut tools = Vec::new();
        until("there are tools", || {
            tools = self.tools_for(meta);
            !tools.is_empty()
        });
        tools
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn home(settings: &str) -> Home {
    let home = Home::new();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"));
    let entry = home.entry("fx", fake, "stop_timeout = '200ms'");
    home.config(&format!("{settings}\n{entry}"));
    home
}

#[test]
fn it_serves_all_tools_and_ends_when_stdin_closes() {
    let home = home("");
    let (mut mcp, _) = Mcp::start(&home, &[]);
    assert_eq!(mcp.ready(), ["fx__read", "fx__write"]);
    let message = mcp.ask("tools/call", &json!({"name": "fx__read", "arguments": {}}));
    assert_eq!(message["result"]["content"][0]["text"], "read it", "{message}");
    drop(mcp.stdin.take());
    assert_eq!(mcp.code(), Some(0));
    home.assert_gone("fx");
}

/// A host may close stdin right after its last request.
#[test]
fn requests_in_flight_are_answered_after_stdin_closes() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("slow").after(Duration::from_secs(2)).answers_text("late"));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    for id in 10..13 {
        let params = json!({"name": "fx__slow", "arguments": {}});
        mcp.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    drop(mcp.stdin.take());
    let mut answered: Vec<_> = (10..13)
        .map(|_| {
            let mut message = mcp.receive();
            while message["id"].is_null() {
                message = mcp.receive();
            }
            assert_eq!(message["result"]["content"][0]["text"], "late", "{message}");
            message["id"].as_u64()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, [Some(10), Some(11), Some(12)]);
    assert_eq!(mcp.code(), Some(0));
    home.assert_gone("fx");
}

#[test]
fn a_signal_ends_the_wait_for_requests_in_flight() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("stuck").after(Duration::from_secs(600)));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let params = json!({"name": "fx__stuck", "arguments": {}});
    mcp.send(&json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": params}));
    until("the server has the call", || home.log("fx").count("tools/call") == 1);
    drop(mcp.stdin.take());
    let sent = Command::new("kill")
        .args(["-TERM", &mcp.child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(mcp.code(), Some(0));
    home.assert_gone("fx");
}

#[test]
fn a_signal_lets_the_calls_in_flight_be_answered() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("slow").answers_text("done").after(Duration::from_secs(1)));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let params = json!({"name": "fx__slow", "arguments": {}});
    mcp.send(&json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": params}));
    until("the server has the call", || home.log("fx").count("tools/call") == 1);
    let sent = Command::new("kill")
        .args(["-TERM", &mcp.child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let answer = loop {
        let message = mcp.receive();
        if message["id"] == 10 {
            break message;
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert_eq!(mcp.code(), Some(0));
    home.assert_gone("fx");
}

#[test]
fn calls_that_outlast_a_signal_are_told_whether_they_may_have_run() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("stuck").after(Duration::from_secs(600)));
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'\nmax_in_flight = 2"));
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let modern = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call = |mcp: &mut Mcp, id: u64, meta: &Value| {
        let params = json!({"name": "fx__stuck", "arguments": {}, "_meta": meta});
        mcp.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    };
    call(&mut mcp, 10, &json!({}));
    call(&mut mcp, 11, &modern);
    until("the server has two calls", || home.log("fx").count("tools/call") == 2);
    // These wait for the first two.
    call(&mut mcp, 12, &json!({}));
    call(&mut mcp, 13, &modern);
    mcp.exchange(&json!({"jsonrpc": "2.0", "id": 14, "method": "ping"}));
    let sent = Command::new("kill")
        .args(["-TERM", &mcp.child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let mut told: Vec<(u64, bool)> = Vec::new();
    while told.len() < 4 {
        let message = mcp.receive();
        if let Some(id) = message["id"].as_u64() {
            let (error, data) = (&message["error"], &message["error"]["data"]);
            assert_eq!(
                (&error["code"], &data["reason"]),
                (&json!(-32010), &json!("stopping")),
                "{message}"
            );
            let may_have_executed = data["may_have_executed"].as_bool().unwrap();
            assert_eq!(data["retry_after"].is_u64(), !may_have_executed, "{message}");
            told.push((id, may_have_executed));
        }
    }
    told.sort_unstable();
    assert_eq!(told, [(10, true), (11, true), (12, false), (13, false)]);
    assert_eq!(mcp.code(), Some(0));
    assert_eq!(home.log("fx").count("tools/call"), 2);
    home.assert_gone("fx");
}

/// A server that starts so slowly that no test waits for it, and does not end by itself.
fn stuck(home: &Home) {
    let fake = FakeServer::new("fx")
        .fault(Fault::SlowStart { ms: 600_000 })
        .fault(Fault::IgnoresEof)
        .fault(Fault::OutlivesParent);
    home.config(&home.entry("fx", fake, "stop_timeout = '200ms'"));
}

#[test]
fn both_eras_are_answered_before_any_server_is_ready() {
    let home = Home::new();
    stuck(&home);
    let (mut mcp, described) = Mcp::start(&home, &[]);
    assert_eq!(described["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(mcp.tools(), [""; 0], "the list does not wait for long");
    let found = discover(&mut Mcp::spawn(&home, &[]));
    assert_eq!(found["supportedVersions"][0], "2026-07-28", "{found}");
}

fn discover(mcp: &mut Mcp) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    mcp.ask("server/discover", &json!({ "_meta": meta }))["result"].clone()
}

/// Hosts give a server about 10 seconds to start.
#[test]
fn one_server_is_described_in_time_even_if_it_is_not_ready() {
    let home = Home::new();
    stuck(&home);
    let mut modern = Mcp::spawn(&home, &["--server", "fx"]);
    let (_mcp, described) = Mcp::start(&home, &["--server", "fx"]);
    assert_eq!(described["serverInfo"]["name"], "fx", "{described}");
    assert_eq!(described["capabilities"]["tools"]["listChanged"], true, "{described}");
    let found = discover(&mut modern);
    assert_eq!(found["capabilities"], described["capabilities"], "{found}");
}

#[test]
fn a_client_is_told_of_the_tools_of_a_server_that_starts_slowly() {
    let home = Home::new();
    let fake = FakeServer::new("slow")
        .tool(Tool::new("late"))
        .fault(Fault::SlowStart { ms: 3000 });
    home.config(&home.entry("slow", fake, ""));
    let (mut mcp, _) = Mcp::start(&home, &[]);
    if mcp.tools().is_empty() {
        while mcp.changes == 0 {
            mcp.receive();
        }
    }
    assert_eq!(mcp.tools(), ["slow__late"]);
}

/// Clients start a server to see what it is, and kill it.
#[test]
fn a_killed_process_leaves_nothing_behind() {
    let home = Home::new();
    stuck(&home);
    let (mut mcp, _) = Mcp::start(&home, &[]);
    until("the server is started", || {
        home.path("fx.log").exists() && !home.log("fx").spawned.is_empty()
    });
    mcp.child.kill().unwrap();
    mcp.child.wait().unwrap();
    home.assert_gone("fx");
}

#[test]
fn a_signal_ends_it_with_code_0() {
    let home = home("");
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    let sent = Command::new("kill")
        .args(["-TERM", &mcp.child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(mcp.code(), Some(0));
    home.assert_gone("fx");
}

#[test]
fn it_serves_one_view_or_one_server() {
    let home = home("[views.reading]\ndescription = 'Only to read.'\ntools = ['read']");
    let (mut mcp, described) = Mcp::start(&home, &["--view", "reading"]);
    assert!(
        described["instructions"]
            .as_str()
            .unwrap_or_default()
            .contains("Only to read."),
        "{described}"
    );
    assert_eq!(mcp.ready(), ["fx__read"]);
    let (mut mcp, _) = Mcp::start(&home, &["--server", "fx"]);
    assert_eq!(mcp.ready(), ["read", "write"], "a server has its own names");
}

#[test]
fn a_view_or_server_that_does_not_exist_is_named() {
    let home = home("[views.reading]\n");
    home.run(&["mcp", "--view", "writing"])
        .ends_with(2)
        .says("there is no view `writing`")
        .says("reading");
    home.run(&["mcp", "--server", "nobody"])
        .ends_with(2)
        .says("there is no server `nobody`");
    home.run(&["mcp", "--view", "reading", "--server", "fx"])
        .ends_with(2)
        .says("either a view or a server");
}

#[test]
fn without_any_config_it_serves_the_demo_servers() {
    let home = Home::new();
    let (mut mcp, _) = Mcp::start(&home, &[]);
    assert!(mcp.ready().contains(&"demo__calculate".to_owned()));
}
