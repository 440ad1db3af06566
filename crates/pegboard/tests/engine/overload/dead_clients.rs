//! Clients that are gone, with real processes: what they used is free long before their calls would have ended.

use std::{future::Future, path::Path, pin::Pin, time::Duration};

use pegboard::{
    Credential, Credentials, Kind, ServerName, View,
    config::Scope,
    credential::{CredentialError, CredentialRequest},
};
use pegboard_testkit::{FakeServer, Tool, is_alive, read_log};
use serde_json::json;
use tokio::time::Instant;

use crate::{overload::until, support::*};

/// How long the call of a client takes that it does not wait for.
const SLOW: Duration = Duration::from_secs(60);
/// When everything that a client used is free: long before its call would have ended.
const SOON: Duration = Duration::from_secs(20);

fn server(log: &Path) -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("slow").answers_text("done").after(SLOW))
        .log(log)
}

/// Waits until the server has received this many calls.
async fn received(log: &Path, calls: usize) {
    let count = || read_log(log).map_or(0, |log| log.count("tools/call"));
    until("the server has the calls", || count() >= calls).await;
}

#[tokio::test]
async fn the_process_of_a_client_ends_with_it_even_in_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut settings = process(&server(&log));
    settings.policy.scope = Scope::Session;
    let board = board(settings);
    let tools = board.toolset_with(View::new().name("client").principal("alice"));
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    let rows = board.status().servers;
    let row = rows.iter().find(|row| row.view.as_deref() == Some("client"));
    let pid = row.and_then(|row| row.pid).expect("a process of the view");
    let client = tokio::spawn(async move { call(&tools, "fx.slow", json!({})).await });
    received(&log, 2).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    gone(pid, SOON).await;
    board.shutdown().await;
}

#[tokio::test]
async fn the_places_of_a_client_are_free_for_others_when_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(with_limits(process(&server(&log)), |limits| limits.max_in_flight = 1));
    let tools = board.toolset_with(View::new().principal("alice"));
    tools.list(PATIENCE).await;
    let client = tokio::spawn(async move {
        let calls = (0..50).map(|_| call(&tools, "fx.slow", json!({})));
        futures_util::future::join_all(calls).await
    });
    received(&log, 1).await;
    until("the other calls wait", || board.status().servers[0].queued == 49).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    let gone_at = Instant::now();
    let other = board.toolset_with(View::new().principal("bob"));
    let reply = call(&other, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Ok, true);
    assert!(gone_at.elapsed() < SOON, "{:?}", gone_at.elapsed());
    let status = &board.status().servers[0];
    assert_eq!((status.in_flight, status.queued), (0, 0));
    let cancelled = || read_log(&log).unwrap().count("notifications/cancelled");
    until("the server is told", || cancelled() == 1).await;
    assert_eq!(
        read_log(&log).unwrap().count("tools/call"),
        2,
        "waiting calls were never sent"
    );
    board.shutdown().await;
}

/// Gives every process of a principal a token.
struct Token;

impl Credentials for Token {
    fn covers(&self, _: &ServerName, _: bool) -> bool {
        true
    }

    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(async { Ok(Credential::none().env("CALLER_TOKEN", "a-token-of-alice")) })
    }

    fn identity(&self) -> Option<String> {
        Some("alice".to_owned())
    }
}

/// A client of the modern era has a view for each request, and its process serves the next one.
#[tokio::test]
async fn the_process_of_a_principal_stays_for_its_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut settings = process(&server(&log));
    settings.start = pegboard::config::Start::Lazy;
    let board = board(settings);
    for _ in 0..3 {
        let tools = board.toolset_with(View::new().principal("alice").credentials(Token));
        assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    }
    let pids = spawned(&log);
    assert_eq!(pids.len(), 1);
    assert!(is_alive(pids[0]));
    board.shutdown().await;
    gone(pids[0], SOON).await;
}
