//! What clients are told when the gateway stops before their requests are done.

use std::time::Duration;

use crate::{
    client::{BOTH, Http, JSON, call, initialize, modern_call, modern_headers},
    service::start_with,
};

#[tokio::test]
async fn requests_that_outlast_the_shutdown_get_an_error() {
    let server = start_with(|builder| builder.drain_time(Duration::from_millis(200))).await;
    let mut http = Http::connect(server.address).await;
    let id = initialize(&mut http, "2025-11-25", &[]).await;
    let legacy_headers = [BOTH, JSON, ("mcp-session-id", &*id)];
    let (mut legacy, mut modern) = (Http::connect(server.address).await, Http::connect(server.address).await);
    legacy.send("POST", "/mcp", &legacy_headers, &call(1, "wait")).await;
    modern
        .send("POST", "/mcp", &modern_headers("wait"), &modern_call(2, "wait"))
        .await;
    let mut stream = Http::connect(server.address).await;
    let streamed = stream
        .ask(
            "POST",
            "/mcp",
            &modern_headers("step_and_wait"),
            &modern_call(3, "step_and_wait"),
        )
        .await;
    assert!(streamed.is_events());
    stream.event().await.unwrap();
    // The body of this one does not arrive.
    let mut half = Http::connect(server.address).await;
    half.write(
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    )
    .await;
    server.probe.until_waiting(3).await;
    let probe = server.probe.clone();
    let stopped = tokio::spawn(server.stop());
    let response = legacy.response().await;
    assert_eq!((response.status, response.json()["id"].as_i64()), (200, Some(1)));
    assert_eq!(response.json()["error"]["code"], -32010);
    let response = modern.response().await;
    assert_eq!((response.status, response.json()["id"].as_i64()), (503, Some(2)));
    assert_eq!(response.json()["error"]["code"], -32010);
    assert_eq!(response.header("retry-after"), "1");
    let event = stream.event().await.unwrap().json();
    assert_eq!(
        (event["id"].as_i64(), event["error"]["code"].as_i64()),
        (Some(3), Some(-32010))
    );
    assert_eq!(stream.event().await, None);
    assert_eq!(half.response().await.status, 503);
    stopped.await.unwrap();
    probe.until_waiting(0).await;
}
