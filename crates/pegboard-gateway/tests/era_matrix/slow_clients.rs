//! Clients that do not read their results: what they leave unread is theirs to lose, and costs nobody else anything.
//!
//! They are connected to the socket of the user, whose buffers are small, as `pegboard mcp` is to the daemon.
#![cfg(unix)]

use std::{os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration};

use pegboard::{Config, Env, Format, Pegboard, status::State};
use pegboard_gateway::{Gateway, GatewayHost, Listeners, Monitor};
use pegboard_testkit::{Answer, FakeServer, Tool};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    task::AbortHandle,
    time::{Instant, timeout},
};

use crate::{
    client::{Client, Era},
    questions::process,
};

/// A little less than a message may have. Four of them fill the quarter of the buffers that one server may use.
const LONG: usize = 900 << 10;
const LIMITS: &str = "max_message = '1MiB'\nmasking = false\n";
const BUFFERS: &str = "max_buffered = '16MiB'\n";

/// A client that does not read may wait for 30 s if nobody needs its room.
const PROMPT: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway on a socket, in front of one process.
struct Socket {
    board: Pegboard,
    monitor: Monitor,
    folder: TempDir,
    serving: AbortHandle,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Socket {
    async fn start() -> Self {
        let fake = FakeServer::new("s")
            .tool(Tool::new("long").answers(Answer::Bytes(LONG)))
            .tool(Tool::new("short").answers_text("hi"));
        let config = format!("{BUFFERS}{}{LIMITS}", process(&fake));
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
        board.settle(PATIENCE).await;
        let builder = Gateway::of_board(board.clone()).expect("randomness");
        let (monitor, gateway) = (builder.monitor(), builder.build());
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("a socket");
        let uid = folder.path().metadata().expect("a folder").uid();
        let listeners = Listeners::default().local(listener, uid);
        let serving = tokio::spawn(async move { gateway.serve(listeners, std::future::pending()).await });
        Self {
            board,
            monitor,
            folder,
            serving: serving.abort_handle(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.path()).await.expect("a connection")
    }

    /// A connection with one message per line, as that of `pegboard mcp`.
    async fn lines(&self) -> Lines {
        let mut lines = Lines(BufReader::new(self.connect().await));
        let head = "GET /mcp/s HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: mcp-lines\r\n\r\n";
        lines.0.write_all(head.as_bytes()).await.expect("it reads");
        while lines.line().await != "\r\n" {}
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "lines", "version": "1"}});
        lines
            .send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        assert!(lines.answer(0).await["result"].is_object());
        lines
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        lines
    }

    /// Another client is answered, also with a long result, and what was dropped is counted.
    async fn serves_others(&self, other: &mut Lines) {
        for round in 0..4 {
            for (id, tool, length) in [(2 * round + 1, "short", 2), (2 * round + 2, "long", LONG)] {
                let asked = Instant::now();
                other.call(id, tool).await;
                let answer = other.answer(id).await;
                let text = answer["result"]["content"][0]["text"].as_str();
                assert_eq!(text.map(str::len), Some(length), "{:.300}", answer.to_string());
                assert!(asked.elapsed() < PROMPT, "{tool}: {:?}", asked.elapsed());
            }
        }
        assert_eq!(self.board.status().servers[0].state, State::Ready);
        assert!(self.monitor.read().undelivered > 0, "the dropped results are counted");
    }
}

struct Lines(BufReader<UnixStream>);

impl Lines {
    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.0.write_all(line.as_bytes()).await.expect("it reads");
    }

    async fn call(&mut self, id: u64, tool: &str) {
        let params = json!({"name": tool, "arguments": {}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await;
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.0.read_line(&mut line)).await;
        assert!(
            read.expect("an answer").expect("a line") > 0,
            "the connection is closed"
        );
        line
    }

    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.line().await).expect("JSON");
            if message["id"] == id {
                return message;
            }
        }
    }
}

#[tokio::test]
async fn a_suspended_host_holds_up_nobody_else() {
    let socket = Socket::start().await;
    let (mut suspended, mut other) = (socket.lines().await, socket.lines().await);
    for id in 1..=12 {
        suspended.call(id, "long").await;
    }
    socket.serves_others(&mut other).await;
    socket.board.shutdown().await;
}

#[tokio::test]
async fn clients_that_do_not_read_hold_up_nobody_else() {
    for clients in [12, 30] {
        let socket = Socket::start().await;
        let mut other = socket.lines().await;
        let mut client = Client::connect("", "/mcp/s", Era::Modern, json!({})).await;
        let mut stuck = Vec::new();
        for _ in 0..clients {
            let (request, headers) = client.request("tools/call", json!({"name": "long", "arguments": {}}));
            let body = request.to_string();
            let mut head = "POST /mcp/s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".to_owned();
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            let mut stream = socket.connect().await;
            let message = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(message.as_bytes()).await.expect("it reads");
            stuck.push(stream);
        }
        socket.serves_others(&mut other).await;
        drop(stuck);
        socket.board.shutdown().await;
    }
}
