use std::path::PathBuf;

use super::*;
use crate::demo::message::Id;

const MODERN: &str = "2026-07-28";

fn meta(version: &str) -> Value {
    json!({META_VERSION: version, META_CAPABILITIES: {}})
}

async fn ask(peer: &Peer, method: &str, params: Value) -> Result<Value, Fault> {
    let request = Request {
        id: Id::Number(1),
        method: method.into(),
        params: params.as_object().unwrap().clone(),
    };
    let version = version_of(&request, peer)?;
    let demo = Demo {
        folder: PathBuf::from("."),
    };
    demo.answer(
        version,
        request,
        peer,
        Notifications::default(),
        &CancellationToken::new(),
    )
    .await
}

fn peer(version: Version) -> Peer {
    let peer = Peer::default();
    peer.settle(version);
    peer
}

#[tokio::test]
async fn a_request_needs_a_handshake_or_its_own_version() {
    for (method, params, code) in [
        ("tools/list", json!({}), Some(Fault::INVALID_REQUEST)),
        ("server/discover", json!({}), Some(Fault::INVALID_PARAMS)),
        ("initialize", json!({}), Some(Fault::INVALID_PARAMS)),
        (
            "tools/list",
            json!({"_meta": {META_VERSION: MODERN}}),
            Some(Fault::INVALID_PARAMS),
        ),
        (
            "tools/list",
            json!({"_meta": {META_VERSION: 3}}),
            Some(Fault::INVALID_PARAMS),
        ),
        (
            "tools/list",
            json!({"_meta": meta("2025-11-25")}),
            Some(Fault::UNSUPPORTED_VERSION),
        ),
        (
            "server/discover",
            json!({"_meta": meta("2031-01-01")}),
            Some(Fault::UNSUPPORTED_VERSION),
        ),
        ("ping", json!({}), None),
        ("initialize", json!({"protocolVersion": "2024-11-05"}), None),
        ("tools/list", json!({"_meta": meta(MODERN)}), None),
        ("server/discover", json!({"_meta": meta(MODERN)}), None),
    ] {
        let answer = ask(&Peer::default(), method, params.clone()).await;
        assert_eq!(answer.err().map(|fault| fault.code), code, "{method} {params}");
    }
}

#[tokio::test]
async fn an_unsupported_version_is_told_what_is_supported() {
    let fault = ask(&Peer::default(), "tools/list", json!({"_meta": meta("1999-01-01")}))
        .await
        .unwrap_err();
    let data = fault.data.unwrap();
    assert_eq!(data["requested"], "1999-01-01");
    assert_eq!(data["supported"][0], MODERN);
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
        let params = json!({"level": "info"});
        let answer = ask(&peer(Version::V2025_11_25), method, params).await;
        assert_eq!(
            answer.err().map(|fault| fault.code),
            (!legacy).then_some(-32601),
            "{method}"
        );
        let answer = ask(&Peer::default(), method, json!({"_meta": meta(MODERN)})).await;
        assert_eq!(
            answer.err().map(|fault| fault.code),
            (!modern).then_some(-32601),
            "{method}"
        );
    }
    let discover = ask(&peer(Version::V2025_11_25), "server/discover", json!({})).await;
    assert_eq!(discover.unwrap_err().code, Fault::INVALID_PARAMS);
}

#[tokio::test]
async fn modern_results_say_their_type_and_lists_how_long_they_last() {
    let modern = json!({"_meta": meta(MODERN)});
    let list = ask(&Peer::default(), "tools/list", modern.clone()).await.unwrap();
    assert_eq!(list["resultType"], "complete");
    assert_eq!(
        (&list["ttlMs"], &list["cacheScope"]),
        (&json!(300_000), &json!("public"))
    );
    assert_eq!(
        list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "pegboard-demo"
    );
    let legacy = ask(&peer(Version::V2025_11_25), "tools/list", json!({})).await.unwrap();
    assert_eq!(legacy.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    assert_eq!(legacy["tools"], list["tools"]);
}

#[tokio::test]
async fn old_clients_see_no_structured_content() {
    let call = json!({"name": "calculate", "arguments": {"expression": "1+1"}});
    for (version, structured) in [
        (Version::V2024_11_05, Value::Null),
        (Version::V2025_03_26, Value::Null),
        (Version::V2025_06_18, json!({"value": 2})),
    ] {
        let result = ask(&peer(version), "tools/call", call.clone()).await.unwrap();
        assert_eq!(result["content"][0]["text"], r#"{"value":2}"#);
        assert_eq!(result["structuredContent"], structured, "{version:?}");
    }
}

#[tokio::test]
async fn a_failing_tool_is_a_result_and_a_missing_tool_is_a_fault() {
    let peer = peer(Version::V2025_11_25);
    let failed = ask(
        &peer,
        "tools/call",
        json!({"name": "fail", "arguments": {"message": "oh"}}),
    )
    .await
    .unwrap();
    assert_eq!(
        failed,
        json!({"content": [{"type": "text", "text": "oh"}], "isError": true})
    );
    let wrong = ask(
        &peer,
        "tools/call",
        json!({"name": "now", "arguments": {"zone": "UTC"}}),
    )
    .await
    .unwrap();
    assert_eq!(wrong["isError"], true);
    for params in [
        json!({"name": "missing"}),
        json!({}),
        json!({"name": "now", "arguments": []}),
    ] {
        assert_eq!(
            ask(&peer, "tools/call", params).await.unwrap_err().code,
            Fault::INVALID_PARAMS
        );
    }
}

#[tokio::test]
async fn a_list_has_one_page() {
    let peer = peer(Version::V2025_11_25);
    assert!(ask(&peer, "tools/list", json!({"cursor": null})).await.is_ok());
    assert_eq!(
        ask(&peer, "tools/list", json!({"cursor": "x"})).await.unwrap_err().code,
        Fault::INVALID_PARAMS
    );
}
