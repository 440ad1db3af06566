//! `session_cleanup_url`: a server is told when the session of an agent has ended.

use std::{net::SocketAddr, sync::Arc};

use pegboard::{Config, Env, Format, Kind, Pegboard, View};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{Era, NetHandle};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{principals::fixtures::*, support::*};

/// Answers DELETE requests with a status, and passes all other connections to a server.
struct Front {
    address: SocketAddr,
    /// The heads of the DELETE requests, in lower case.
    deleted: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Front {
    async fn before(server: Option<SocketAddr>, status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let deleted: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = deleted.clone();
        let serving = async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, server, status, seen.clone()));
            }
        };
        Self {
            address,
            deleted,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    fn deleted(&self) -> Vec<String> {
        self.deleted.lock().clone()
    }

    /// The first lines of the requests.
    fn targets(&self) -> Vec<String> {
        let first = |head: &String| head.lines().next().unwrap().to_owned();
        self.deleted().iter().map(first).collect()
    }
}

async fn serve(mut stream: TcpStream, server: Option<SocketAddr>, status: u16, deleted: Arc<Mutex<Vec<String>>>) {
    let mut first = [0; 16];
    let is_delete =
        matches!(stream.peek(&mut first).await, Ok(length) if first[..length].starts_with(b"DELETE /sessions"));
    if let (false, Some(server)) = (is_delete, server) {
        if let Ok(mut other) = TcpStream::connect(server).await {
            let _ = copy_bidirectional(&mut stream, &mut other).await;
        }
        return;
    }
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    deleted.lock().push(String::from_utf8(head).unwrap().to_lowercase());
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(answer.as_bytes()).await;
}

async fn server() -> NetHandle {
    fake(Era::Modern).serve_http().await.unwrap()
}

/// A board with a server behind `front`, and these settings.
fn board(front: &Front, settings: &str) -> Pegboard {
    let url = format!("http://{}/mcp", front.address);
    let text = format!(
        "[servers.fx]\nurl = '{url}'\nstart = 'lazy'\nbearer_token = 'c4nary-t0ken'\nheaders = {{ X-Session-ID = '{{{{SESSION_ID}}}}' }}\n{settings}\n"
    );
    let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    Pegboard::open(loaded.config)
}

async fn use_server(board: &Pegboard, name: &str) -> pegboard::Toolset {
    let tools = board.toolset_with(View::new().name(name));
    assert_eq!(call(&tools, "fx.act", json!({})).await.outcome.kind(), Kind::Ok);
    tools
}

#[tokio::test]
async fn the_end_of_a_view_is_told_once_with_its_credentials() {
    let server = server().await;
    let front = Front::before(Some(server.address()), 204).await;
    let url = format!("http://{}/sessions/{{{{SESSION_ID}}}}", front.address);
    let board = board(&front, &format!("session_cleanup_url = '{url}'"));
    let unused = board.toolset_with(View::new().name("unused"));
    let one = use_server(&board, "one").await;
    let _two = use_server(&board, "two/x").await;
    unused.close().await;
    one.close().await;
    assert_eq!(front.targets(), ["delete /sessions/one http/1.1"]);
    drop(one);
    board.shutdown().await;
    assert_eq!(
        front.targets(),
        ["delete /sessions/one http/1.1", "delete /sessions/two%2fx http/1.1"]
    );
    for (head, id) in front.deleted().iter().zip(["one", "two/x"]) {
        assert_contains(
            head,
            &["authorization: bearer c4nary-t0ken", &format!("x-session-id: {id}\r\n")],
        );
    }
}

#[tokio::test]
async fn a_view_that_is_dropped_is_told_too() {
    let server = server().await;
    let front = Front::before(Some(server.address()), 404).await;
    let url = format!("http://{}/sessions?id={{{{SESSION_ID}}}}", front.address);
    let board = board(&front, &format!("session_cleanup_url = '{url}'"));
    drop(use_server(&board, "one").await);
    // Waits for the request.
    board.shutdown().await;
    assert_eq!(front.targets(), ["delete /sessions?id=one http/1.1"]);
}

#[tokio::test]
async fn another_origin_gets_no_credentials() {
    let server = server().await;
    let front = Front::before(Some(server.address()), 204).await;
    let other = Front::before(None, 500).await;
    let url = format!("http://{}/sessions/{{{{SESSION_ID}}}}", other.address);
    let board = board(&front, &format!("session_cleanup_url = '{url}'"));
    // A failure is logged and nothing else.
    use_server(&board, "one").await.close().await;
    assert_eq!(other.targets(), ["delete /sessions/one http/1.1"]);
    let head = other.deleted().concat();
    assert!(!head.contains("c4nary") && !head.contains("x-session-id"), "{head}");
    assert!(front.deleted().is_empty());
    board.shutdown().await;
}

#[tokio::test]
async fn a_file_of_another_program_says_the_same() {
    let server = server().await;
    let front = Front::before(Some(server.address()), 200).await;
    let text = format!(
        "mcp_servers:\n  fx:\n    transport:\n      type: http\n      url: http://{0}/mcp\n      custom_headers:\n        X-Session-ID: \"{{{{.SESSION_ID}}}}\"\n      session_cleanup_url: \"http://{0}/sessions/{{{{.SESSION_ID}}}}\"\n",
        front.address
    );
    let loaded = Config::from_text(&text, Format::Yaml, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    let board = Pegboard::open(loaded.config);
    use_server(&board, "one").await.close().await;
    assert_eq!(front.targets(), ["delete /sessions/one http/1.1"]);
    assert_contains(&front.deleted()[0], &["x-session-id: one\r\n"]);
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_does_not_keep_others_from_ending() {
    let server = server().await;
    let front = Front::before(Some(server.address()), 204).await;
    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sessions", silent.local_addr().unwrap());
    let board = board(&front, &format!("session_cleanup_url = '{url}'"));
    let tools = use_server(&board, "one").await;
    let asked = CancellationToken::new();
    let asking = asked.clone();
    let accepting = tokio::spawn(async move {
        let connection = silent.accept().await;
        asking.cancel();
        connection
    });
    drop(tools);
    asked.cancelled().await;
    // The view is gone although its request has not been answered.
    assert!(board.status().servers.iter().all(|server| server.view.is_none()));
    let connection = accepting.await.unwrap();
    drop(connection);
    board.shutdown().await;
}
