//! Results and errors of forwarded tool calls.

use pegboard::{
    Kind, ToolCall,
    config::OutputCheck,
    forward::{Forwarded, Forwarding, ResultKind},
    host::NoHost,
    serde_json::value::RawValue,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{forward::raw_server::*, support::*};

/// A token, written in parts so that secret scanners do not report this file.
const TOKEN: &str = concat!("gh", "p_", "sY7bXgSA9f5j34sRwh5yCmX4w0VvG6XqH1hN");

#[tokio::test(start_paused = true)]
async fn a_result_is_passed_on_byte_by_byte() {
    let long = format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
        r#"line\n\u00e9 \"x\" \\ é "#.repeat(60_000)
    );
    for json in [
        "{}",
        r#"{ "content" : [ { "text" : "r\u00e9sum\u00e9 \ud83d\ude00 \/ \"q\"\n" , "type":"text", "new":1.50 } ] , "isError" : false }"#,
        r#"{"content":[],"structuredContent":{"b":1,"a":[1E5,-0.0]},"_meta":{"x/y":null},"extension":{"z":[]}}"#,
        r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"hologram","of":[1]}]}"#,
        r#"{"content":[{"type":"text","text":"the password and the secret token of the key"}]}"#,
        &long,
    ] {
        for era in ERAS {
            let sent = json.to_owned();
            let board = RawServer::new(era).board(move |_| result(&sent));
            let tools = board.toolset_with(whole());
            let result = of_result(forward(&tools, "fx.t").await);
            assert!(result.json() == json.as_bytes(), "{}", &json[..json.len().min(200)]);
            assert_eq!((result.kind(), result.is_error()), (ResultKind::Complete, false));
            assert!(!result.has_result_type());
            board.shutdown().await;
        }
    }
}

