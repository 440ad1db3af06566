//! Requests other than tool calls, notifications, and what a server declares about itself.

use pegboard::{
    Kind,
    forward::{Forwarded, Forwarding, ResultKind},
    serde_json::value::RawValue,
    status::Era,
    watch::{ListKind, ServerEvent},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::forward::raw_server::*;

/// A token, written in parts so that secret scanners do not report this file.
const TOKEN: &str = concat!("gh", "p_", "sY7bXgSA9f5j34sRwh5yCmX4w0VvG6XqH1hN");

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn any_request_is_passed_on_with_its_params_and_its_result() {
    for era in ERAS {
        let server = RawServer::new(era);
        let board = server.board(|message| {
            result(format!(
                r#"{{ "method":"{}", "n":1.0 }}"#,
                message["method"].as_str().unwrap()
            ))
        });
        let tools = board.toolset_with(whole());
        for method in [
            "resources/read",
            "prompts/get",
            "completion/complete",
            "com.example/do_it",
        ] {
            let params = raw(
                "{ \"uri\":\"a:b\",\n \"name\":\"p\", \"n\":1.0, \"_meta\":{\"traceparent\":\"00-a\",\"progressToken\":\"mine\",\"io.modelcontextprotocol/logLevel\":\"debug\"} }",
            );
            let passed = tools.forward("fx", method, &params, &Forwarding::new(), None).await;
            let passed = of_result(passed);
            assert_eq!(
                passed.json(),
                format!(r#"{{ "method":"{method}", "n":1.0 }}"#).as_bytes()
            );
            assert_eq!(passed.kind(), ResultKind::Complete);
            let sent = &server.received(method)[0]["params"];
            assert_eq!(
                (&sent["uri"], &sent["name"], &sent["n"]),
                (&json!("a:b"), &json!("p"), &json!(1.0))
            );
            assert_eq!(sent["_meta"]["traceparent"], "00-a");
            assert_eq!(sent["_meta"].get("progressToken"), None);
            assert_eq!(sent["_meta"].get("io.modelcontextprotocol/logLevel"), None);
        }
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn results_and_errors_of_requests_are_masked() {
    let board = RawServer::new(Era::Legacy).board(|message| match message["method"].as_str().unwrap() {
        "resources/read" => result(json!({"contents": [{"uri": "a:b", "text": format!("it is {TOKEN}")}]}).to_string()),
        _ => error(&json!({"code": -32002, "message": TOKEN, "data": {"uri": TOKEN}})),
    });
    let tools = board.toolset_with(whole());
    let params = raw(r#"{"uri":"a:b"}"#);
    let read = tools
        .forward("fx", "resources/read", &params, &Forwarding::new(), None)
        .await;
    let read: Value = serde_json::from_str(&json_of(read)).unwrap();
    assert_eq!(read["contents"][0]["text"], "it is [MASKED_GITHUB_TOKEN]");
    match tools
        .forward("fx", "prompts/get", &raw("{}"), &Forwarding::new(), None)
        .await
    {
        Forwarded::Error { code, message, data } => {
            assert_eq!((code, message.as_str()), (-32002, "[MASKED_GITHUB_TOKEN]"));
            assert_eq!(data, Some(json!({"uri": "[MASKED_GITHUB_TOKEN]"})));
        }
        other => panic!("{other:?}"),
    }
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_concerns_other_views_or_is_no_request_is_refused() {
    let server = RawServer::new(Era::Legacy);
    let board = server.board(|_| result("{}"));
    let tools = board.toolset_with(whole());
    for (target, method, params, kind) in [
        ("fx", "tools/call", "{}", Kind::NotPermitted),
        ("fx", "tasks/list", "{}", Kind::NotPermitted),
        ("fx", "logging/setLevel", "{}", Kind::NotPermitted),
        ("fx", "a\"b", "{}", Kind::InvalidArguments),
        ("fx", "x/y", "[]", Kind::InvalidArguments),
        ("none", "x/y", "{}", Kind::Unavailable),
    ] {
        match tools
            .forward(target, method, &raw(params), &Forwarding::new(), None)
            .await
        {
            Forwarded::Failed(failure) => assert_eq!(failure.kind, kind, "{method}: {failure}"),
            other => panic!("{method}: {other:?}"),
        }
    }
    assert_eq!(server.received("tools/call").len() + server.received("x/y").len(), 0);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_request_arrives_and_dropping_it_cancels_it() {
    let server = RawServer::new(Era::Modern);
    let board = server.board(|_| None);
    let tools = board.toolset_with(whole());
    let (steps, mut progress) = mpsc::channel(8);
    let reading = tokio::spawn(async move {
        let (params, forwarding) = (raw("{}"), Forwarding::new());
        tools.forward("fx", "x/slow", &params, &forwarding, Some(steps)).await
    });
    let request = &server.wait_for("x/slow", 1).await[0];
    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 3});
    server
        .say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
        .await;
    assert_eq!(progress.recv().await.unwrap().progress, 3.0);
    reading.abort();
    let cancelled = server.wait_for("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0]["params"]["requestId"], request["id"]);
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_declaration_of_a_server_is_complete() {
    for era in ERAS {
        let board = RawServer::new(era).board(|_| None);
        let info = board.toolset().server_info("fx").await.unwrap();
        assert_eq!(info.era, era);
        assert_eq!(
            Value::Object(info.server_info),
            json!({"name": "raw", "version": "1", "title": "Raw", "icons": [{"src": "a:b"}]})
        );
        assert_eq!(info.capabilities["x"], json!({"a": 1}));
        assert_eq!(info.instructions.as_deref(), Some("be kind"));
        assert!(info.protocol_version.starts_with("202"));
        assert_eq!(
            board.toolset().server_info("none").await.unwrap_err().kind,
            Kind::Unavailable
        );
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_are_passed_on_and_those_of_tasks_to_their_client_only() {
    let server = RawServer::new(Era::Legacy);
    let board = server.board(|_| result(r#"{"task":{"taskId":"job-1","status":"working"}}"#));
    let (tools, other) = (board.toolset_with(whole()), board.toolset_with(whole()));
    let forwarding = Forwarding::new().returns_tasks().params(raw(r#"{"task":{}}"#));
    tools
        .forward_call(pegboard::ToolCall::new("fx.task"), &forwarding)
        .await;
    let (mut events, mut others) = (tools.events("fx").unwrap(), other.events("fx").unwrap());
    let notify = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        server.say(message)
    };
    notify("notifications/tools/list_changed", json!({})).await;
    notify(
        "notifications/tasks/status",
        json!({"taskId": "job-1", "status": "working", "x": 1}),
    )
    .await;
    notify(
        "notifications/tasks/status",
        json!({"taskId": "job-2", "status": "working"}),
    )
    .await;
    notify("notifications/com.example/x", json!({"a": TOKEN})).await;
    let list = ServerEvent::ListChanged { list: ListKind::Tools };
    assert_eq!(*events.next().await.unwrap(), list);
    match &*events.next().await.unwrap() {
        ServerEvent::TaskStatus { id, params } => {
            assert_eq!((id.as_str(), &params["x"]), ("job-1", &json!(1)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(*others.next().await.unwrap(), list);
    for events in [&mut events, &mut others] {
        match &*events.next().await.unwrap() {
            ServerEvent::Other { method, params } => {
                assert_eq!(method, "notifications/com.example/x");
                assert_eq!(params, &json!({"a": "[MASKED_GITHUB_TOKEN]"}));
            }
            other => panic!("{other:?}"),
        }
    }
    board.shutdown().await;
}
