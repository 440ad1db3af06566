//! A forwarded call leaves the same traces as any other call: events, counters, status and audit log.

use futures_util::FutureExt as _;
use pegboard::{Config, Events, Pegboard, ToolCall, Toolset, config::AuditConfig, forward::Forwarding};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::{forward::raw_server::whole, support::*};

/// A token, written in parts so that secret scanners do not report this file.
const TOKEN: &str = concat!("gh", "p_", "sY7bXgSA9f5j34sRwh5yCmX4w0VvG6XqH1hN");

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("done\n\"é\""))
        .tool(Tool::new("blocks").answers_blocks([
            json!({"type": "text", "text": "one"}),
            json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}),
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "four"}}),
            json!({"type": "resource_link", "uri": "a:b", "name": "n"}),
        ]))
        .tool(Tool::new("secret").answers_text(format!("{TOKEN} and {TOKEN}")))
        .tool(Tool::new("fails").fails_with("no"))
        .tool(Tool::new("refuses").refuses(-32050, "not today"))
        .tool(Tool::new("never").waits_at("never"))
        .tool(Tool::new("dies"))
        .fault_on(When::tool("dies"), Fault::DiesAfterExecuting { code: 1 })
}

/// Makes a call in one of the two ways.
async fn make(tools: &Toolset, call: ToolCall, is_forwarded: bool) {
    if is_forwarded {
        tools.forward_call(call, &Forwarding::new()).await;
    } else {
        tools.call(call).await;
    }
}

/// A value without what differs from run to run.
fn steady(mut value: Value) -> Value {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for key in [
                    "at",
                    "id",
                    "time",
                    "latency_ms",
                    "duration_ms",
                    "hash",
                    "name_hash",
                    "prev",
                    "previous",
                    "pid",
                    "since",
                    "n",
                    "seq",
                ] {
                    fields.remove(key);
                }
                fields.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            _ => {}
        }
    }
    clean(&mut value);
    value
}

fn pending(events: &mut Events) -> Vec<Value> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().now_or_never().flatten() {
        seen.push(steady(serde_json::to_value(&event).unwrap()));
    }
    seen
}

/// The traces of one call of each tool.
async fn traces(is_forwarded: bool) -> (Vec<Value>, Value, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls.jsonl");
    let mut config = Config::default();
    config.audit = Some(AuditConfig::new(&log));
    let (_unused, handle) = fake().connect();
    let board = Pegboard::builder(config)
        .in_process_with(name("fx"), dialer(&handle), in_process_settings())
        .without_jitter()
        .open();
    let tools = board.toolset_with(whole().name("client"));
    tools.list(PATIENCE).await;
    let mut events = board.events();
    for tool in ["t", "blocks", "secret", "fails", "refuses", "none"] {
        make(&tools, ToolCall::new(format!("fx.{tool}")), is_forwarded).await;
    }
    make(&tools, ToolCall::new("fx.never").timeout(secs(1)), is_forwarded).await;
    let dropped = make(&tools, ToolCall::new("fx.never"), is_forwarded);
    assert!(tokio::time::timeout(secs(1), dropped).await.is_err());
    make(&tools, ToolCall::new("fx.dies"), is_forwarded).await;
    let is_call = |event: &Value| event.to_string().contains("call");
    let events = pending(&mut events).into_iter().filter(is_call).collect();
    let server = &board.metrics().servers[&name("fx")];
    let counters = json!({
        "kinds": server.calls.by_kind.iter().map(|(kind, count)| (kind.as_str(), *count)).collect::<Vec<_>>(),
        "all": format!("{:?}", (server.calls.total, server.masked, server.bytes_received, server.attempts, server.retries)),
        "tainted": tools.taint(),
    });
    board.shutdown().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let lines = text
        .lines()
        .skip(1)
        .map(|line| steady(serde_json::from_str(line).unwrap()));
    (events, counters, lines.collect())
}

/// On the real clock, because a thread writes the audit log.
#[tokio::test]
async fn events_counters_and_audit_are_those_of_a_call() {
    let (called, forwarded) = (traces(false).await, traces(true).await);
    assert!(
        called.0.len() >= 18 && called.2.len() >= 16,
        "{} {}",
        called.0.len(),
        called.2.len()
    );
    assert_eq!(called.0, forwarded.0);
    assert_eq!(called.1, forwarded.1);
    assert_eq!(called.2, forwarded.2);
}
