//! Questions to a modern client: a result that asks for input, and a next request that attaches to the same work.

use pegboard::credential::CallerRights;

use super::*;
use crate::door::Scope;

fn asking(id: u64, tool: &str) -> Request {
    modern(id, "tools/call", json!({"name": tool, "arguments": {}}))
}

/// The same request again, with the state and answers.
fn again(id: u64, tool: &str, state: &Value, answers: Value) -> Request {
    let params = json!({"name": tool, "arguments": {}, "requestState": state, "inputResponses": answers});
    modern(id, "tools/call", params)
}

/// Starts a call that asks. Returns the result that asks for input.
async fn ask(rig: &Rig, principal: Option<&str>, tool: &str) -> Value {
    let asked = response(rig.modern(principal, asking(1, tool))).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    asked
}

#[tokio::test(start_paused = true)]
async fn a_question_is_a_result_and_the_next_request_answers_it() {
    let rig = rig();
    let asked = ask(&rig, None, "asks").await;
    assert_eq!(asked["inputRequests"]["q1"]["method"], "elicitation/create");
    assert_eq!(asked["inputRequests"]["q1"]["params"]["message"], "who?");
    assert_eq!(rig.service.running(), 1, "the work goes on");
    let answers = json!({"q1": {"action": "accept", "content": {"name": "Ada"}}});
    let done = response(rig.modern(None, again(2, "asks", &asked["requestState"], answers.clone()))).await;
    assert_eq!(
        done,
        json!({"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "answer": answers["q1"]}})
    );
    assert_eq!((rig.service.running(), rig.endpoint.parked_calls()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn questions_that_come_together_stand_in_one_result() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_two_at_once").await;
    assert_eq!(asked["inputRequests"]["q1"]["method"], "elicitation/create");
    assert_eq!(asked["inputRequests"]["q2"]["method"], "roots/list");
    // The client answers one of them first.
    let answers = json!({"q2": {"roots": []}, "q9": {}});
    let rest = response(rig.modern(None, again(2, "asks_two_at_once", &asked["requestState"], answers))).await;
    let rest = &rest["result"];
    assert_eq!(rest["resultType"], "input_required");
    assert_eq!(
        rest["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["q1"]
    );
    let answers = json!({"q1": {"action": "cancel"}});
    let done = response(rig.modern(None, again(3, "asks_two_at_once", &rest["requestState"], answers))).await;
    assert_eq!(done["result"]["answers"], json!([{"action": "cancel"}, {"roots": []}]));
}

#[tokio::test(start_paused = true)]
async fn a_question_has_the_name_that_its_server_gave_it() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_by_name").await;
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["places", "user"],
        "questions that come one after the other stand together"
    );
    let answers = json!({"user": {"action": "cancel"}, "places": {"roots": []}});
    let done = response(rig.modern(None, again(2, "asks_by_name", &asked["requestState"], answers))).await;
    assert_eq!(done["result"]["answers"], json!([{"action": "cancel"}, {"roots": []}]));
}

#[tokio::test(start_paused = true)]
async fn an_answer_given_in_advance_is_used() {
    let rig = rig();
    let first = |answers: Value| {
        let params = json!({"name": "asks_by_name", "arguments": {}, "inputResponses": answers});
        modern(1, "tools/call", params)
    };
    let all = json!({"user": {"action": "decline"}, "places": {"roots": []}, "other": {}});
    let done = response(rig.modern(None, first(all))).await;
    assert_eq!(done["result"]["answers"], json!([{"action": "decline"}, {"roots": []}]));
    // What can be no answer leaves its question open.
    for (answers, open) in [
        (json!({"user": {"action": "decline"}, "places": 1}), &["places"][..]),
        (json!({"q1": {}}), &["places", "user"]),
        (Value::Null, &["places", "user"]),
    ] {
        let asked = response(rig.modern(None, first(answers))).await;
        let keys: Vec<_> = asked["result"]["inputRequests"].as_object().unwrap().keys().collect();
        assert_eq!(keys, open);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_question_is_a_second_round_with_progress_in_between() {
    let rig = rig();
    let first = ask(&rig, None, "asks_twice").await;
    let mut params = json!({"name": "asks_twice", "arguments": {}, "requestState": first["requestState"]});
    params["inputResponses"] = json!({"q1": {"action": "accept"}});
    let mut params = with_meta(params);
    params["_meta"]["progressToken"] = json!("second");
    let (messages, second) = run(rig.modern(None, request(2, "tools/call", params)).unwrap()).await;
    assert_eq!(messages.len(), 1, "under the token of the request that is attached");
    assert_eq!(messages[0]["params"]["progressToken"], "second");
    let second = second.unwrap()["result"].clone();
    assert_eq!(second["inputRequests"]["q2"]["method"], "sampling/createMessage");
    assert_ne!(first["requestState"], second["requestState"]);
    let old = rig.modern(None, again(3, "asks_twice", &first["requestState"], json!({})));
    assert_eq!(code(old), code::INVALID_PARAMS, "the state of an earlier round");
    let answers = json!({"q2": {"role": "assistant"}});
    let done = response(rig.modern(None, again(3, "asks_twice", &second["requestState"], answers))).await;
    assert_eq!(
        done["result"]["answers"],
        json!([{"action": "accept"}, {"role": "assistant"}])
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_may_come_long_after_the_start() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_late").await;
    let answers = json!({"q1": {"action": "accept"}});
    let done = response(rig.modern(None, again(2, "asks_late", &asked["requestState"], answers))).await;
    assert_eq!(done["result"]["answer"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_capability_gets_the_error_that_says_so() {
    let params = json!({"name": "asks", "arguments": {}, "_meta": meta(json!({"roots": {}}))});
    let refused = response(rig().modern(None, request(1, "tools/call", params))).await;
    assert_eq!(refused["error"]["code"], code::MISSING_CAPABILITY);
    assert_eq!(
        refused["error"]["data"],
        json!({"requiredCapabilities": {"elicitation": {}}})
    );
}

#[tokio::test(start_paused = true)]
async fn a_state_is_of_use_only_to_its_principal_and_endpoint() {
    let rig = rig();
    let asked = ask(&rig, Some("ada"), "asks").await;
    let state = &asked["requestState"];
    let answers = json!({"q1": {"action": "accept"}});
    let same = |request| rig.modern(Some("ada"), request);
    for stranger in [Some("bob"), None] {
        let refused = rig
            .modern(stranger, again(2, "asks", state, answers.clone()))
            .unwrap_err();
        assert_eq!(refused.code, code::INVALID_PARAMS);
        assert!(refused.message.contains("requestState"), "{refused:?}");
    }
    let rights = CallerRights::new([7; 32]);
    let with_other_rights = [
        Caller {
            rights: Some(rights),
            ..caller(Some("ada"))
        },
        Caller {
            view: Some("narrow".into()),
            ..caller(Some("ada"))
        },
        Caller {
            scopes: [Scope::Call].into_iter().collect(),
            ..caller(Some("ada"))
        },
    ];
    for other in with_other_rights {
        let refused = rig
            .endpoint
            .start_modern(&other, again(2, "asks", state, answers.clone()), Wire::Pipe);
        assert_eq!(
            code(refused),
            code::INVALID_PARAMS,
            "another token of the principal: {other:?}"
        );
    }
    let sealer = Arc::new(Sealer::with_key(&[7; 32]));
    let elsewhere = Endpoint::new("/mcp/other", rig.service.clone(), sealer, Limits::default());
    let refused = elsewhere.start_modern(
        &caller(Some("ada")),
        again(2, "asks", state, answers.clone()),
        Wire::Pipe,
    );
    assert_eq!(
        code(refused),
        code::INVALID_PARAMS,
        "another endpoint with the same key"
    );
    let altered = json!(format!("{}A", state.as_str().unwrap()));
    assert_eq!(
        code(same(again(2, "asks", &altered, answers.clone()))),
        code::INVALID_PARAMS
    );
    assert_eq!(
        code(same(again(2, "asks", &json!(7), answers.clone()))),
        code::INVALID_PARAMS
    );
    let other_tool = same(again(2, "asks_twice", state, answers.clone()));
    assert_eq!(code(other_tool), code::INVALID_PARAMS);
    let params = json!({"name": "asks", "arguments": {"more": 1}, "requestState": state, "inputResponses": answers});
    assert_eq!(
        code(same(modern(2, "tools/call", params.clone()))),
        code::INVALID_PARAMS
    );
    assert_eq!(code(same(modern(2, "prompts/get", params))), code::INVALID_PARAMS);
    // None of these attempts has cost the owner anything.
    let done = response(same(again(2, "asks", state, answers.clone()))).await;
    assert_eq!(done["result"]["answer"]["action"], "accept");
    assert_eq!(
        code(same(again(3, "asks", state, answers))),
        code::INVALID_PARAMS,
        "a replay after completion"
    );
}

#[tokio::test(start_paused = true)]
async fn a_state_is_used_by_one_request_at_a_time() {
    let rig = rig();
    let asked = ask(&rig, None, "asks").await;
    let state = &asked["requestState"];
    let attached = rig
        .modern(None, again(2, "asks", state, json!({"q1": {"action": "accept"}})))
        .unwrap();
    assert_eq!(
        code(rig.modern(None, again(3, "asks", state, json!({})))),
        code::INVALID_PARAMS
    );
    assert!(run(attached).await.1.is_some());
}

#[tokio::test(start_paused = true)]
async fn work_that_waits_for_its_client_ends_after_a_while() {
    let rig = rig();
    let asked = ask(&rig, None, "asks").await;
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(rig.service.running(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((rig.service.running(), rig.endpoint.parked_calls()), (0, 0));
    let late = rig.modern(None, again(2, "asks", &asked["requestState"], json!({"q1": {}})));
    assert!(late.unwrap_err().message.contains("too late"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_another_replica_is_told_where_its_call_waits() {
    let rig = rig();
    let asked = ask(&rig, None, "asks").await;
    // Replicas share the key and the path.
    let sealer = Arc::new(Sealer::with_key(&[7; 32]));
    let replica = Endpoint::new("/mcp", rig.service.clone(), sealer, Limits::default());
    let answer = || again(2, "asks", &asked["requestState"], json!({"q1": {"action": "accept"}}));
    let refused = replica.start_modern(&caller(None), answer(), Wire::Pipe).unwrap_err();
    assert_eq!(refused.code, code::INVALID_PARAMS);
    assert!(refused.message.contains("another replica"), "{refused:?}");
    assert!(refused.message.contains("may have taken effect"), "{refused:?}");
    assert!(!refused.message.contains("too late"), "{refused:?}");
    let done = response(rig.modern(None, answer())).await;
    assert_eq!(done["result"]["answer"]["action"], "accept");
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_its_client_for_as_long_as_a_question() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_and_gives_up").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let done = response(rig.modern(None, again(2, "asks_and_gives_up", &asked["requestState"], json!({})))).await;
    assert_eq!(done["result"]["gave_up"], true);
    ask(&rig, None, "asks_and_gives_up").await;
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert_eq!(rig.endpoint.parked_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_request_that_answers_ends_the_work() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_twice").await;
    drop(
        rig.modern(None, again(2, "asks_twice", &asked["requestState"], json!({})))
            .unwrap(),
    );
    tokio::task::yield_now().await;
    assert_eq!((rig.service.running(), rig.endpoint.parked_calls()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_after_an_answer_is_an_error() {
    let rig = rig();
    let asked = ask(&rig, None, "asks_and_panics").await;
    let answers = json!({"q1": {"action": "accept"}});
    let done = response(rig.modern(None, again(2, "asks_and_panics", &asked["requestState"], answers))).await;
    assert_eq!(done["error"]["code"], code::INTERNAL_ERROR);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_endpoint_ends_all_work() {
    let rig = rig();
    ask(&rig, None, "asks").await;
    let Rig { endpoint, service } = rig;
    drop(endpoint);
    tokio::task::yield_now().await;
    assert_eq!(service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_bounded_per_principal_and_in_all() {
    let limits = Limits {
        parked_calls: 3,
        parked_calls_per_principal: 2,
        ..Limits::default()
    };
    let rig = rig_with(limits);
    let state = async |who| ask(&rig, Some(who), "asks").await["requestState"].clone();
    let (first, second) = (state("ada").await, state("ada").await);
    ask(&rig, Some("bob"), "asks").await;
    assert_eq!(rig.service.running(), 3);
    // A third call of hers ends the one that has waited longest.
    let third = state("ada").await;
    tokio::task::yield_now().await;
    assert_eq!((rig.service.running(), rig.endpoint.parked_calls()), (3, 3));
    let late = rig.modern(Some("ada"), again(2, "asks", &first, json!({"q1": {}})));
    let refused = late.unwrap_err();
    assert_eq!(refused.code, code::INVALID_PARAMS);
    assert!(refused.message.contains("too many later calls"), "{refused:?}");
    // There is no room for a client that has nothing to end.
    let full = response(rig.modern(Some("eve"), asking(1, "asks"))).await;
    assert_eq!(full["error"]["code"], code::BUSY);
    for state in [second, third] {
        let done = response(rig.modern(Some("ada"), again(2, "asks", &state, json!({"q1": {}})))).await;
        assert!(done["result"].is_object(), "{done}");
    }
    ask(&rig, Some("eve"), "asks").await;
}

#[tokio::test(start_paused = true)]
async fn on_a_connection_a_call_waits_for_that_connection_only() {
    let rig = rig();
    let (session, other) = (rig.connect(), rig.connect());
    let asked = response(session.start(asking(1, "asks"))).await["result"].clone();
    let state = &asked["requestState"];
    let answers = json!({"q1": {"action": "accept"}});
    assert_eq!(
        code(other.start(again(2, "asks", state, answers.clone()))),
        code::INVALID_PARAMS
    );
    assert_eq!(
        code(rig.modern(None, again(2, "asks", state, answers.clone()))),
        code::INVALID_PARAMS
    );
    // An id that is in flight is refused, and the state stays good.
    let endless = session.start(asking(5, "endless")).unwrap();
    assert_eq!(
        code(session.start(again(5, "asks", state, answers.clone()))),
        code::INVALID_REQUEST
    );
    assert_eq!(
        response(session.start(again(6, "asks", state, answers))).await["result"]["answer"]["action"],
        "accept"
    );
    drop(endless);
    response(session.start(asking(7, "asks"))).await;
    assert_eq!(rig.endpoint.parked_calls(), 1);
    drop(session);
    assert_eq!(rig.endpoint.parked_calls(), 0);
    tokio::task::yield_now().await;
    assert_eq!(rig.service.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_can_ask_with_a_state_of_its_own() {
    let rig = rig();
    let asked = ask(&rig, Some("ada"), "keeps_state").await;
    let state = asked["requestState"].as_str().unwrap();
    assert!(!state.contains("server"));
    assert_eq!(rig.service.running(), 0, "nothing waits here");
    let answers = json!({"theirs": {"action": "accept"}});
    let request = again(2, "keeps_state", &asked["requestState"], answers.clone());
    let done = response(rig.modern(Some("ada"), request)).await;
    assert_eq!(done["result"]["state"], "the server's own");
    assert_eq!(done["result"]["responses"], answers);
    for stranger in [Some("bob"), None] {
        let refused = rig.modern(stranger, again(3, "keeps_state", &asked["requestState"], json!({})));
        assert_eq!(code(refused), code::INVALID_PARAMS);
    }
    // A state that names a waiting call is of no use to the service.
    let parked = ask(&rig, Some("ada"), "asks").await["requestState"].clone();
    assert_eq!(
        code(rig.modern(Some("ada"), again(4, "keeps_state", &parked, json!({})))),
        code::INVALID_PARAMS
    );
}
