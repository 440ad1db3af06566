//! The socket for the processes of one user: who is let in, what needs no token, and one message per line.

use std::{os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration};

use pegboard_gateway::{Listeners, Token};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::http::{
    client::{BOTH, Http, JSON, call},
    service::{Running, start_with},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A gateway with a token on its address, and a socket for one user.
struct Local {
    running: Running,
    folder: TempDir,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Local {
    /// Serves the user whose id is that of this process plus `other`.
    async fn start(other: u32) -> Self {
        let digest = pegboard::config::TokenDigest::compute("secret").to_bytes();
        let running = start_with(|builder| builder.token(Token::new("alice", digest))).await;
        let folder = tempfile::tempdir().unwrap();
        let uid = folder.path().metadata().unwrap().uid();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let listeners = Listeners::default().local(listener, uid + other);
        let stop = CancellationToken::new();
        let (gateway, stopped) = (running.gateway.clone(), stop.clone().cancelled_owned());
        let serving = tokio::spawn(async move { gateway.serve(listeners, stopped).await.unwrap() });
        Self {
            running,
            folder,
            stop,
            serving,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.unwrap()
    }

    async fn lines(&self) -> Lines {
        let mut stream = self.connect().await;
        let head = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: mcp-lines\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut lines = Lines(BufReader::new(stream));
        assert_eq!(lines.next().await.as_deref(), Some("HTTP/1.1 101 Switching Protocols"));
        while lines.next().await.is_some_and(|line| !line.is_empty()) {}
        lines
    }
}

struct Lines(BufReader<UnixStream>);

impl Lines {
    async fn send(&mut self, message: &str) {
        self.0.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        timeout(PATIENCE, self.0.read_line(&mut line)).await.unwrap().unwrap();
        (!line.is_empty()).then(|| line.trim_end().to_owned())
    }

    async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.next().await.unwrap()).unwrap()
    }

    async fn initialize(&mut self) {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string())
            .await;
        assert_eq!(self.receive().await["id"], 0);
        self.send(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#)
            .await;
    }
}

#[tokio::test]
async fn a_process_of_another_user_is_refused_at_the_local_socket() {
    let local = Local::start(1).await;
    let mut stream = local.connect().await;
    // The gateway may have closed it already.
    let _ = stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await;
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty(), "{read:?}: {}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_client_of_the_local_socket_needs_no_token_and_sends_one_message_per_line() {
    let local = Local::start(0).await;
    let mut lines = local.lines().await;
    lines.initialize().await;
    lines.send(&call(1, "who")).await;
    let answer = lines.receive().await;
    assert_eq!(
        answer["result"]["content"][0]["text"], "nobody in particular",
        "{answer}"
    );
    lines.send("").await;
    lines.send("nonsense").await;
    assert_eq!(lines.receive().await["error"]["code"], -32700);
}

#[tokio::test]
async fn what_is_for_the_local_socket_is_not_served_at_an_address() {
    let local = Local::start(0).await;
    let mut http = Http::connect(local.running.address).await;
    let token = ("authorization", "Bearer secret");
    let approved = http
        .ask("POST", "/approved/mcp/x", &[BOTH, JSON, token], &call(1, "who"))
        .await;
    assert_eq!(approved.status, 404);
    let upgrade = [("connection", "upgrade"), ("upgrade", "mcp-lines"), token];
    let refused = http.ask("GET", "/mcp", &upgrade, "").await;
    assert_ne!(refused.status, 101);
}

#[tokio::test]
async fn calls_end_with_their_connection_and_are_answered_before_a_shutdown() {
    let local = Local::start(0).await;
    let mut gone = local.lines().await;
    gone.initialize().await;
    gone.send(&call(1, "wait")).await;
    local.running.probe.until_waiting(1).await;
    drop(gone);
    local.running.probe.until_waiting(0).await;
    let mut lines = local.lines().await;
    lines.initialize().await;
    lines.send(&call(2, "wait")).await;
    local.running.probe.until_waiting(1).await;
    assert!(local.running.gateway.traffic().open >= 1);
    local.stop.cancel();
    local.running.probe.release.notify_waiters();
    assert_eq!(lines.receive().await["result"]["content"][0]["text"], "released");
    assert_eq!(
        lines.next().await,
        None,
        "the connection is closed after the last answer"
    );
    timeout(PATIENCE, local.serving).await.unwrap().unwrap();
}
