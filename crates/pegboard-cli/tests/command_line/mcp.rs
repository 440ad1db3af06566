//! `pegboard mcp`: the board as one MCP server on stdio.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::initialize,
    home::{Home, until},
};

/// A running `pegboard mcp`. It is killed when it is dropped.
struct Mcp {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Mcp {
    /// Starts it and shakes hands as a client of 2025-11-25.
    fn start(home: &Home, options: &[&str]) -> (Self, Value) {
        let mut command = home.pegboard(&[&["mcp"], options].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut mcp = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        let hello = mcp.exchange(&initialize());
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (mcp, hello["result"].clone())
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and reads up to its response.
    fn exchange(&mut self, request: &Value) -> Value {
        self.send(request);
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "stdout has ended");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            if message["id"] == request["id"] {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.exchange(&json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}))
    }

    fn tools(&mut self) -> Vec<String> {
        let message = self.ask("tools/list", &json!({}));
        let tools = message["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{message}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Waits until the server has been listed.
    fn ready(&mut self) -> Vec<String> {
        let mut tools = Vec::new();
        until("there are tools", || {
            tools = self.tools();
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
    assert_eq!(mcp.child.wait().unwrap().code(), Some(0));
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
    assert_eq!(mcp.child.wait().unwrap().code(), Some(0));
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
