//! Bounds: ids, requests in flight, queues, and bidirectional connections.

use super::*;
use crate::protocol::Connection;

#[tokio::test(start_paused = true)]
async fn equal_ids_are_refused_while_one_is_in_flight() {
    let session = rig().session("2025-11-25", json!({})).await;
    let first = session.start(call(1, "endless", json!({}))).unwrap();
    for again in [
        call(1, "echo", json!({})),
        request(1, "ping", json!({})),
        request(1, "logging/setLevel", json!({"level": "info"})),
        modern(1, "tools/list", json!({})),
        request(1, "initialize", json!({"protocolVersion": "2025-11-25"})),
    ] {
        assert_eq!(code(session.start(again)), code::INVALID_REQUEST);
    }
    drop(first);
    response(session.start(call(1, "echo", json!({})))).await;
    response(session.start(call(1, "echo", json!({})))).await;
}

#[tokio::test(start_paused = true)]
async fn equal_ids_of_two_sessions_have_nothing_to_do_with_each_other() {
    let rig = rig();
    let (one, two) = (
        rig.session("2025-11-25", json!({})).await,
        rig.session("2025-11-25", json!({})).await,
    );
    let first = one.start(call(1, "echo", json!({"session": 1})));
    let mut second = two.start(call(1, "endless", json!({}))).unwrap();
    two.tell("notifications/cancelled", json!({"requestId": 1}));
    assert!(matches!(step(&mut second).await, RunStep::Done(None)));
    assert_eq!(response(first).await["result"]["session"], 1);
}

#[tokio::test(start_paused = true)]
async fn one_request_too_many_is_refused_as_busy() {
    let limits = Limits {
        in_flight: 2,
        ..Limits::default()
    };
    let session = rig_with(limits).session("2025-11-25", json!({})).await;
    let first = session.start(call(1, "endless", json!({}))).unwrap();
    let second = session.start(call(2, "endless", json!({}))).unwrap();
    assert_eq!(code(session.start(call(3, "echo", json!({})))), code::BUSY);
    drop((first, second));
    response(session.start(call(3, "echo", json!({})))).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_makes_its_own_work_wait() {
    let rig = rig();
    let session = rig.session("2025-11-25", json!({})).await;
    let params = json!({"name": "reports", "arguments": {"n": 100}, "_meta": {"progressToken": 1}});
    let mut running = session.start(request(1, "tools/call", params)).unwrap();
    next_message(&mut running).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.service.running(), 1, "it waits in the middle");
    let (rest, done) = run(running).await;
    assert_eq!(rest.len(), 99);
    assert!(done.is_some());
}

async fn receive(outbox: &mut mpsc::Receiver<Outgoing>) -> Value {
    let message = timeout(Duration::from_secs(3600), outbox.recv())
        .await
        .expect("nothing comes");
    json_of(message.expect("the connection has ended"))
}

