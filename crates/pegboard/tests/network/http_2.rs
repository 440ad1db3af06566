//! Many requests on one HTTP/2 connection, each with its own outcome.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use h2::{Reason, RecvStream, server::SendResponse};
use pegboard::{Kind, ServerConfig, ToolCall, config::Transport};

use crate::{
    fixtures::*,
    support::*,
    tls::{Authority, Front, answer_h2, front, secured, trusting},
};

/// The server's reaction to a call.
enum Fate {
    Answered,
    Refused,
    /// Refused after an informational response.
    Hinted,
    /// Refused after the status and this part of the body.
    Begun(&'static str),
    Held,
}

/// A running server and its certificate authority.
struct Running {
    _front: Front,
    _authority: Authority,
}

/// A modern HTTP/2 server with the tool `hello`, a limit of `streams` concurrent streams, and the `fate` of each call by its number,
/// counted from one.
async fn server(streams: u32, fate: fn(usize) -> Fate) -> (Running, Arc<AtomicUsize>, ServerConfig) {
    let authority = Authority::new();
    let mut settings = authority.signs(|_| {}).settings(None);
    settings.alpn_protocols = vec![b"h2".to_vec()];
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let front = front(settings, move |stream| {
        let calls = counted.clone();
        async move {
            let mut builder = h2::server::Builder::new();
            let Ok(mut connection) = builder.max_concurrent_streams(streams).handshake(stream).await else {
                return;
            };
            while let Some(Ok((request, respond))) = connection.accept().await {
                let is_call = request.headers()["mcp-method"] == "tools/call";
                let fate = match is_call {
                    true => fate(calls.fetch_add(1, Ordering::Relaxed) + 1),
                    false => Fate::Answered,
                };
                tokio::spawn(respond_as(fate, request, respond));
            }
        }
    })
    .await;
    let endpoint = secured(&front.url("https", "localhost", "/mcp"), trusting(&authority));
    let running = Running {
        _front: front,
        _authority: authority,
    };
    (running, calls, ServerConfig::new(Transport::http(endpoint)))
}

async fn respond_as(fate: Fate, request: http::Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    match fate {
        Fate::Answered => answer_h2(request, respond).await,
        Fate::Refused => respond.send_reset(Reason::REFUSED_STREAM),
        Fate::Hinted => {
            let hint = http::Response::builder().status(103).body(()).unwrap();
            respond.send_informational(hint).unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            respond.send_reset(Reason::REFUSED_STREAM);
        }
        Fate::Begun(part) => {
            let head = http::Response::builder().header("content-type", "application/json");
            let mut out = respond.send_response(head.body(()).unwrap(), false).unwrap();
            let _ = out.send_data(part.into(), false);
            // A reset discards queued frames, so the first part of the response must have been sent.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            out.send_reset(Reason::REFUSED_STREAM);
        }
        Fate::Held => std::future::pending().await,
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_on_a_full_connection_has_not_run() {
    let (_running, calls, config) = server(1, |_| Fate::Held).await;
    let board = board(config);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let first = tokio::spawn({
        let tools = tools.clone();
        async move { tools.call(ToolCall::new("fx.hello").timeout(secs(3))).await }
    });
    until("the first call is there", || calls.load(Ordering::Relaxed) == 1).await;
    let second = tools.call(ToolCall::new("fx.hello").timeout(secs(1))).await;
    refused(&second, Kind::Timeout);
    lost(&first.await.unwrap(), Kind::Timeout);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_the_server_did_not_look_at_is_sent_again() {
    let (_running, calls, config) = server(100, |number| match number {
        1 | 2 => Fate::Refused,
        _ => Fate::Answered,
    })
    .await;
    let board = board(config);
    let reply = hello(&board.toolset()).await;
    assert_eq!(
        (reply.text().as_str(), reply.attempts),
        ("hi", 1),
        "{:?}",
        reply.outcome
    );
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

/// A proxy may send early hints before it forwards a request, and `REFUSED_STREAM` guarantees that the request was not processed.
#[tokio::test]
async fn a_hint_that_came_before_does_not_take_the_meaning_from_a_refusal() {
    let (_running, calls, config) = server(100, |number| match number {
        1 => Fate::Hinted,
        _ => Fate::Answered,
    })
    .await;
    let board = board(config);
    let reply = hello(&board.toolset()).await;
    assert_eq!(reply.text(), "hi", "{:?}", reply.outcome);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_that_looks_at_no_call_has_carried_none_out() {
    let (_running, calls, config) = server(100, |_| Fate::Refused).await;
    let board = board(config);
    refused(&hello(&board.toolset()).await, Kind::Transport);
    assert!(calls.load(Ordering::Relaxed) > 3);
}

#[tokio::test]
async fn a_call_whose_response_had_begun_may_have_run_and_is_not_sent_again() {
    for fate in [|_| Fate::Begun(""), |_| Fate::Begun("{\"jsonrpc\":")] {
        let (_running, calls, config) = server(100, fate).await;
        let board = board(config);
        lost(&hello(&board.toolset()).await, Kind::Transport);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