/// The tool's schema allows everything.
#[tokio::test(start_paused = true)]
async fn arguments_with_a_key_twice_do_not_reach_the_server() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ran"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset_with(whole());
    for text in [r#"{"path":"/tmp","path":"/etc"}"#, r#"{"a":[{"b":1,"\u0062":2}]}"#] {
        let arguments: Box<RawValue> = serde_json::from_str(text).unwrap();
        let call = ToolCall::new("fx.t").arguments(&*arguments);
        match tools.forward_call(call, &Forwarding::new()).await {
            Forwarded::Failed(failure) => {
                assert_eq!(failure.kind, Kind::InvalidArguments, "{failure}");
                assert!(failure.message.contains("is given twice"), "{failure}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(handle.count("tools/call"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_masked_in_every_form_and_the_rest_stays() {
    let escaped = TOKEN.replace('g', "\\u0067");
    let nested = Value::from(json!({"a": TOKEN}).to_string()).to_string();
    let twice = Value::from(format!(r#"{{"a":"{escaped}"}}"#)).to_string();
    for text in [
        format!("\"it is {TOKEN}.\""),
        format!("\"it is {escaped}.\""),
        nested,
        twice,
    ] {
        let sent = format!(r#"{{"content":[{{"type":"text","text":{text}}}],"new":{{"x":[1]}}}}"#);
        let answer = sent.clone();
        let board = RawServer::new(pegboard::status::Era::Legacy).board(move |_| result(&answer));
        let tools = board.toolset_with(whole());
        let masked = json_of(forward(&tools, "fx.t").await);
        assert!(!masked.contains(&TOKEN[4..]), "{masked}");
        let masked: Value = serde_json::from_str(&masked).unwrap();
        assert_eq!(masked["new"], json!({"x": [1]}));
        // The reply to a call has the same text.
        let reply = call(&tools, "fx.t", json!({})).await;
        assert_eq!(masked["content"][0]["text"], reply.text(), "{sent}");
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_has_its_code_message_and_data_without_secrets() {
    for era in ERAS {
        let sent = json!({"code": -32050, "message": format!("no {TOKEN}"), "data": {"why": [TOKEN, 1]}});
        let board = RawServer::new(era).board(move |_| error(&sent));
        let tools = board.toolset_with(whole());
        let Forwarded::Error { code, message, data } = forward(&tools, "fx.t").await else {
            panic!("no error");
        };
        assert_eq!((code, message.as_str()), (-32050, "no [MASKED_GITHUB_TOKEN]"));
        assert_eq!(data, Some(json!({"why": ["[MASKED_GITHUB_TOKEN]", 1]})));
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_a_result_and_a_refused_call_a_failure() {
    let board = RawServer::new(pegboard::status::Era::Legacy)
        .board(|_| result(r#"{"content":[{"type":"text","text":"disk full"}],"isError":true}"#));
    let tools = board.toolset_with(whole());
    let result = of_result(forward(&tools, "fx.t").await);
    assert!(result.is_error() && result.json().ends_with(b"\"isError\":true}"));
    let error = board.status().servers[0].last_error.clone().unwrap();
    assert_contains(&error.message, &["disk full"]);
    for (call, kind) in [
        (ToolCall::new("fx.none"), Kind::UnknownTool),
        (ToolCall::new("fx.t").arguments(json!(5)), Kind::InvalidArguments),
    ] {
        match tools.forward_call(call, &Forwarding::new()).await {
            Forwarded::Failed(failure) => assert_eq!(failure.kind, kind),
            other => panic!("{other:?}"),
        }
    }
    board.shutdown().await;
}

/// Malformed results fail the call, as they do for other calls.
#[tokio::test(start_paused = true)]
async fn a_malformed_result_is_not_passed_on() {
    for json in [
        r#"{"a":01}"#,
        r#"{"a":"\x"}"#,
        r#"[]"#,
        r#"{"isError":true,"isError":false}"#,
    ] {
        let board = RawServer::new(pegboard::status::Era::Legacy).board(move |_| result(json));
        let tools = board.toolset_with(whole());
        match forward(&tools, "fx.t").await {
            Forwarded::Failed(failure) => {
                assert_eq!(
                    (failure.kind, failure.may_have_executed),
                    (Kind::Internal, true),
                    "{json}"
                );
            }
            other => panic!("{json}: {other:?}"),
        }
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_a_view_and_of_the_config_apply_to_results() {
    let long = json!({"content": [{"type": "text", "text": "long ".repeat(50_000)}], "extension": 1}).to_string();
    let answer = long.clone();
    let board = RawServer::new(pegboard::status::Era::Legacy).board(move |_| result(&answer));
    let cut = json_of(forward(&board.toolset_with(pegboard::View::new().cut_results(1000)), "fx.t").await);
    assert!(cut.len() < 2000, "{}", cut.len());
    assert_eq!(json_of(forward(&board.toolset_with(whole()), "fx.t").await), long);
    board.shutdown().await;

    let fake = FakeServer::new("fx").tool(
        Tool::new("t")
            .output_schema(json!({"type": "object", "required": ["a"]}))
            .answers_structured(json!({"b": 1})),
    );
    let (board, _handle) = in_memory_with(
        &fake,
        set_to(|settings| settings.policy.output_check = OutputCheck::Error),
    );
    let result = of_result(forward(&board.toolset_with(whole()), "fx.t").await);
    assert_eq!(result.is_error(), cfg!(feature = "validation"));
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_and_meta_are_sent_as_the_client_wrote_them() {
    let server = RawServer::new(pegboard::status::Era::Legacy);
    let board = server.board(|_| text("ok"));
    let tools = board.toolset_with(whole());
    let arguments = RawValue::from_string("{ \"b\" :\n 1.50, \"a\": \"\\u00e9\" }".to_owned()).unwrap();
    let call = ToolCall::new("fx.t").arguments(&*arguments).meta("traceparent", "00-a");
    tools.forward_call(call, &Forwarding::new()).await;
    let params = &server.received("tools/call")[0]["params"];
    assert_eq!(params["arguments"], json!({"a": "é", "b": 1.5}));
    assert_eq!(params["_meta"]["traceparent"], "00-a");
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_and_dropping_the_call_cancels_it() {
    for era in ERAS {
        let server = RawServer::new(era);
        let board = server.board(|_| None);
        let tools = board.toolset_with(whole());
        let (steps, mut progress) = mpsc::channel(8);
        let calling = tokio::spawn(async move {
            let call = ToolCall::new("fx.t").progress(steps);
            tools.forward_call(call, &Forwarding::new()).await
        });
        let request = &server.wait_for("tools/call", 1).await[0];
        let token = &request["params"]["_meta"]["progressToken"];
        let params = json!({"progressToken": token, "progress": 0.5, "total": 1, "message": "half"});
        server
            .say(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await;
        let step = progress.recv().await.unwrap();
        assert_eq!((step.progress, step.message.as_deref()), (0.5, Some("half")));
        calling.abort();
        let cancelled = server.wait_for("notifications/cancelled", 1).await;
        assert_eq!(cancelled[0]["params"]["requestId"], request["id"]);
        assert_eq!(board.status().servers[0].in_flight, 0);
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_trusted_server_may_send_invisible_characters_and_others_may_not() {
    let json = r#"{"content":[{"type":"text","text":"a\u200bb"}]}"#;
    for (trust, want) in [(true, json), (false, r#"{"content":[{"type":"text","text":"ab"}]}"#)] {
        let server = RawServer::new(pegboard::status::Era::Legacy);
        let settings = set_to(|settings| (settings.policy.trust, settings.policy.result.clean) = (trust, true));
        let board = server.board_with(settings, NoHost, move |_| result(json));
        let passed = json_of(forward(&board.toolset_with(whole()), "fx.t").await);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&passed), value(want));
        board.shutdown().await;
    }
}
