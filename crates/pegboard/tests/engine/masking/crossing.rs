//! Secrets of one server in what is sent to another.

use pegboard::{Event, Kind, Outcome, Reply, Secret, ToolCall};
use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::{Map, Value, json};

use crate::{
    masking::canary::{CANARY, board},
    support::*,
};

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("done"))
        .prompt("p", "a prompt")
        .resource("db://x", "a row")
}

fn calls(handle: &MemoryHandle) -> usize {
    let requests = handle.requests();
    requests.iter().filter(|request| request.method == "tools/call").count()
}

#[track_caller]
fn is_refused(reply: &Reply) {
    assert!(matches!(reply.outcome, Outcome::Refused(_)), "{reply:?}");
    assert_eq!(reply.outcome.kind(), Kind::NotPermitted);
    assert_contains(&reply.text(), &["`fx.t`", "server `vault`", "server `fx`"]);
    let shown = format!("{reply:?} {}", serde_json::to_string(reply).unwrap());
    assert!(!shown.contains(CANARY), "{shown}");
}

#[tokio::test]
async fn a_secret_of_another_server_is_never_sent_in_any_form() {
    let (board, handle) = board(&fake());
    let tools = board.toolset();
    for arguments in [
        json!({"a": CANARY}),
        json!({"a": {"b": [1, format!("token={CANARY}&x=1")]}}),
        json!({CANARY: 1}),
        json!({"a": "YzRuYXJ5LTdmM2E5YjFlLXQwa2Vu"}),
        json!({"a": "bWU6YzRuYXJ5LTdmM2E5YjFlLXQwa2Vu"}),
        json!({"a": "63346e6172792d37663361396231652d74306b656e"}),
    ] {
        is_refused(&call(&tools, "fx.t", arguments).await);
    }
    // As text that a model wrote, with escapes that a scan of the raw text would miss.
    let escaped: String = CANARY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    for text in [format!(r#"{{"a": "{escaped}"}}"#), format!(r#"{{"{escaped}": 1}}"#)] {
        is_refused(&tools.call(ToolCall::new("fx.t").text(text)).await);
    }
    assert_eq!(calls(&handle), 0);
    let reply = call(&tools, "fx.t", json!({"a": "c4nary"})).await;
    assert_eq!(reply.text(), "done");
    board.shutdown().await;
}

#[tokio::test]
async fn prompts_and_resources_do_not_take_it_either() {
    let (board, handle) = board(&fake());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let before = handle.requests().len();
    let fx = name("fx");
    let arguments: Map<String, Value> = Map::from_iter([("a".to_owned(), CANARY.into())]);
    let failures = [
        tools.get_prompt(&fx, "p", &arguments).await.unwrap_err(),
        tools.read_resource(&fx, &format!("db://{CANARY}")).await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.kind, Kind::NotPermitted, "{failure}");
        assert!(!format!("{failure:?}").contains(CANARY));
    }
    assert_eq!(handle.requests().len(), before);
    board.shutdown().await;
}

#[tokio::test]
async fn events_show_the_refusal_and_not_the_secret() {
    let (board, _handle) = board(&fake());
    let tools = board.toolset();
    let mut events = board.events();
    is_refused(&call(&tools, "fx.t", json!({"a": CANARY})).await);
    loop {
        let event = events.next().await.unwrap();
        assert!(!format!("{event:?}").contains(CANARY), "{event:?}");
        if let Event::CallCompleted { kind, .. } = &event {
            assert_eq!(*kind, Kind::NotPermitted);
            break;
        }
    }
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_may_get_its_own_secret() {
    let fake = fake();
    let settings = set_to(|server| {
        if let pegboard::config::Transport::Stdio(command) = &mut server.transport {
            command.env.insert("TOKEN".to_owned(), Secret::new(CANARY));
        }
    });
    let (_unused, handle) = fake.connect();
    // Two servers have the same secret.
    let board = pegboard::Pegboard::builder(crate::masking::canary::vault())
        .in_process_with(name("fx"), dialer(&handle), settings)
        .open();
    let reply = call(&board.toolset(), "fx.t", json!({"a": CANARY})).await;
    assert_eq!(reply.text(), "done");
    assert_eq!(calls(&handle), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn a_secret_of_no_server_is_warned_of() {
    let (board, handle) = board(&fake());
    board.hide([Secret::new("0ne-that-n0-server-has")]);
    let reply = call(&board.toolset(), "fx.t", json!({"a": "0ne-that-n0-server-has"})).await;
    assert_eq!((reply.text().as_str(), calls(&handle)), ("done", 1));
    assert_contains(&reply.warnings.join(""), &["a known secret"]);
    board.shutdown().await;
}

#[tokio::test]
async fn the_audit_log_has_the_refusal_and_not_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls.jsonl");
    let mut config = crate::masking::canary::vault();
    config.audit = Some(pegboard::config::AuditConfig::new(&log));
    let (_unused, handle) = fake().connect();
    let board = pegboard::Pegboard::builder(config)
        .in_process(name("fx"), dialer(&handle))
        .open();
    is_refused(&call(&board.toolset(), "fx.t", json!({"a": CANARY})).await);
    board.shutdown().await;
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = records[1..]
        .iter()
        .map(|record| (&record["event"], &record["rule"]))
        .collect();
    assert_eq!(
        told,
        [(&json!("decision"), &json!("crossing")), (&json!("call"), &Value::Null)]
    );
}
