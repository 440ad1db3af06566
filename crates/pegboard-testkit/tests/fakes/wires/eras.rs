//! What a script means in both eras: the servers `conformance` and `everything`, over lines and over HTTP.

use pegboard_protocol::meta;
use pegboard_testkit::{Era, conformance, everything};
use serde_json::{Value, json};

use crate::wires::{
    host::{Host, Over, answer, open},
    lines::{LIMIT, call, request},
    raw_http::send,
};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const WIRES: [Over; 2] = [Over::Lines, Over::Http];

#[tokio::test]
async fn each_tool_of_the_conformance_server_answers_over_http_in_each_era() {
    for era in ERAS {
        let mut host = Host::connect(conformance(era), Over::Http).await;
        let listing = host.request("tools/list", json!({})).await.response;
        let tools = listing["result"]["tools"].as_array().unwrap().clone();
        assert!(tools.len() > 25, "{}", tools.len());
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            let arguments = json!({ "prompt": "Say yes.", "message": "Who are you?" });
            let exchange = host.call(name, arguments).await;
            let result = &exchange.response["result"];
            assert!(result["content"].is_array(), "{era:?} {name}: {exchange:?}");
            assert_eq!(
                result["isError"] == true,
                name == "test_error_handling",
                "{era:?} {name}"
            );
            let asks = name.contains("elicitation") || name.contains("sampling") || name.contains("input_required");
            let asks = asks || name == "test_missing_capability";
            assert_eq!(!exchange.asked.is_empty(), asks, "{era:?} {name}: {:?}", exchange.asked);
        }
    }
}

#[tokio::test]
async fn the_conformance_server_has_resources_templates_prompts_and_completions_in_each_era() {
    for era in ERAS {
        let mut host = Host::connect(conformance(era), Over::Http).await;
        let read = host
            .request("resources/read", json!({ "uri": "test://template/123/data" }))
            .await;
        let text = read.response["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["id"], "123", "{era:?}");
        let templates = host.request("resources/templates/list", json!({})).await.response;
        assert_eq!(templates["result"]["resourceTemplates"][0].get("text"), None);
        let missing = host
            .request("resources/read", json!({ "uri": "test://none" }))
            .await
            .response;
        let code = if era == Era::Modern { -32602 } else { -32002 };
        assert_eq!(missing["error"]["code"], code);
        assert_eq!(missing["error"]["data"]["uri"], "test://none");

        let arguments = json!({ "arg1": "hello", "arg2": "world" });
        let params = json!({ "name": "test_prompt_with_arguments", "arguments": arguments });
        let prompt = host.request("prompts/get", params).await.response;
        let text = "Prompt with arguments: arg1='hello', arg2='world'";
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], text);
        let params = json!({ "name": "test_input_required_result_prompt" });
        let prompt = host.request("prompts/get", params).await;
        assert_eq!(prompt.asked, ["elicitation/create"]);
        let told = prompt.response["result"]["messages"][1]["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            serde_json::from_str::<Value>(&told).unwrap(),
            json!({ "user_context": answer("elicitation/create") })
        );

        let params = json!({
            "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
            "argument": { "name": "arg1", "value": "par" },
        });
        let completed = host.request("completion/complete", params).await.response;
        assert_eq!(
            completed["result"]["completion"]["values"],
            json!(["paris", "park", "party"])
        );
    }
}