fn line(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn rpc(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

async fn connection(rig: &Rig, version: &str) -> (Connection, mpsc::Receiver<Outgoing>) {
    let (connection, mut outbox) = Connection::open(&rig.endpoint, &Caller::default(), Wire::Pipe);
    let hello = json!({"protocolVersion": version, "capabilities": {"elicitation": {}}});
    connection.receive(&line(&rpc(0, "initialize", hello))).await;
    assert_eq!(receive(&mut outbox).await["id"], 0);
    (connection, outbox)
}

#[tokio::test(start_paused = true)]
async fn on_a_connection_a_quick_response_overtakes_a_slow_one() {
    let rig = rig();
    let (connection, mut outbox) = connection(&rig, "2025-11-25").await;
    connection
        .receive(&line(&rpc(1, "tools/call", json!({"name": "endless"}))))
        .await;
    connection
        .receive(&line(&rpc(
            2,
            "tools/call",
            json!({"name": "echo", "arguments": {"a": 1}}),
        )))
        .await;
    assert_eq!(
        receive(&mut outbox).await,
        json!({"jsonrpc": "2.0", "id": 2, "result": {"a": 1}})
    );
    connection
        .receive(&line(&rpc(3, "tools/call", json!({"name": "asks"}))))
        .await;
    let question = receive(&mut outbox).await;
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    connection.receive(&line(&answer)).await;
    assert_eq!(receive(&mut outbox).await["result"]["answer"]["action"], "accept");
    connection.close().await;
    let cancelled = receive(&mut outbox).await;
    assert_eq!(cancelled["error"]["data"]["may_have_executed"], true, "{cancelled}");
    assert!(outbox.recv().await.is_none(), "the queue has ended");
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn broken_messages_cost_nothing_but_themselves() {
    let rig = rig();
    let (connection, mut outbox) = connection(&rig, "2025-11-25").await;
    for (text, code) in [
        ("{nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        ("[]", -32600),
    ] {
        connection.receive(&Bytes::from_static(text.as_bytes())).await;
        assert_eq!(receive(&mut outbox).await["error"]["code"], code, "{text}");
    }
    connection.refuse_too_long().await;
    assert_eq!(receive(&mut outbox).await["error"]["code"], -32600);
    connection.receive(&line(&rpc(1, "ping", json!({})))).await;
    assert_eq!(receive(&mut outbox).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_as_a_batch_where_batches_exist() {
    let batch = json!([rpc(1, "ping", json!({})), rpc(2, "tools/list", json!({})), {"id": 3}]);
    let rig = rig();
    let (old, mut outbox) = connection(&rig, "2025-03-26").await;
    old.receive(&line(&batch)).await;
    let responses = receive(&mut outbox).await;
    let mut ids: Vec<_> = responses
        .as_array()
        .unwrap()
        .iter()
        .map(|response| response["id"].as_u64())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    let (new, mut outbox) = connection(&rig, "2025-06-18").await;
    new.receive(&line(&batch)).await;
    assert_eq!(receive(&mut outbox).await["error"]["code"], code::INVALID_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_connection_ends_its_work() {
    let rig = rig();
    let (connection, outbox) = connection(&rig, "2025-11-25").await;
    connection
        .receive(&line(&rpc(1, "tools/call", json!({"name": "endless"}))))
        .await;
    tokio::task::yield_now().await;
    assert_eq!(rig.service.running(), 1);
    drop((connection, outbox));
    tokio::task::yield_now().await;
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_not_read_delays_only_itself() {
    let limits = Limits {
        in_flight: 100,
        ..Limits::default()
    };
    let rig = rig_with(limits);
    let (blocked, mut unread) = connection(&rig, "2025-11-25").await;
    let (other, mut outbox) = connection(&rig, "2025-11-25").await;
    let flood = async {
        for id in 0..1000 {
            blocked
                .receive(&line(&rpc(id, "tools/call", json!({"name": "echo", "arguments": {}}))))
                .await;
            tokio::task::yield_now().await;
        }
    };
    let mut flood = std::pin::pin!(flood);
    assert!(
        timeout(Duration::from_secs(60), &mut flood).await.is_err(),
        "the reader waits once responses, and then refusals, find no room"
    );
    other.receive(&line(&rpc(1, "ping", json!({})))).await;
    assert_eq!(receive(&mut outbox).await["result"], json!({}));
    let reading = async {
        let mut refused = 0;
        while let Ok(Some(response)) = timeout(Duration::from_secs(1), unread.recv()).await {
            refused += usize::from(response.error_code() == Some(code::BUSY));
        }
        refused
    };
    let ((), refused) = tokio::join!(flood, reading);
    assert!(refused > 0, "responses that wait count as requests in flight");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_free_once_its_response_is_read() {
    let rig = rig();
    let (connection, mut outbox) = connection(&rig, "2025-11-25").await;
    for _ in 0..200 {
        connection
            .receive(&line(&rpc(1, "tools/call", json!({"name": "echo", "arguments": {}}))))
            .await;
        assert_eq!(receive(&mut outbox).await["result"], json!({}));
    }
}

/// A connection whose client may leave three results of [`LONG`] unread, and five calls of such results.
async fn five_long_calls() -> (Connection, mpsc::Receiver<Outgoing>) {
    const LONG: usize = 100 << 10;
    let limits = Limits {
        unread: 320 << 10,
        ..Limits::default()
    };
    let (connection, outbox) = connection(&rig_with(limits), "2025-11-25").await;
    let arguments = json!({"text": "x".repeat(LONG)});
    for id in 1..=5 {
        let params = json!({"name": "echo", "arguments": arguments});
        connection.receive(&line(&rpc(id, "tools/call", params))).await;
    }
    (connection, outbox)
}

#[tokio::test(start_paused = true)]
async fn what_a_client_does_not_read_in_time_is_dropped_and_it_is_told() {
    let (connection, mut outbox) = five_long_calls().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut dropped = 0;
    for _ in 0..5 {
        let message = receive(&mut outbox).await;
        if message["result"]["text"].is_string() {
            continue;
        }
        let data = json!({"may_have_executed": true, "reason": "unread"});
        assert_eq!(
            (&message["error"]["code"], &message["error"]["data"]),
            (&json!(-32010), &data),
            "{message}"
        );
        dropped += 1;
    }
    assert_eq!(dropped, 2);
    let params = json!({"name": "echo", "arguments": {"text": "y".repeat(500 << 10)}});
    connection.receive(&line(&rpc(6, "tools/call", params))).await;
    let message = receive(&mut outbox).await;
    assert!(message["result"]["text"].is_string(), "one result may be longer");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_gets_all_results() {
    let (_connection, mut outbox) = five_long_calls().await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let message = receive(&mut outbox).await;
        assert!(message["result"]["text"].is_string(), "{message}");
    }
}
