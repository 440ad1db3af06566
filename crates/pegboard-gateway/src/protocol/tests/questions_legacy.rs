//! Questions to a legacy client: requests on the stream of the call.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_question_is_a_request_and_its_response_goes_to_the_work() {
    let session = rig().session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    let question = next_message(&mut running).await;
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("who?"))
    );
    session.answer(&json!(99), json!({"action": "accept", "content": {"wrong": true}}));
    assert!(
        futures_util::poll!(std::pin::pin!(running.next())).is_pending(),
        "another id"
    );
    session.answer(&question["id"], json!({"action": "decline"}));
    let (messages, answer) = run(running).await;
    assert!(messages.is_empty());
    assert_eq!(answer.unwrap()["result"], json!({"answer": {"action": "decline"}}));
}

#[tokio::test(start_paused = true)]
async fn several_questions_are_several_requests() {
    let session = rig()
        .session("2025-06-18", json!({"elicitation": {}, "roots": {}}))
        .await;
    let mut running = session.start(call(1, "asks_two_at_once", json!({}))).unwrap();
    let first = next_message(&mut running).await;
    let second = next_message(&mut running).await;
    assert_ne!(first["id"], second["id"]);
    session.answer(&second["id"], json!({"roots": []}));
    session.answer(&first["id"], json!({"action": "cancel"}));
    let answers = run(running).await.1.unwrap()["result"]["answers"].clone();
    assert_eq!(answers, json!([{"action": "cancel"}, {"roots": []}]));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_client_is_the_error_of_the_question() {
    let session = rig().session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    let question = next_message(&mut running).await;
    let error = RpcError::new(-1, "the user is away");
    session.peer.handle_response(&question["id"].to_string(), Err(error));
    assert_eq!(run(running).await.1.unwrap()["error"]["message"], "the user is away");
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_capability_is_not_asked() {
    let session = rig().session("2025-06-18", json!({"roots": {}})).await;
    let answer = response(session.start(call(1, "asks", json!({})))).await;
    assert_eq!(answer["error"]["code"], code::MISSING_CAPABILITY);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_work_gives_up_is_cancelled_on_the_same_stream() {
    let session = rig().session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks_and_gives_up", json!({}))).unwrap();
    let question = next_message(&mut running).await;
    let cancelled = next_message(&mut running).await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(run(running).await.1.unwrap()["result"]["gave_up"], true);
    session.answer(&question["id"], json!({"action": "accept"}));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_cancels_its_question_on_the_general_stream() {
    let rig = rig();
    let mut session = rig.session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    let question = next_message(&mut running).await;
    session.tell("notifications/cancelled", json!({"requestId": 1}));
    assert!(matches!(step(&mut running).await, RunStep::Done(None)));
    let cancelled = session.next_in_outbox().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_fails_after_its_time() {
    let session = rig().session("2025-06-18", json!({"elicitation": {}})).await;
    let start = tokio::time::Instant::now();
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    next_message(&mut running).await;
    let (_, answer) = run(running).await;
    assert_eq!(start.elapsed(), Duration::from_secs(300));
    assert!(
        answer.unwrap()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("in time")
    );
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_carries_only_responses_asks_on_the_general_stream() {
    let mut session = rig().session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    running.mute();
    assert!(futures_util::poll!(std::pin::pin!(running.next())).is_pending());
    let question = session.next_in_outbox().await;
    session.answer(&question["id"], json!({"action": "accept"}));
    assert_eq!(run(running).await.1.unwrap()["result"]["answer"]["action"], "accept");
    let mut params = json!({"name": "reports", "arguments": {"n": 50}});
    params["_meta"] = json!({"progressToken": 1});
    let running = session.start(request(2, "tools/call", params)).unwrap();
    running.mute();
    response(Ok(running)).await;
}

#[tokio::test(start_paused = true)]
async fn one_session_cannot_answer_for_another() {
    let rig = rig();
    let session = rig.session("2025-06-18", json!({"elicitation": {}})).await;
    let other = rig.session("2025-06-18", json!({"elicitation": {}})).await;
    let mut running = session.start(call(1, "asks", json!({}))).unwrap();
    let question = next_message(&mut running).await;
    other.answer(&question["id"], json!({"action": "accept"}));
    assert!(futures_util::poll!(std::pin::pin!(running.next())).is_pending());
}
