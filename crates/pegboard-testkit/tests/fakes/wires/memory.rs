//! In memory, on paused time.

use std::time::Duration;

use pegboard_protocol::meta;
use pegboard_testkit::{Answer, Ask, Block, Era, FakeServer, Fault, MemoryHandle, Refusal, Tool, When};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, split};

use crate::wires::lines::{Lines, call, initialize_params, modern, request};

type Client = Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

fn start(fake: &FakeServer) -> (Client, MemoryHandle) {
    let (stream, handle) = fake.connect();
    (client(stream), handle)
}

fn client(stream: DuplexStream) -> Client {
    let (reader, writer) = split(stream);
    Lines::new(reader, writer)
}

fn k8s() -> FakeServer {
    FakeServer::new("k8s").tool(Tool::new("get_pods").answers_text("pod-1"))
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_shakes_hands_lists_and_answers() {
    let (mut client, handle) = start(&k8s());
    let hello = client.initialize().await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["serverInfo"]["name"], "k8s");
    let list = client.request(1, "tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "get_pods");
    assert!(list["result"].get("resultType").is_none());
    client.send(call(2, "get_pods", json!({}))).await;
    assert_eq!(client.message().await["result"]["content"][0]["text"], "pod-1");
    assert_eq!(client.request(3, "ping", json!({})).await["result"], json!({}));
    assert_eq!(
        client.request(4, "resources/list", json!({})).await["error"]["code"],
        -32601
    );
    let methods: Vec<String> = handle.requests().into_iter().map(|received| received.method).collect();
    let expected = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "ping",
        "resources/list",
    ];
    assert_eq!(methods, expected);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_version_is_answered_with_the_newest_spoken() {
    for (spoken, wanted, expected) in [
        (&["2024-11-05", "2025-03-26"][..], "2024-11-05", "2024-11-05"),
        (&["2024-11-05", "2025-03-26"], "2025-11-25", "2025-03-26"),
    ] {
        let (mut client, _handle) = start(&k8s().versions(spoken));
        let hello = client.request(0, "initialize", initialize_params(wanted)).await;
        assert_eq!(hello["result"]["protocolVersion"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_wants_its_meta_and_marks_its_results() {
    let (mut client, _handle) = start(&k8s().era(Era::Modern));
    let hello = client.request(0, "server/discover", modern(json!({}))).await;
    assert_eq!(hello["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(hello["result"]["resultType"], "complete");
    let list = client.request(1, "tools/list", modern(json!({}))).await;
    assert_eq!(list["result"]["ttlMs"], 60_000);
    assert_eq!(list["result"]["cacheScope"], "public");
    assert_eq!(
        client.request(2, "tools/list", json!({})).await["error"]["code"],
        -32602
    );
    assert_eq!(
        client.request(3, "ping", modern(json!({}))).await["error"]["code"],
        -32601
    );
    assert_eq!(
        client.request(4, "initialize", initialize_params("2025-06-18")).await["error"]["code"],
        -32601
    );
    let mut params = modern(json!({}));
    params["_meta"][meta::PROTOCOL_VERSION] = "2030-01-01".into();
    let refused = client.request(5, "tools/list", params).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[tokio::test(start_paused = true)]
async fn a_server_of_both_eras_serves_each_request_in_its_own() {
    let (mut client, _handle) = start(&k8s().era(Era::Both));
    assert_eq!(client.initialize().await["result"]["protocolVersion"], "2025-06-18");
    let modern_list = client.request(1, "tools/list", modern(json!({}))).await;
    let legacy_list = client.request(2, "tools/list", json!({})).await;
    assert_eq!(modern_list["result"]["resultType"], "complete");
    assert!(legacy_list["result"].get("resultType").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_era_that_is_not_spoken_is_refused_as_the_script_says() {
    let discover = || request(1, "server/discover", modern(json!({})));
    let (mut client, _handle) = start(&k8s().on_discover(Refusal::Error { code: -32602 }));
    client.send(discover()).await;
    assert_eq!(client.message().await["error"]["code"], -32602);

    let (mut client, _handle) = start(&k8s().on_discover(Refusal::Exit { code: 1 }));
    client.send(discover()).await;
    assert!(client.rest().await.is_empty());

    let (mut client, _handle) = start(&k8s().on_discover(Refusal::Silence));
    client.send(discover()).await;
    assert!(client.is_silent().await);
    assert_eq!(client.request(2, "ping", json!({})).await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn tools_answer_in_many_ways() {
    let blocks = vec![
        Block::text("a"),
        Block::image(),
        Block::audio(),
        Block::link("file:///a"),
        Block::unknown(),
    ];
    let fake = FakeServer::new("kinds")
        .tool(Tool::new("blocks").answers_blocks(blocks.clone()))
        .tool(Tool::new("fails").fails_with("no"))
        .tool(Tool::new("refuses").refuses(-32603, "broken"))
        .tool(Tool::new("echo").echoes())
        .tool(Tool::new("nonce").echoes_nonce())
        .tool(Tool::new("big").answers(Answer::Bytes(100_000)));
    let (mut client, _handle) = start(&fake);
    let mut ask = async |tool: &str| {
        client.send(call(1, tool, json!({ "nonce": "n1" }))).await;
        client.message().await
    };
    assert_eq!(ask("blocks").await["result"]["content"], Value::Array(blocks));
    assert_eq!(ask("fails").await["result"]["isError"], true);
    assert_eq!(ask("refuses").await["error"]["code"], -32603);
    assert_eq!(
        ask("echo").await["result"]["structuredContent"],
        json!({ "nonce": "n1" })
    );
    assert_eq!(ask("nonce").await["result"]["content"][0]["text"], "n1");
    assert_eq!(
        ask("big").await["result"]["content"][0]["text"].as_str().unwrap().len(),
        100_000
    );
    assert_eq!(ask("unheard_of").await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_delay_holds_up_its_own_answer_only() {
    let fake = FakeServer::new("slow")
        .tool(Tool::new("wait").after(Duration::from_secs(60)))
        .tool(Tool::new("quick"));
    let (mut client, _handle) = start(&fake);
    client.send(call(1, "wait", json!({ "delay_ms": 5 }))).await;
    assert_eq!(
        client.request(2, "tools/call", json!({ "name": "quick" })).await["id"],
        2
    );
    let before = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(client.message().await["id"], 1);
    assert_eq!(before.elapsed().as_millis(), 60_005);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_no_answer() {
    let (mut client, _handle) =
        start(&FakeServer::new("slow").tool(Tool::new("wait").after(Duration::from_millis(50))));
    client.send(call(1, "wait", json!({}))).await;
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    assert!(client.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_gate_holds_a_call_until_the_test_opens_it() {
    let (mut client, handle) = start(&FakeServer::new("gated").tool(Tool::new("wait").waits_at("go")));
    client.send(call(1, "wait", json!({}))).await;
    assert!(client.is_silent().await);
    handle.open_gate("go");
    assert_eq!(client.message().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn progress_comes_before_the_answer() {
    let (mut client, _handle) =
        start(&FakeServer::new("p").tool(Tool::new("work").progress(2, Duration::from_secs(1))));
    let params = json!({ "name": "work", "_meta": { "progressToken": "t" } });
    client.send(request(1, "tools/call", params)).await;
    for step in 1..=2 {
        let notice = client.message().await;
        assert_eq!(
            notice["params"],
            json!({ "progressToken": "t", "progress": step, "total": 2 })
        );
    }
    assert_eq!(client.message().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_asks_the_client_even_under_the_same_id() {
    let tool = Tool::new("ask").asks(Ask::Roots).asks(Ask::PingWithTheSameId);
    let (mut client, _handle) = start(&FakeServer::new("asks").tool(tool));
    let roots = client.request(7, "tools/call", json!({ "name": "ask" })).await;
    assert_eq!(roots["method"], "roots/list");
    client
        .send(json!({ "jsonrpc": "2.0", "id": roots["id"], "result": { "roots": [] } }))
        .await;
    let ping = client.message().await;
    assert_eq!((&ping["method"], &ping["id"]), (&json!("ping"), &json!(7)));
    client.send(json!({ "jsonrpc": "2.0", "id": 7, "result": {} })).await;
    let answer = client.message().await;
    assert_eq!(answer["id"], 7);
    assert!(
        answer["result"]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("roots")
    );
}

#[tokio::test(start_paused = true)]
async fn a_modern_tool_asks_for_input_until_its_rounds_are_over() {
    let (mut client, _handle) = start(
        &FakeServer::new("mrtr")
            .era(Era::Modern)
            .tool(Tool::new("ask").needs_input(2).answers_text("done")),
    );
    let mut params = modern(json!({ "name": "ask" }));
    for round in 1..=2 {
        let question = client.request(round, "tools/call", params.clone()).await;
        assert_eq!(question["result"]["resultType"], "input_required");
        params["requestState"] = question["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "question": { "action": "accept", "content": { "colour": "red" } } });
    }
    let answer = client.request(3, "tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn notices_reach_those_who_listen() {
    let (mut client, handle) = start(&k8s());
    client.initialize().await;
    client.request(1, "ping", json!({})).await;
    handle.tools_changed().await;
    assert_eq!(client.message().await["method"], "notifications/tools/list_changed");

    let (mut client, handle) = start(&k8s().era(Era::Modern));
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let acknowledged = client.request(5, "subscriptions/listen", modern(filter)).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    client.request(6, "tools/list", modern(json!({}))).await;
    handle.notify("notifications/prompts/list_changed", Value::Null).await;
    handle.tools_changed().await;
    let notice = client.message().await;
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    assert_eq!(notice["params"]["_meta"][meta::SUBSCRIPTION_ID], 5);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_answer() {
    let ends = Fault::NoticeStreamEnds {
        after_ms: 100,
        gracefully: true,
    };
    let (mut client, handle) = start(&k8s().era(Era::Modern).fault(ends));
    client
        .request(5, "subscriptions/listen", modern(json!({ "notifications": {} })))
        .await;
    assert_eq!(client.message().await["result"]["_meta"][meta::SUBSCRIPTION_ID], 5);
    assert_eq!(handle.listeners(), 0);
}

#[tokio::test(start_paused = true)]
async fn pages_end_unless_the_script_says_otherwise() {
    let tools = (0..5).map(|number| Tool::new(format!("t{number}")));
    let paged = FakeServer::new("paged").tools(tools).pages_of(2);
    async fn cursors(fake: &FakeServer, limit: usize) -> Vec<Value> {
        let (mut client, _handle) = start(fake);
        let mut cursors = vec![];
        let mut params = json!({});
        while cursors.len() < limit {
            let page = client.request(1, "tools/list", params.clone()).await;
            let Some(next) = page["result"].get("nextCursor") else {
                break;
            };
            params["cursor"] = next.clone();
            cursors.push(next.clone());
        }
        cursors
    }
    assert_eq!(cursors(&paged, 9).await, ["page-1", "page-2"]);
    assert_eq!(cursors(&paged.clone().fault(Fault::EndlessPages), 200).await.len(), 200);
    assert_eq!(
        cursors(&paged.fault(Fault::RepeatedCursor), 3).await,
        ["again", "again", "again"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_killed_server_ends_the_stream_and_can_be_dialled_again() {
    let dies = k8s().fault_on(When::tool("get_pods").nth(2), Fault::DiesAfterExecuting { code: 1 });
    let (mut client, handle) = start(&dies);
    assert_eq!(
        client.request(1, "tools/call", json!({ "name": "get_pods" })).await["id"],
        1
    );
    client.send(call(2, "get_pods", json!({}))).await;
    assert!(client.rest().await.is_empty());
    let mut again = self::client(handle.connect());
    assert_eq!(again.request(3, "ping", json!({})).await["id"], 3);
    handle.kill();
    assert!(again.rest().await.is_empty());
    assert_eq!(handle.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn later_starts_follow_another_script() {
    let fake = k8s()
        .fault(Fault::SilentHandshake)
        .then_after(1, k8s().era(Era::Modern));
    let (mut client, handle) = start(&fake);
    client
        .send(request(0, "initialize", initialize_params("2025-06-18")))
        .await;
    assert!(client.is_silent().await);
    let mut second = self::client(handle.connect());
    assert!(second.request(0, "server/discover", modern(json!({}))).await["result"].is_object());
}

/// Calls the tool once. Returns the raw lines until silence or the end.
async fn lines_of(fault: Fault) -> Vec<String> {
    let (mut client, _handle) = start(&k8s().fault(fault));
    client.send(call(3, "get_pods", json!({}))).await;
    let mut lines = vec![];
    while !client.is_silent().await {
        let line = client.line().await;
        if line.is_empty() {
            break;
        }
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn faulty_answers_are_faulty_in_their_own_way() {
    let check = async |fault: Fault, expected: &[&str]| {
        let lines = lines_of(fault.clone()).await;
        assert_eq!(lines.len(), expected.len(), "{fault:?}: {lines:?}");
        for (line, part) in lines.iter().zip(expected) {
            assert!(line.contains(part), "{fault:?}: {part} is not in {line}");
        }
    };
    check(Fault::NeverAnswers, &[]).await;
    check(Fault::AnswersTwice, &["\"id\":3", "\"id\":3"]).await;
    check(Fault::WrongId, &["\"id\":777777"]).await;
    check(Fault::StringId, &["\"id\":\"3\""]).await;
    check(Fault::FloatId, &["\"id\":3.0"]).await;
    check(Fault::NullId, &["\"id\":null"]).await;
    check(Fault::MissingId, &["{\"jsonrpc\":\"2.0\",\"result\""]).await;
    check(Fault::StrayAnswers { count: 2 }, &["9000000", "9000001", "\"id\":3"]).await;
    check(Fault::InvalidUtf8, &["\u{fffd}"]).await;
    check(Fault::LineSeparator, &["\u{2028}"]).await;
    check(Fault::NulByte, &["\0{"]).await;
    check(Fault::Bom, &["\u{feff}{"]).await;
    check(Fault::Crlf, &["}\r"]).await;
    check(Fault::Nested { depth: 200_000 }, &["[[[["]).await;
    check(Fault::DuplicateKeys, &["the other"]).await;
    check(Fault::CaseVariantKeys, &["\"Result\""]).await;
    check(Fault::UnknownResultType, &["sideways"]).await;
    check(Fault::CutThenEof, &["{"]).await;
    check(Fault::NoiseBeforeAnswer { lines: 1 }, &["no JSON", "\"id\":3"]).await;
    check(
        Fault::Oversized {
            bytes: 1 << 20,
            with_id: true,
            then_valid: false,
        },
        &["\"id\":3"],
    )
    .await;
    check(
        Fault::Oversized {
            bytes: 1 << 20,
            with_id: false,
            then_valid: true,
        },
        &["nobody", "\"id\":3"],
    )
    .await;
    check(Fault::ProgressFlood { count: 2 }, &["progress", "progress", "\"id\":3"]).await;
    check(
        Fault::ServerRequests {
            method: "roots/list".into(),
            count: 1,
        },
        &["roots/list", "\"id\":3"],
    )
    .await;
    check(
        Fault::AnswersError {
            code: -32000,
            message: "no".into(),
            data: None,
        },
        &["-32000"],
    )
    .await;
    check(Fault::ClosesOutput, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_comes_even_after_the_cancel() {
    let (mut client, _handle) = start(&k8s().fault(Fault::LateAnswer { ms: 60_000 }));
    client.send(call(1, "get_pods", json!({}))).await;
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(client.message().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn faulty_lists_hold_what_the_fault_adds() {
    let names = async |fault: Fault| {
        let (mut client, _handle) = start(&k8s().fault(fault));
        let list = client.request(1, "tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Fault::DuplicateTools).await, ["get_pods", "get_pods"]);
    assert_eq!(names(Fault::ManyTools { count: 3000 }).await.len(), 3001);
    assert_eq!(names(Fault::LongToolName { length: 300 }).await[1].len(), 300);
    assert_eq!(names(Fault::BrokenSchema).await, ["get_pods", "broken_schema"]);
    assert_eq!(names(Fault::NoInputSchema).await, ["get_pods", "no_schema"]);
}
