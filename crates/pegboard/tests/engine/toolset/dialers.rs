//! Connections that a program opens itself: dialers that take time, fail, panic or hang.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use pegboard::{
    Config, Kind, Pegboard, ServerConfig, State, ToolCall,
    in_process::{Dialer, dialer},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool};
use tokio::io::DuplexStream;

use crate::support::{PATIENCE, assert_contains, assert_outcome, name, secs};

fn board(dialer: impl Dialer) -> Pegboard {
    let mut settings = ServerConfig::in_process();
    settings.limits.connect_timeout = secs(5);
    Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer, settings)
        .without_jitter()
        .open()
}

/// The text of the newest error in the status of the server.
async fn last_error(board: &Pegboard) -> String {
    loop {
        let server = board.status().servers.remove(0);
        match server.last_error {
            Some(error) => return error.message,
            None => tokio::time::sleep(secs(1)).await,
        }
    }
}

fn failing(text: &'static str) -> impl Dialer {
    dialer(move |_| async move { Err::<(DuplexStream, DuplexStream), _>(io::Error::other(text)) })
}

#[tokio::test(start_paused = true)]
async fn a_dialer_may_wait_and_knows_the_name_of_the_server() {
    let (_unused, handle) = FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .connect();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = names.clone();
    let board = board(dialer(move |context| {
        seen.lock().push(context.server().to_owned());
        let handle = handle.clone();
        async move {
            tokio::time::sleep(secs(3)).await;
            io::Result::Ok(tokio::io::split(handle.connect()))
        }
    }));
    let reply = board.toolset().call(ToolCall::new("fx.hello")).await;
    assert_eq!(reply.text(), "hi");
    assert_eq!(*names.lock(), ["fx"]);
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_dialer_is_in_the_status_and_in_the_reply() {
    let board = board(failing("the tunnel is closed"));
    assert_contains(&last_error(&board).await, &["the tunnel is closed"]);
    let reply = board.toolset().call(ToolCall::new("fx.hello")).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["the tunnel is closed"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_dial_is_retried_and_the_server_comes_up() {
    let (_unused, handle) = FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .connect();
    let dials = Arc::new(AtomicU32::new(0));
    let counted = dials.clone();
    let board = board(dialer(move |_| {
        let (handle, dial) = (handle.clone(), counted.fetch_add(1, Ordering::Relaxed));
        async move {
            if dial < 2 {
                return Err("not yet");
            }
            Ok(tokio::io::split(handle.connect()))
        }
    }));
    while board.status().servers[0].state != State::Ready {
        tokio::time::sleep(secs(1)).await;
    }
    assert_eq!(dials.load(Ordering::Relaxed), 3);
    assert_eq!(board.toolset().call(ToolCall::new("fx.hello")).await.text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_dialer_that_hangs_is_dropped_at_the_connect_timeout() {
    let started = tokio::time::Instant::now();
    let board = board(dialer(|_| async {
        std::future::pending::<()>().await;
        Err::<(DuplexStream, DuplexStream), _>("unreachable")
    }));
    assert_contains(&last_error(&board).await, &["dialer", "connect_timeout"]);
    let waited = started.elapsed();
    assert!((secs(5)..secs(7)).contains(&waited), "{waited:?}");
    tokio::time::timeout(PATIENCE, board.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_dialer_that_panics_fails_its_own_server_only() {
    fn broken() -> (pegboard::in_process::ByteSource, pegboard::in_process::ByteSink) {
        panic!("on purpose")
    }
    let (_unused, handle) = FakeServer::new("ok")
        .tool(Tool::new("hello").answers_text("hi"))
        .connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), broken)
        .in_process(name("ok"), crate::support::dialer(&handle))
        .open();
    let tools = board.toolset();
    let reply = tools.call(ToolCall::new("fx.hello")).await;
    assert_contains(&reply.text(), &["its dialer panicked"]);
    assert_eq!(tools.call(ToolCall::new("ok.hello")).await.text(), "hi");
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_the_error_of_a_dialer_is_masked() {
    let token = format!("ghp_{}", "R7kq9ZtX2mWv4Lp8Ns6Yd1Hb3Jc5Gf0TaQeU");
    let text: &'static str = Box::leak(format!("refused for token {token}").into_boxed_str());
    let board = board(failing(text));
    let reply = board.toolset().call(ToolCall::new("fx.hello")).await;
    assert_contains(&reply.text(), &["refused for token"]);
    assert!(!reply.text().contains(&token), "{}", reply.text());
}
