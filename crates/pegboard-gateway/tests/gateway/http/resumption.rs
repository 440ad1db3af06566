//! Streams that break: what a client missed is sent again when it comes back with `Last-Event-ID`.

use std::time::Duration;

use pegboard_gateway::Event;

use crate::http::{
    client::{BOTH, Http, JSON, call, initialize, text_of},
    service::start,
};

#[tokio::test]
async fn the_stream_of_a_request_goes_on_after_it_broke() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    assert!(
        http.ask("POST", "/mcp", &headers, &call(1, "step_and_wait"))
            .await
            .is_events()
    );
    let primed = http.event().await.unwrap().id.unwrap();
    let step = http.event().await.unwrap();
    assert_eq!(step.json()["params"]["step"], 1);
    let seen = step.id.unwrap();
    server.probe.until_waiting(1).await;
    drop(http);
    // The call goes on without its client, because the client can come back.
    let mut back = Http::connect(server.address).await;
    let resume = |last| [BOTH, headers[2], ("last-event-id", last)];
    assert!(back.ask("GET", "/mcp", &resume(&*seen), "").await.is_events());
    server.probe.until_waiting(1).await;
    server.probe.release.notify_waiters();
    assert_eq!(back.event().await.unwrap().json()["params"]["step"], 2);
    assert_eq!(text_of(&back.event().await.unwrap().json()), "released");
    assert_eq!(back.event().await, None);
    // All of it is sent again after the priming event.
    let mut again = Http::connect(server.address).await;
    assert!(again.ask("GET", "/mcp", &resume(&*primed), "").await.is_events());
    assert_eq!(again.event().await.unwrap().json()["params"]["step"], 1);
    assert_eq!(again.event().await.unwrap().json()["params"]["step"], 2);
    assert_eq!(text_of(&again.event().await.unwrap().json()), "released");
    assert_eq!(again.event().await, None);
}

#[tokio::test]
async fn a_call_that_ends_while_its_client_is_away_keeps_its_response() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-06-18", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    http.ask("POST", "/mcp", &headers, &call(1, "step_and_wait")).await;
    let seen = http.event().await.unwrap().id.unwrap();
    server.probe.until_waiting(1).await;
    drop(http);
    server.probe.release.notify_waiters();
    server.probe.until_waiting(0).await;
    let mut back = Http::connect(server.address).await;
    back.ask("GET", "/mcp", &[BOTH, headers[2], ("last-event-id", &*seen)], "")
        .await;
    assert_eq!(back.event().await.unwrap().json()["params"]["step"], 2);
    assert_eq!(text_of(&back.event().await.unwrap().json()), "released");
}

#[tokio::test]
async fn the_general_stream_is_replayed_and_has_one_reader() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, ("mcp-session-id", &*id)];
    let mut stream = Http::connect(server.address).await;
    stream.ask("GET", "/mcp", &headers, "").await;
    let change = |uri: &str| Event::ResourceUpdated { uri: uri.to_owned() };
    server.probe.events.send(change("a")).unwrap();
    let first = stream.event().await.unwrap().id.unwrap();
    server.probe.events.send(change("b")).unwrap();
    assert_eq!(stream.event().await.unwrap().json()["params"]["uri"], "b");
    let mut back = Http::connect(server.address).await;
    back.ask("GET", "/mcp", &[headers[0], headers[1], ("last-event-id", &*first)], "")
        .await;
    assert_eq!(back.event().await.unwrap().json()["params"]["uri"], "b");
    assert_eq!(stream.event().await, None, "the earlier stream ends");
    server.probe.events.send(change("c")).unwrap();
    assert_eq!(back.event().await.unwrap().json()["params"]["uri"], "c");
}

#[tokio::test]
async fn an_unknown_stream_cannot_be_resumed() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    for last in ["99-1", "x", "", "0"] {
        let headers = [BOTH, ("mcp-session-id", &*id), ("last-event-id", last)];
        assert_eq!(http.ask("GET", "/mcp", &headers, "").await.status, 400, "{last}");
    }
}

#[tokio::test]
async fn another_session_cannot_resume_the_stream() {
    let server = start().await;
    let mut http = Http::connect(server.address).await;
    let first = initialize(&mut http, "2025-11-25", &[]).await;
    let second = initialize(&mut http, "2025-11-25", &[]).await;
    let headers = [BOTH, JSON, ("mcp-session-id", &*first)];
    http.ask("POST", "/mcp", &headers, &call(1, "steps")).await;
    let seen = http.event().await.unwrap().id.unwrap();
    while http.event().await.is_some() {}
    let headers = [BOTH, ("mcp-session-id", &*second), ("last-event-id", &*seen)];
    assert_eq!(http.ask("GET", "/mcp", &headers, "").await.status, 400);
    tokio::time::timeout(Duration::from_secs(10), server.stop())
        .await
        .unwrap();
}
