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
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    task::AbortHandle,
    time::{Instant, timeout},
};

use crate::era_matrix::{
    client::{Client, Era},
    questions::process,
};

/// A little less than a message may have. Four of them fill the quarter of the buffers that one server may use.
const LONG: usize = 900 << 10;
const LIMITS: &str = "max_message = '1MiB'\nmasking = false\n";
const BUFFERS: &str = "max_buffered = '16MiB'\n";

/// How many short and long calls another client makes.
const CALLS: u64 = 8;

/// A client that does not read may wait for 30 s if nobody needs its room.
const PROMPT: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);
/// What a busy machine may add to a call. A client that waits for the room of another waits for 10 s.
const SLACK: Duration = Duration::from_secs(3);

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
        let builder = Gateway::for_board(board.clone()).expect("randomness");
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

    /// Another client is answered, also with a long result. Returns how long its short calls took, sorted.
    async fn serves_others(&self, other: &mut Lines, first: u64) -> Vec<Duration> {
        let mut times = Vec::new();
        for round in 0..CALLS {
            let id = first + 2 * round;
            for (id, tool, length) in [(id, "short", 2), (id + 1, "long", LONG)] {
                let asked = Instant::now();
                other.call(id, tool).await;
                let answer = other.answer(id).await;
                let text = answer["result"]["content"][0]["text"].as_str();
                assert_eq!(text.map(str::len), Some(length), "{:.300}", answer.to_string());
                assert!(asked.elapsed() < PROMPT, "{tool}: {:?}", asked.elapsed());
                if tool == "short" {
                    times.push(asked.elapsed());
                }
            }
        }
        assert_eq!(self.board.status().servers[0].state, State::Ready);
        times.sort_unstable();
        times
    }

    /// Another client is answered as fast as without those that do not read, whom `stall` makes.
    async fn costs_others_nothing(&self, stall: impl Future<Output = ()>) {
        let mut other = self.lines().await;
        let before = self.serves_others(&mut other, 1).await;
        stall.await;
        let after = self.serves_others(&mut other, 1 + 2 * CALLS).await;
        let (median, usual) = (after[after.len() / 2], before[before.len() / 2]);
        assert!(median < usual * 20 + SLACK, "{before:?} became {after:?}");
    }

    /// Waits until connections of clients that do not read were closed.
    async fn until_dropped(&self) {
        let counted = async {
            while self.monitor.read().undelivered == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, counted).await.expect("dropped results are counted");
    }

    /// Clients that have each called the tool with a long result and do not read it.
    async fn stuck(&self, count: usize) -> Vec<UnixStream> {
        let mut client = Client::connect("", "/mcp/s", Era::Modern, json!({})).await;
        let mut stuck = Vec::new();
        for _ in 0..count {
            let (request, headers) = client.request("tools/call", json!({"name": "long", "arguments": {}}));
            let body = request.to_string();
            let mut head = "POST /mcp/s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".to_owned();
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            let mut stream = self.connect().await;
            let message = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(message.as_bytes()).await.expect("it reads");
            stuck.push(stream);
        }
        stuck
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
    let mut suspended = socket.lines().await;
    let stall = async {
        for id in 1..=12 {
            suspended.call(id, "long").await;
        }
    };
    socket.costs_others_nothing(stall).await;
    socket.until_dropped().await;
    socket.board.shutdown().await;
}

#[tokio::test]
async fn clients_that_do_not_read_hold_up_nobody_else() {
    for clients in [12, 30] {
        let socket = Socket::start().await;
        let mut stuck = Vec::new();
        let stall = async { stuck = socket.stuck(clients).await };
        socket.costs_others_nothing(stall).await;
        socket.until_dropped().await;
        drop(stuck);
        socket.board.shutdown().await;
    }
}

/// They are more than the connection of the server may hold.
#[tokio::test]
async fn results_that_fit_the_room_of_clients_wait_for_them_and_for_nobody_else() {
    let socket = Socket::start().await;
    let mut stuck = Vec::new();
    let stall = async { stuck = socket.stuck(8).await };
    socket.costs_others_nothing(stall).await;
    for stream in stuck {
        let mut lines = Lines(BufReader::new(stream));
        while lines.line().await != "\r\n" {}
        let mut body = vec![0; LONG];
        let read = timeout(PATIENCE, lines.0.read_exact(&mut body)).await;
        read.expect("the result").expect("nothing was dropped");
    }
    assert_eq!(socket.monitor.read().undelivered, 0);
    socket.board.shutdown().await;
}
