//! The legacy era: a handshake, sessions, and state between requests.

use super::*;
use crate::protocol::EarlyEnd;

#[tokio::test(start_paused = true)]
async fn a_handshake_settles_on_a_version_that_has_one() {
    for (requested, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (MODERN, "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let session = rig().connect();
        assert_eq!(session.peer.version(), None);
        let welcome = response(session.start(request(0, "initialize", json!({"protocolVersion": requested})))).await;
        assert_eq!(welcome["id"], 0);
        let result = &welcome["result"];
        assert_eq!(result["protocolVersion"], settled, "{requested}");
        assert_eq!(result["serverInfo"], json!({"name": "test", "version": settled}));
        assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
        assert_eq!(result["instructions"], "use it");
        assert_eq!(result.get("resultType"), None);
        assert_eq!(session.peer.version().unwrap().as_str(), settled);
        assert_eq!(session.peer.allows_batches(), settled == "2025-03-26");
    }
    let nameless = rig().connect().start(request(0, "initialize", json!({})));
    assert_eq!(code(nameless), code::INVALID_PARAMS);
}

#[tokio::test(start_paused = true)]
async fn a_request_needs_the_handshake_but_a_ping_does_not() {
    let session = rig().connect();
    assert_eq!(
        code(session.start(request(1, "tools/list", json!({})))),
        code::INVALID_REQUEST
    );
    assert_eq!(
        response(session.start(request(1, "ping", json!({})))).await["result"],
        json!({})
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_right_behind_the_handshake_is_answered() {
    let session = rig().connect();
    let welcome = session.start(request(0, "initialize", json!({"protocolVersion": "2025-06-18"})));
    let list = session.start(request(1, "tools/list", json!({})));
    assert_eq!(response(list).await["result"], json!({"tools": []}));
    response(welcome).await;
}

#[tokio::test(start_paused = true)]
async fn a_result_is_passed_on_as_it_is() {
    let session = rig().session("2025-11-25", json!({})).await;
    let answer = response(session.start(call(1, "echo", json!({"x": [1, null, "ä"]})))).await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 1, "result": {"x": [1, null, "ä"]}})
    );
    let unknown = response(session.start(request(2, "no/such", json!({})))).await;
    assert_eq!(unknown["error"]["code"], code::METHOD_NOT_FOUND);
    let modern_only = session.start(request(3, "subscriptions/listen", json!({})));
    assert_eq!(code(modern_only), code::METHOD_NOT_FOUND);
    assert_eq!(
        code(session.start(request(4, "server/discover", json!({})))),
        code::INVALID_PARAMS
    );
}

#[tokio::test(start_paused = true)]
async fn progress_comes_under_the_clients_own_token_if_there_is_one() {
    let session = rig().session("2025-11-25", json!({})).await;
    for token in [json!("a\"b"), json!(7), json!(-7)] {
        let params = json!({"name": "reports", "arguments": {"n": 2}, "_meta": {"progressToken": token}});
        let (messages, answer) = run(session.start(request(1, "tools/call", params)).unwrap()).await;
        let progress = |step| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": step}});
        assert_eq!(messages, [progress(1), progress(2)]);
        assert_eq!(answer.unwrap()["result"], json!({"wanted": true}));
    }
    for none in [
        json!({}),
        json!({"_meta": {"progressToken": 1.5}}),
        json!({"_meta": {"progressToken": null}}),
    ] {
        let mut params = json!({"name": "reports", "arguments": {"n": 2}});
        params["_meta"] = none["_meta"].clone();
        assert_eq!(
            response(session.start(request(1, "tools/call", params))).await["result"],
            json!({"wanted": false})
        );
    }
}

#[tokio::test(start_paused = true)]
async fn log_messages_come_from_the_level_that_the_client_set() {
    let session = rig().session("2025-06-18", json!({})).await;
    response(session.start(call(1, "logs", json!({})))).await;
    response(session.start(request(2, "logging/setLevel", json!({"level": "warning"})))).await;
    let (messages, _) = run(session.start(call(3, "logs", json!({}))).unwrap()).await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["params"], json!({"level": "error", "data": "e"}));
    let wrong = response(session.start(request(4, "logging/setLevel", json!({"level": "loud"})))).await;
    assert_eq!(wrong["error"]["code"], code::INVALID_PARAMS);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_has_no_response_and_its_work_ends() {
    let rig = rig();
    let session = rig.session("2025-11-25", json!({})).await;
    let mut running = session.start(call(1, "endless", json!({}))).unwrap();
    let other = session.start(call(2, "echo", json!({"a": 1}))).unwrap();
    assert!(futures_util::poll!(std::pin::pin!(running.next())).is_pending());
    session.tell("notifications/cancelled", json!({"requestId": "1"}));
    session.tell("notifications/cancelled", json!({"requestId": 9}));
    assert!(
        futures_util::poll!(std::pin::pin!(running.next())).is_pending(),
        "other ids"
    );
    session.tell("notifications/cancelled", json!({"requestId": 1}));
    assert!(matches!(step(&mut running).await, RunStep::Done(None)));
    assert_eq!(session.peer.in_flight(), 1);
    assert!(run(other).await.1.is_some());
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_request_cancels_it() {
    let rig = rig();
    let session = rig.session("2025-11-25", json!({})).await;
    let mut running = session.start(call(1, "endless", json!({}))).unwrap();
    assert!(futures_util::poll!(std::pin::pin!(running.next())).is_pending());
    assert_eq!((rig.service.running(), session.peer.in_flight()), (1, 1));
    drop(running);
    assert_eq!((rig.service.running(), session.peer.in_flight()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_its_requests() {
    let session = rig().session("2025-11-25", json!({})).await;
    let mut begun = session.start(call(1, "endless", json!({}))).unwrap();
    let mut waiting = session.start(call(3, "endless", json!({}))).unwrap();
    assert!(futures_util::poll!(std::pin::pin!(begun.next())).is_pending());
    session.peer.close(EarlyEnd::SessionEnded);
    for (running, may_have_executed) in [(&mut begun, true), (&mut waiting, false)] {
        let RunStep::Done(Some(answer)) = step(running).await else {
            panic!("the client is told");
        };
        let answer: Value = serde_json::from_slice(&answer.into_bytes()).unwrap();
        let data = json!({"may_have_executed": may_have_executed, "reason": "session_ended"});
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]),
            (&json!(code::STOPPING), &data)
        );
    }
    assert_eq!(code(session.start(call(2, "echo", json!({})))), code::INVALID_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_an_error_and_costs_nothing_else() {
    let session = rig().session("2025-11-25", json!({})).await;
    let broken = response(session.start(call(1, "panics", json!({})))).await;
    assert_eq!(broken["error"]["code"], code::INTERNAL_ERROR);
    response(session.start(call(1, "echo", json!({})))).await;
}

#[tokio::test(start_paused = true)]
async fn other_notifications_reach_the_service_after_the_handshake() {
    let rig = rig();
    rig.connect().tell("notifications/roots/list_changed", json!({}));
    let session = rig.session("2025-11-25", json!({})).await;
    session.tell("notifications/roots/list_changed", json!({}));
    assert_eq!(*rig.service.notified.lock(), ["notifications/roots/list_changed"]);
}
