//! Servers that speak both eras: the era towards them follows what the client can answer.

use pegboard::{Config, Env, Format};
use pegboard_testkit::{Ask, FakeServer, Tool, everything};
use serde_json::json;

use crate::era_matrix::{
    client::{Client, Era},
    everything_of,
    fixture::{Fixture, SERVER, Upstream, server},
};

/// A server of both eras with a tool that can ask only by a request of its own.
fn both() -> FakeServer {
    let fake = everything("everything", pegboard_testkit::Era::Both).streams();
    fake.tool(Tool::new("imperative").asks(Ask::Elicitation))
}

async fn client(fixture: &Fixture, era: Era) -> Client {
    Client::connect(&fixture.address, SERVER, era, everything_of(era)).await
}

/// The sessions that are open at the server.
fn sessions(fixture: &Fixture) -> usize {
    match &fixture.server {
        Upstream::Http(server) => server.sessions().len(),
        Upstream::Process { .. } => unreachable!("the server is reached over HTTP"),
    }
}

/// The versions in which a tool was called.
fn versions(fixture: &Fixture, tool: &str) -> Vec<String> {
    let calls = fixture.server.requests();
    let calls = calls.iter().filter(|received| received.tool() == Some(tool));
    calls
        .map(|received| received.header("mcp-protocol-version").unwrap_or_default().to_owned())
        .collect()
}

/// Calls the tool that can ask only by a request, and answers.
async fn answer_imperative(client: &mut Client) {
    let outcome = client.call("imperative", json!({})).await;
    assert_eq!(outcome.questions, ["elicitation/create"], "{}", outcome.response);
    assert!(outcome.text().contains("accept"), "{}", outcome.response);
}

#[tokio::test]
async fn a_legacy_client_that_answers_is_asked_by_tools_that_can_only_send_questions() {
    let fixture = Fixture::with(both(), |gateway| gateway).await;
    // Those who cannot be asked by requests are served without a handshake.
    client(&fixture, Era::Modern)
        .await
        .call("echo", json!({}))
        .await
        .result();
    let mut unable = Client::connect(&fixture.address, SERVER, Era::Legacy, json!({})).await;
    unable.call("echo", json!({})).await.result();
    assert_eq!(fixture.server.count("initialize"), 0);
    // The others share one session.
    let (mut first, mut second) = (client(&fixture, Era::Legacy).await, client(&fixture, Era::Legacy).await);
    answer_imperative(&mut first).await;
    answer_imperative(&mut second).await;
    assert_eq!(first.call("sample", json!({"prompt": "Hi"})).await.questions.len(), 1);
    assert_eq!((fixture.server.count("initialize"), sessions(&fixture)), (1, 1));
    assert_eq!(versions(&fixture, "imperative"), ["2025-11-25", "2025-11-25"]);
    assert_eq!(versions(&fixture, "echo"), ["2026-07-28", "2026-07-28"]);
    // It is no second server, and lists nothing.
    let status = fixture.board.status();
    let rows: Vec<_> = status.servers.iter().map(|row| (row.era, row.restarts)).collect();
    assert_eq!(rows, [(Some(pegboard::status::Era::Modern), 0)]);
    assert_eq!(fixture.server.count("tools/list"), 1);
    fixture.board.shutdown().await;
    assert_eq!((sessions(&fixture), fixture.server.count("DELETE")), (0, 1));
}

#[tokio::test]
async fn reads_of_a_legacy_client_may_ask_it_by_requests_too() {
    let fixture = Fixture::with(both(), |gateway| gateway).await;
    let mut legacy = client(&fixture, Era::Legacy).await;
    legacy.ask("resources/read", json!({"uri": "note://1"})).await.result();
    assert_eq!(fixture.server.count("initialize"), 1);
    fixture.board.shutdown().await;
}

/// The handshake is tried once for a session in the newest era.
#[tokio::test]
async fn a_server_without_the_older_era_is_asked_for_it_once() {
    let stateless = |mut fake: FakeServer| {
        let mut script = fake.script().clone();
        script.http.stateless = true;
        fake = FakeServer::from_script(script);
        fake
    };
    // Without a session, an answer would not find the call that asked.
    for fake in [server(Era::Modern), stateless(both())] {
        let fixture = Fixture::with(fake, |gateway| gateway).await;
        let mut legacy = client(&fixture, Era::Legacy).await;
        for _ in 0..3 {
            let outcome = legacy.call("elicit", json!({})).await;
            assert_eq!(outcome.questions, ["elicitation/create"], "{}", outcome.response);
            assert!(outcome.text().contains("green"), "{}", outcome.response);
        }
        assert_eq!(fixture.server.count("initialize"), 1);
        // A failed start would be one of the server.
        let status = fixture.board.status();
        assert!(status.servers[0].last_error.is_none(), "{:?}", status.servers[0]);
        // A reconnected server may be another one.
        assert!(fixture.board.reconnect("s").await);
        legacy.call("elicit", json!({})).await.result();
        assert_eq!(fixture.server.count("initialize"), 2);
        fixture.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_lost_session_for_questions_is_opened_again() {
    let fixture = Fixture::with(both(), |gateway| gateway).await;
    let mut legacy = client(&fixture, Era::Legacy).await;
    answer_imperative(&mut legacy).await;
    if let Upstream::Http(server) = &fixture.server {
        server.forget_sessions();
    }
    answer_imperative(&mut legacy).await;
    assert_eq!((fixture.server.count("initialize"), sessions(&fixture)), (2, 1));
    assert_eq!(fixture.board.status().servers[0].restarts, 0);
    fixture.board.shutdown().await;
}

#[tokio::test]
async fn a_session_for_questions_ends_when_it_is_idle() {
    let server = both().serve_http().await.unwrap();
    let config = format!("[servers.s]\nurl = \"{}\"\nidle_stop = \"200ms\"\n", server.url());
    let (board, address, serving) = crate::era_matrix::fixture::serve(&config, |gateway| gateway).await;
    let mut legacy = Client::connect(&address, SERVER, Era::Legacy, everything_of(Era::Legacy)).await;
    for _ in 0..2 {
        let handshakes = server.count("initialize");
        answer_imperative(&mut legacy).await;
        server.wait_for("DELETE", handshakes + 1).await;
    }
    assert_eq!(server.sessions().len(), 0);
    serving.abort();
    board.shutdown().await;
}

/// The replaced server ends both of its sessions, also while the new one is in use.
#[tokio::test]
async fn a_replaced_server_ends_its_session_for_questions() {
    let fixture = Fixture::with(both(), |gateway| gateway).await;
    let mut legacy = client(&fixture, Era::Legacy).await;
    answer_imperative(&mut legacy).await;
    let Upstream::Http(server) = &fixture.server else {
        unreachable!("the server is reached over HTTP")
    };
    let before = server.sessions();
    let changed = format!(
        "[servers.s]\nurl = \"{}\"\nheaders = {{ x-new = \"1\" }}\n",
        server.url()
    );
    let loaded = Config::from_text(&changed, Format::Toml, &Env::process());
    let applied = fixture.board.apply(loaded.config).await;
    assert!(applied.errors.is_empty(), "{applied:?}");
    server.wait_for("DELETE", 1).await;
    answer_imperative(&mut legacy).await;
    let after = server.sessions();
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
    fixture.board.shutdown().await;
    assert_eq!(server.sessions().len(), 0);
}