#[tokio::test]
async fn a_call_has_the_same_result_in_each_era_and_on_each_wire() {
    let tools = [
        "echo",
        "elicit",
        "elicit_url",
        "sample",
        "roots",
        "interview",
        "progress",
        "log",
    ];
    for tool in tools {
        let mut results = Vec::new();
        for (era, over) in ERAS.into_iter().flat_map(|era| WIRES.map(|over| (era, over))) {
            let mut host = Host::connect(everything("all", era), over).await;
            host.meta = json!({ meta::LOG_LEVEL: "debug", "progressToken": "p" });
            let mut params = json!({ "name": tool, "arguments": { "prompt": "Say yes." } });
            if era == Era::Legacy {
                params["_meta"] = json!({ "progressToken": "p" });
            }
            let exchange = host.request("tools/call", params).await;
            results.push((
                exchange.content().clone(),
                exchange.asked.clone(),
                exchange.notices("notifications/progress").len(),
                exchange.notices("notifications/message").len(),
            ));
        }
        let (content, asked, progress, logs) = &results[0];
        assert!(content.is_array(), "{tool}: {results:?}");
        assert!(
            results.iter().all(|result| result == &results[0]),
            "{tool}: {results:?}"
        );
        assert_eq!(asked.len(), content.as_array().unwrap().len() - 1, "{tool}");
        assert_eq!(
            (*progress, *logs),
            (3 * usize::from(tool == "progress"), 3 * usize::from(tool == "log"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_gets_the_log_from_its_level_on() {
    let mut host = Host::connect(everything("all", Era::Legacy), Over::Lines).await;
    assert_eq!(host.call("log", json!({})).await.notices.len(), 3);
    host.request("logging/setLevel", json!({ "level": "warning" })).await;
    assert_eq!(host.call("log", json!({})).await.notices.len(), 2);

    let mut host = Host::connect(everything("all", Era::Modern), Over::Lines).await;
    assert_eq!(host.call("log", json!({})).await.notices.len(), 0);
    host.meta = json!({ meta::LOG_LEVEL: "error" });
    let heard = host.call("log", json!({})).await;
    assert_eq!(heard.notices[0]["params"]["data"], "very loud");
    assert_eq!(heard.notices.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_refuses_what_it_did_not_send() {
    let mut host = Host::connect(everything("all", Era::Modern), Over::Lines).await;
    let asked = {
        let params = host.with_meta(json!({ "name": "interview" }));
        host.lines().request(1, "tools/call", params).await
    };
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let responses = json!({ "colour": answer("elicitation/create") });
    let wrong = [
        (
            "interview",
            json!({ "inputResponses": responses, "requestState": format!("{state}x") }),
        ),
        ("interview", json!({ "inputResponses": responses, "requestState": 7 })),
        ("elicit", json!({ "inputResponses": responses, "requestState": state })),
        ("elicit", json!({ "inputResponses": null })),
        ("elicit", json!({ "inputResponses": { "colour": 12345 } })),
    ];
    for (tool, mut params) in wrong {
        params["name"] = tool.into();
        let params = host.with_meta(params);
        let refused = host.lines().request(2, "tools/call", params.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{params}");
    }
    let params = host.with_meta(json!({ "name": "elicit", "inputResponses": { "other": responses["colour"] } }));
    let again = host.lines().request(3, "tools/call", params).await;
    assert_eq!(again["result"]["resultType"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_asks_only_what_the_client_can_answer() {
    let mut host = Host::connect(conformance(Era::Modern), Over::Lines).await;
    host.meta = json!({ meta::CLIENT_CAPABILITIES: { "sampling": {} } });
    let asked = host
        .call("test_input_required_result_capabilities", json!({}))
        .await
        .asked;
    assert_eq!(asked, ["sampling/createMessage"]);
    host.meta = json!({ meta::CLIENT_CAPABILITIES: {} });
    let refused = host.call("test_missing_capability", json!({})).await.response;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"],
        json!({ "sampling": {} })
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_refuses_a_legacy_question_gets_a_failed_result() {
    let mut host = Host::connect(everything("all", Era::Legacy), Over::Lines).await;
    host.lines().send(call(1, "sample", json!({ "prompt": "Why?" }))).await;
    let question = host.message().await;
    assert_eq!(question["id"], "word");
    assert_eq!(question["params"]["messages"][0]["content"]["text"], "Why?");
    let error = json!({ "code": -32601, "message": "no model" });
    let reply = json!({ "jsonrpc": "2.0", "id": "word", "error": error });
    host.lines().send(reply).await;
    assert_eq!(host.message().await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn questions_of_two_calls_have_ids_of_their_own() {
    let mut host = Host::connect(everything("all", Era::Legacy), Over::Lines).await;
    let mut ids = Vec::new();
    for number in 1..=2 {
        host.lines().send(call(number, "elicit", json!({}))).await;
        ids.push(host.message().await["id"].clone());
    }
    assert_eq!(ids, ["colour", "colour-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_list_is_announced_in_each_era() {
    for era in ERAS {
        let mut host = Host::connect(everything("all", era), Over::Lines).await;
        if host.modern {
            listen(&mut host, json!({ "toolsListChanged": true })).await;
        }
        let before = tool_count(&mut host).await;
        let changed = host.call("change_tools", json!({})).await;
        assert_eq!(changed.notices[0]["method"], "notifications/tools/list_changed");
        assert_eq!(tool_count(&mut host).await, before + 1);
        host.call("change_tools", json!({})).await;
        assert_eq!(tool_count(&mut host).await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_resource_is_announced_to_its_subscribers_only() {
    for era in ERAS {
        let mut host = Host::connect(everything("all", era), Over::Lines).await;
        let unheard = host.call("change_resource", json!({ "text": "second" })).await;
        assert_eq!(unheard.notices.len(), 0, "{era:?}");
        if host.modern {
            listen(&mut host, json!({ "resourceSubscriptions": ["note://1"] })).await;
        } else {
            host.request("resources/subscribe", json!({ "uri": "note://1" })).await;
        }
        let heard = host.call("change_resource", json!({ "text": "third" })).await;
        assert_eq!(heard.notices[0]["params"]["uri"], "note://1", "{era:?}");
        let read = host
            .request("resources/read", json!({ "uri": "note://1" }))
            .await
            .response;
        assert_eq!(read["result"]["contents"][0]["text"], "third");
        if !host.modern {
            host.request("resources/unsubscribe", json!({ "uri": "note://1" }))
                .await;
            let unheard = host.call("change_resource", json!({ "text": "fourth" })).await;
            assert_eq!(unheard.notices.len(), 0);
        }
    }
}

async fn tool_count(host: &mut Host) -> usize {
    let listing = host.request("tools/list", json!({})).await.response;
    listing["result"]["tools"].as_array().unwrap().len()
}

async fn listen(host: &mut Host, filter: Value) {
    let params = host.with_meta(json!({ "notifications": filter }));
    let acknowledged = host.lines().request(99, "subscriptions/listen", params).await;
    assert_eq!(acknowledged["params"]["_meta"][meta::SUBSCRIPTION_ID], 99);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_in_the_log() {
    let (stream, handle) = everything("all", Era::Legacy).connect();
    let (reader, writer) = tokio::io::split(stream);
    let mut client = crate::wires::lines::Lines::new(reader, writer);
    client.initialize().await;
    client.send(call(5, "slow", json!({}))).await;
    let params = json!({ "requestId": 5 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    client.send(cancel).await;
    handle.wait_for("$cancelled", 1).await;
    let entry = handle.requests().into_iter().find(|entry| entry.method == "$cancelled");
    assert_eq!(entry.unwrap().id, Some(json!(5)));
}

#[tokio::test]
async fn a_modern_client_cancels_by_closing_its_stream() {
    let server = everything("all", Era::Modern).serve_http().await.unwrap();
    let params = crate::wires::lines::modern(json!({ "name": "slow" }));
    let stream = open(server.address(), "", &request(5, "tools/call", params)).await;
    server.wait_for("tools/call", 1).await;
    drop(stream);
    let cancelled = server.wait_for("$cancelled", 1);
    tokio::time::timeout(LIMIT, cancelled).await.expect("noticed in time");
}

#[tokio::test]
async fn a_request_for_another_host_is_refused() {
    let server = conformance(Era::Both).serve_http().await.unwrap();
    let status = async |headers: &[(&str, &str)]| {
        let mut all = vec![("accept", "application/json, text/event-stream")];
        all.extend_from_slice(headers);
        let body = request(1, "initialize", crate::wires::lines::initialize_params("2025-11-25")).to_string();
        send(server.address(), "POST /mcp", &all, &body, LIMIT)
            .await
            .unwrap()
            .status
    };
    assert_eq!(status(&[]).await, 200);
    assert_eq!(status(&[("origin", "http://localhost:3000")]).await, 200);
    assert_eq!(status(&[("origin", "http://[::1]:3000")]).await, 200);
    for origin in ["http://evil.example.com", "http://127.0.0.1.evil.example.com", "null"] {
        assert_eq!(status(&[("origin", origin)]).await, 403, "{origin}");
    }
    let raw = "POST /mcp HTTP/1.1\r\nhost: evil.example.com\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(raw_status(server.address(), raw).await, "403");
}

async fn raw_status(address: std::net::SocketAddr, request: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = String::new();
    stream.read_to_string(&mut head).await.unwrap();
    head.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_task_is_made_polled_and_read_in_each_era_and_on_each_wire() {
    for (era, over) in ERAS.into_iter().flat_map(|era| WIRES.map(|over| (era, over))) {
        let mut host = Host::connect(everything("all", era), over).await;
        let made = host
            .request("tools/call", json!({ "name": "task", "task": {} }))
            .await
            .response;
        let task = if host.modern {
            assert_eq!(made["result"]["resultType"], "task");
            &made["result"]
        } else {
            &made["result"]["task"]
        };
        assert_eq!(task["status"], "working", "{made}");
        let id = json!({ "taskId": task["taskId"] });
        let polled = host.request("tasks/get", id.clone()).await.response;
        assert_eq!(polled["result"]["status"], "completed");
        let result = if host.modern {
            polled["result"]["result"].clone()
        } else {
            host.request("tasks/result", id).await.response["result"].clone()
        };
        assert_eq!(result["content"][0]["text"], "ok", "{era:?} {over:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_a_round_are_asked_together() {
    let mut host = Host::connect(conformance(Era::Legacy), Over::Lines).await;
    let tool = "test_input_required_result_multiple_inputs";
    host.lines().send(call(1, tool, json!({}))).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(host.message().await["id"].clone());
    }
    assert_eq!(ids, ["user_name", "greeting", "client_roots"]);
    assert!(host.lines().is_silent().await);
}
