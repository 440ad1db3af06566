//! Input rounds and tasks that the client of the program takes over.

use pegboard::{
    Host, Kind, ToolCall,
    forward::{Forwarded, Forwarding, ResultKind},
    host::{ElicitAnswer, Elicitation, HostContext},
    serde_json::value::RawValue,
    status::Era,
};
use serde_json::{Value, json};
use std::pin::Pin;

use crate::forward::raw_server::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A state that breaks if it is parsed or escaped again.
const STATE: &str = r#""\ud83e\udd80 \"\\\/ {\"a\":1.0} password=hunter2hunter2""#;

/// Asks for a colour until it gets the state back.
fn asking(message: &Value) -> Part {
    let params = &message["params"];
    if params["requestState"] == serde_json::from_str::<Value>(STATE).unwrap() {
        assert_eq!(
            params["inputResponses"],
            json!({"c": {"action": "accept", "content": {"colour": "red"}}})
        );
        return result(r#"{"resultType":"complete","content":[{"type":"text","text":"red"}],"x":1.0}"#);
    }
    result(format!(
        r#"{{"resultType":"input_required","inputRequests":{{"c":{{"method":"elicitation/create","params":{{"message":"Which?","requestedSchema":{{"type":"object","properties":{{"colour":{{"type":"string"}}}}}}}}}}}},"requestState":{STATE}}}"#
    ))
}

#[tokio::test(start_paused = true)]
async fn a_request_for_input_is_returned_and_the_input_is_passed_on() {
    let server = RawServer::new(Era::Modern);
    let board = server.board(asking);
    let tools = board.toolset_with(whole());
    let capabilities = "{\n\"elicitation\":{\"form\":{}},\"extensions\":{\"com.example/x\":{\"v\":2}}}";
    let forwarding = Forwarding::new()
        .returns_input_requests()
        .capabilities(raw(capabilities));
    let asked = of_result(tools.forward_call(ToolCall::new("fx.t"), &forwarding).await);
    assert_eq!(
        (asked.kind(), asked.has_result_type()),
        (ResultKind::InputRequired, true)
    );
    let text = String::from_utf8(asked.json().to_vec()).unwrap();
    let asked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(asked["requestState"], serde_json::from_str::<Value>(STATE).unwrap());
    assert_eq!(asked["inputRequests"]["c"]["params"]["message"], "Which?");
    let params = format!(
        "{{ \"inputResponses\": {{\"c\":\n{{\"action\":\"accept\",\"content\":{{\"colour\":\"red\"}}}}}}, \"requestState\":{STATE}, \"name\":\"other\", \"ext\":[1.0] }}"
    );
    let forwarding = forwarding.params(raw(&params));
    let done = json_of(tools.forward_call(ToolCall::new("fx.t"), &forwarding).await);
    assert_eq!(
        done,
        r#"{"resultType":"complete","content":[{"type":"text","text":"red"}],"x":1.0}"#
    );
    let sent = server.received("tools/call");
    assert_eq!(
        (&sent[1]["params"]["name"], &sent[1]["params"]["ext"]),
        (&json!("t"), &json!([1.0]))
    );
    for request in &sent {
        let meta = &request["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            serde_json::from_str::<Value>(capabilities).unwrap()
        );
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientInfo"]["name"].is_string());
    }
    board.shutdown().await;
}

/// Answers every form with `red`.
struct Red;

impl Host for Red {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        _request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        let content = json!({"colour": "red"}).as_object().cloned().unwrap();
        Box::pin(async move { ElicitAnswer::Accept(content) })
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_option_the_host_answers_and_the_final_result_is_passed_on() {
    let board = RawServer::new(Era::Modern).board(asking);
    let tools = board.toolset_with(whole().host(Red));
    let done = json_of(forward(&tools, "fx.t").await);
    assert_eq!(
        done,
        r#"{"resultType":"complete","content":[{"type":"text","text":"red"}],"x":1.0}"#
    );
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_is_returned_and_polled_by_the_client_that_started_it_only() {
    for era in ERAS {
        let created = match era {
            Era::Legacy => r#"{"task":{"taskId":"job-1","status":"working","createdAt":"x"},"_meta":{"a":1}}"#,
            _ => r#"{"resultType":"task","taskId":"job-1","status":"working","ttlMs":1.0}"#,
        };
        let server = RawServer::new(era);
        let board = server.board(move |message| match message["method"].as_str().unwrap() {
            "tools/call" => result(created),
            "tasks/get" => result(r#"{"taskId":"job-1","status":"completed","x":1.0}"#),
            other => error(&json!({"code": -32601, "message": other})),
        });
        let tools = board.toolset_with(whole());
        let forwarding = Forwarding::new()
            .returns_tasks()
            .params(raw(r#"{"task":{"ttl":60000}}"#));
        let task = of_result(tools.forward_call(ToolCall::new("fx.task"), &forwarding).await);
        assert_eq!((task.kind(), task.json()), (ResultKind::Task, created.as_bytes()));
        assert_eq!(
            server.received("tools/call")[0]["params"]["task"],
            json!({"ttl": 60000})
        );
        let id = raw(r#"{"taskId":"job-1"}"#);
        let polled = tools.forward("fx", "tasks/get", &id, &Forwarding::new(), None).await;
        assert_eq!(json_of(polled), r#"{"taskId":"job-1","status":"completed","x":1.0}"#);
        let other = board.toolset_with(whole());
        for (tools, id) in [
            (&other, r#"{"taskId":"job-1"}"#),
            (&tools, r#"{"taskId":"job-2"}"#),
            (&tools, "{}"),
        ] {
            match tools
                .forward("fx", "tasks/get", &raw(id), &Forwarding::new(), None)
                .await
            {
                Forwarded::Failed(failure) => assert_eq!(failure.kind, Kind::NotPermitted),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(server.received("tasks/get").len(), 1);
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_option_a_task_is_polled_until_its_result_comes() {
    let server = RawServer::new(Era::Modern);
    let board = server.board(|message| match message["method"].as_str().unwrap() {
        "tools/call" => result(r#"{"resultType":"task","taskId":"job-1","status":"working"}"#),
        "tasks/get" => result(
            r#"{"resultType":"complete","taskId":"job-1","status":"completed","result":{"content":[{"type":"text","text":"done"}]}}"#,
        ),
        other => error(&json!({"code": -32601, "message": other})),
    });
    let tools = board.toolset_with(whole());
    let done: Value = serde_json::from_str(&json_of(forward(&tools, "fx.task").await)).unwrap();
    assert_eq!(done["content"], json!([{"type": "text", "text": "done"}]));
    board.shutdown().await;
}
