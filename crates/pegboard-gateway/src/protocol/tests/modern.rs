//! The modern era: each request says everything itself.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_request_says_its_version_and_capabilities() {
    let rig = rig();
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    for (meta, refused) in [
        (json!({version: MODERN, capabilities: {}}), None),
        (json!({}), Some(code::INVALID_PARAMS)),
        (json!({version: MODERN}), Some(code::INVALID_PARAMS)),
        (json!({version: MODERN, capabilities: []}), Some(code::INVALID_PARAMS)),
        (json!({version: 3, capabilities: {}}), Some(code::INVALID_PARAMS)),
        (
            json!({version: "2025-11-25", capabilities: {}}),
            Some(code::UNSUPPORTED_VERSION),
        ),
        (
            json!({version: "2031-01-01", capabilities: {}}),
            Some(code::UNSUPPORTED_VERSION),
        ),
    ] {
        let started = rig.modern(None, request(1, "tools/list", json!({"_meta": meta})));
        assert_eq!(started.err().map(|error| error.code), refused, "{meta}");
    }
    let params = json!({"_meta": {version: "1999-01-01", capabilities: {}}});
    let data = rig
        .modern(None, request(1, "tools/list", params))
        .unwrap_err()
        .data
        .unwrap();
    assert_eq!(
        (&data["requested"], &data["supported"][0]),
        (&json!("1999-01-01"), &json!(MODERN))
    );
}

#[tokio::test(start_paused = true)]
async fn discovery_says_what_the_handshake_said() {
    let found = response(rig().modern(None, modern(1, "server/discover", json!({})))).await;
    let result = &found["result"];
    assert_eq!(
        result["supportedVersions"],
        json!([MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
    );
    assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
    assert_eq!(result["instructions"], "use it");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
}

#[tokio::test(start_paused = true)]
async fn results_say_their_type_and_lists_how_long_they_last() {
    let rig = rig();
    let list = response(rig.modern(None, modern(1, "tools/list", json!({})))).await;
    assert_eq!(
        list["result"],
        json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": []})
    );
    let params = json!({"name": "echo", "arguments": {"a": 1}});
    let called = response(rig.modern(None, modern(1, "tools/call", params))).await;
    assert_eq!(called["result"], json!({"resultType": "complete", "a": 1}));
}

#[tokio::test(start_paused = true)]
async fn the_methods_of_the_other_era_are_gone() {
    let rig = rig();
    for method in [
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let params = json!({"level": "info", "uri": "a:b"});
        assert_eq!(
            code(rig.modern(None, modern(1, method, params))),
            code::METHOD_NOT_FOUND,
            "{method}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn log_messages_come_from_the_level_of_the_request() {
    let rig = rig();
    let mut params = with_meta(json!({"name": "logs", "arguments": {}}));
    response(rig.modern(None, request(1, "tools/call", params.clone()))).await;
    params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("error");
    let (messages, _) = run(rig.modern(None, request(1, "tools/call", params)).unwrap()).await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["params"]["level"], "error");
}

#[tokio::test(start_paused = true)]
async fn a_connection_carries_both_eras() {
    let session = rig().session("2025-11-25", json!({})).await;
    let modern_call = session.start(modern(1, "tools/call", json!({"name": "echo", "arguments": {}})));
    let legacy_call = session.start(call(2, "echo", json!({})));
    assert_eq!(response(modern_call).await["result"], json!({"resultType": "complete"}));
    assert_eq!(response(legacy_call).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn on_a_connection_a_modern_request_can_be_cancelled() {
    let rig = rig();
    let session = rig.connect();
    let mut running = session
        .start(modern(1, "tools/call", json!({"name": "endless"})))
        .unwrap();
    assert!(futures_util::poll!(std::pin::pin!(running.next())).is_pending());
    session.tell("notifications/cancelled", json!({"requestId": 1}));
    assert!(matches!(step(&mut running).await, RunStep::Done(None)));
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn stateless_requests_may_have_equal_ids() {
    let rig = rig();
    let first = rig.modern(
        None,
        modern(1, "tools/call", json!({"name": "echo", "arguments": {"n": 1}})),
    );
    let second = rig.modern(
        None,
        modern(1, "tools/call", json!({"name": "echo", "arguments": {"n": 2}})),
    );
    assert_eq!(response(second).await["result"]["n"], 2);
    assert_eq!(response(first).await["result"]["n"], 1);
}
