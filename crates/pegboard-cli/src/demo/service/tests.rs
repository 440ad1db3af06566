use std::sync::Arc;

use pegboard_gateway::InMemory;
use pegboard_protocol::code;

use super::*;

const MODERN: &str = Version::LATEST_MODERN.as_str();

/// A client after its handshake, or one that needs none.
async fn client(version: &str) -> InMemory {
    let mut client = InMemory::connect(Arc::new(Demo::new(".".into()))).unwrap();
    if version != MODERN {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version}});
        client.send(&hello).await;
        assert_eq!(client.receive().await.unwrap()["result"]["protocolVersion"], version);
    }
    client
}

async fn ask(version: &str, method: &str, mut params: Value) -> Result<Value, i64> {
    let mut client = client(version).await;
    if version == MODERN {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        .await;
    let mut answer = client.receive().await.unwrap();
    assert_eq!(answer["id"], 1);
    match answer["error"]["code"].as_i64() {
        Some(code) => Err(code),
        None => Ok(answer["result"].take()),
    }
}

#[tokio::test]
async fn each_era_has_its_own_methods() {
    for (method, legacy, modern) in [
        ("ping", true, false),
        ("logging/setLevel", true, false),
        ("resources/subscribe", false, false),
        ("subscriptions/listen", false, false),
        ("tasks/list", false, false),
        ("tools/list", true, true),
        ("prompts/list", true, true),
        ("resources/list", true, true),
        ("resources/templates/list", true, true),
    ] {
        for (version, exists) in [("2025-11-25", legacy), (MODERN, modern)] {
            let answer = ask(version, method, json!({"level": "info", "uri": "demo://about"})).await;
            let expected = (!exists).then_some(code::METHOD_NOT_FOUND);
            assert_eq!(answer.err(), expected, "{method} in {version}");
        }
    }
    let discover = ask("2025-11-25", "server/discover", json!({})).await;
    assert_eq!(discover, Err(code::INVALID_PARAMS));
}

#[tokio::test]
async fn modern_results_say_their_type_and_lists_how_long_they_last() {
    let list = ask(MODERN, "tools/list", json!({})).await.unwrap();
    assert_eq!(list["resultType"], "complete");
    assert_eq!(
        (&list["ttlMs"], &list["cacheScope"]),
        (&json!(300_000), &json!("public"))
    );
    assert_eq!(
        list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "pegboard-demo"
    );
    let discovered = ask(MODERN, "server/discover", json!({})).await.unwrap();
    assert_eq!(discovered["_meta"], list["_meta"]);
    assert_eq!(discovered["ttlMs"], 300_000);
    let legacy = ask("2025-11-25", "tools/list", json!({})).await.unwrap();
    assert_eq!(legacy.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    assert_eq!(legacy["tools"], list["tools"]);
}

#[tokio::test]
async fn old_clients_see_no_structured_content() {
    let call = json!({"name": "calculate", "arguments": {"expression": "1+1"}});
    for (version, structured) in [
        ("2024-11-05", Value::Null),
        ("2025-03-26", Value::Null),
        ("2025-06-18", json!({"value": 2})),
    ] {
        let result = ask(version, "tools/call", call.clone()).await.unwrap();
        assert_eq!(result["content"][0]["text"], r#"{"value":2}"#);
        assert_eq!(result["structuredContent"], structured, "{version}");
    }
}

#[tokio::test]
async fn a_failing_tool_is_a_result_and_a_missing_tool_is_an_error() {
    let version = "2025-11-25";
    let failed = json!({"name": "fail", "arguments": {"message": "oh"}});
    assert_eq!(
        ask(version, "tools/call", failed).await.unwrap(),
        json!({"content": [{"type": "text", "text": "oh"}], "isError": true})
    );
    let wrong = json!({"name": "now", "arguments": {"zone": "UTC"}});
    assert_eq!(ask(version, "tools/call", wrong).await.unwrap()["isError"], true);
    for params in [
        json!({"name": "missing"}),
        json!({}),
        json!({"name": "now", "arguments": []}),
    ] {
        assert_eq!(ask(version, "tools/call", params).await, Err(code::INVALID_PARAMS));
    }
}

#[tokio::test]
async fn a_list_has_one_page() {
    let version = "2025-11-25";
    assert!(ask(version, "tools/list", json!({"cursor": null})).await.is_ok());
    let second = ask(version, "tools/list", json!({"cursor": "x"})).await;
    assert_eq!(second, Err(code::INVALID_PARAMS));
}
