//! The stream of events: who sees what, and when it ends.

use std::time::Duration;

use axum::body::Body;
use futures_util::StreamExt as _;
use http::Response;
use serde_json::Value;

use crate::api::fixture::{API, Fixture, PATIENCE, Who, json};

/// An open stream of events.
struct Listening {
    body: axum::body::BodyDataStream,
    text: String,
}

impl Listening {
    async fn open(fixture: &Fixture, who: Who) -> Self {
        let response: Response<Body> = fixture.send(who, "GET", &format!("{API}/events"), &[], "").await;
        assert_eq!(response.status().as_u16(), 200, "{who:?}");
        Self {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
    }

    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(json);
                self.text = rest.to_owned();
                match data {
                    Some(data) => return Some(data),
                    None => continue,
                }
            }
            let bytes = tokio::time::timeout(PATIENCE, self.body.next()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
    }

    /// Reads on to the end of a call and returns its id.
    async fn completed(&mut self) -> String {
        loop {
            let event = self.next().await.unwrap();
            if event["event"] == "call_completed" {
                return event["id"].as_str().unwrap().to_owned();
            }
        }
    }
}

async fn call(fixture: &Fixture, who: Who, tool: &str, id: &str) {
    let body = format!(r#"{{"name": "{tool}", "id": "{id}"}}"#);
    let (status, text) = fixture.post(who, &format!("{API}/call"), &body).await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test]
async fn a_client_sees_its_own_calls_and_an_operator_all_of_them() {
    let fixture = Fixture::new().await;
    let mut client = Listening::open(&fixture, Who::Client).await;
    let mut operator = Listening::open(&fixture, Who::Operator).await;
    let mut other = Listening::open(&fixture, Who::Other).await;
    call(&fixture, Who::Call, "fx.read", "of-call").await;
    call(&fixture, Who::Other, "other.peek", "of-other").await;
    call(&fixture, Who::Client, "fx.read", "of-client").await;
    assert_eq!(client.completed().await, "of-client");
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(operator.completed().await);
    }
    assert_eq!(seen, ["of-call", "of-other", "of-client"]);
    // It has the scope `admin`, in its own view. Calls of others may be of tools that the view hides.
    assert_eq!(other.completed().await, "of-other");
    call(&fixture, Who::Call, "other.peek", "of-call-again").await;
    call(&fixture, Who::Other, "other.peek", "of-other-again").await;
    assert_eq!(other.completed().await, "of-other-again");
}

/// The servers that the events until the end of a call are about, each with the principal whose connection it is.
async fn changes_until(listening: &mut Listening, id: &str) -> Vec<(String, Option<String>)> {
    let mut changes = Vec::new();
    loop {
        let event = listening.next().await.unwrap();
        if event["event"] == "call_completed" && event["id"] == id {
            return changes;
        }
        if event["event"] == "server_changed" {
            let text = |name: &str| event[name].as_str().map(str::to_owned);
            changes.push((text("server").unwrap(), text("principal")));
        }
    }
}

#[tokio::test]
async fn a_client_is_told_of_its_own_connections_and_an_operator_of_all() {
    let fixture = Fixture::new().await;
    let mut client = Listening::open(&fixture, Who::Client).await;
    let mut operator = Listening::open(&fixture, Who::Operator).await;
    let mut other = Listening::open(&fixture, Who::Other).await;
    call(&fixture, Who::Call, "fx.read", "of-call").await;
    call(&fixture, Who::Client, "fx.read", "of-client").await;
    call(&fixture, Who::Other, "other.peek", "of-other").await;
    let of_all = changes_until(&mut operator, "of-other").await;
    for who in ["Call", "Client", "Other"] {
        let is_told = of_all.iter().any(|(_, of)| of.as_deref() == Some(who));
        assert!(is_told, "{who}: {of_all:?}");
    }
    let own = changes_until(&mut client, "of-client").await;
    let is_own = |(_, of): &(String, Option<String>)| of.as_deref() == Some("Client");
    assert!(own.iter().any(is_own), "{own:?}");
    assert!(own.iter().all(|change| change.1.is_none() || is_own(change)), "{own:?}");
    // It has the scope `admin`, in a view with one server.
    let of_view = changes_until(&mut other, "of-other").await;
    assert!(!of_view.is_empty(), "its own connection");
    assert!(of_view.iter().all(|(server, _)| server == "other"), "{of_view:?}");
}

#[tokio::test]
async fn a_stream_ends_with_the_token_and_with_the_daemon() {
    let fixture = Fixture::new().await;
    let mut read = Listening::open(&fixture, Who::Read).await;
    let mut client = Listening::open(&fixture, Who::Client).await;
    assert!(
        fixture
            .gateway
            .set_tokens(vec![Who::Client.config(), Who::Call.config()], true)
    );
    assert_eq!(read.next().await, None, "its token is gone");
    call(&fixture, Who::Client, "fx.read", "still").await;
    assert_eq!(client.completed().await, "still");
    fixture.stop.cancel();
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn a_slow_reader_is_told_how_many_events_it_missed() {
    let fixture = Fixture::open("").await;
    let mut slow = Listening::open(&fixture, Who::Nobody).await;
    // Each call has two events, and 1,024 are kept.
    for number in 0..600 {
        call(&fixture, Who::Nobody, "fx.read", &number.to_string()).await;
    }
    let first = slow.next().await.unwrap();
    assert_eq!(first["event"], "missed", "{first}");
    assert!(first["events"].as_u64().unwrap() >= 100, "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_has_heartbeats() {
    let board = pegboard::Pegboard::builder(pegboard::Config::default()).open();
    let (reloads, _requests) = pegboard_daemon::Reloads::new();
    let daemon = pegboard_daemon::Daemon::new(board.clone(), reloads);
    let gateway = pegboard_gateway::Gateway::for_board(board)
        .unwrap()
        .fallback(daemon.router())
        .build();
    let request = http::Request::get(format!("{API}/events")).header("host", "localhost");
    let request = request.body(Body::empty()).unwrap();
    let response = tower_service::Service::call(&mut gateway.router(), request)
        .await
        .unwrap();
    let mut body = response.into_body().into_data_stream();
    let first = tokio::time::timeout(Duration::from_secs(16), body.next())
        .await
        .unwrap();
    assert!(first.unwrap().unwrap().starts_with(b":"));
}

#[tokio::test]
async fn a_failed_audit_log_is_told_to_tokens_without_a_view_only() {
    // A folder is where the log should be.
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::with_settings(&format!("audit = '{}'\n", folder.path().display())).await;
    let mut reader = Listening::open(&fixture, Who::Read).await;
    let mut other = Listening::open(&fixture, Who::Other).await;
    call(&fixture, Who::Client, "fx.read", "of-client").await;
    while reader.next().await.unwrap()["event"] != "audit_failed" {}
    call(&fixture, Who::Other, "other.peek", "of-other").await;
    loop {
        let event = other.next().await.unwrap();
        assert_ne!(event["event"], "audit_failed", "it names a file of the operator");
        if event["id"] == "of-other" && event["event"] == "call_completed" {
            break;
        }
    }
}
