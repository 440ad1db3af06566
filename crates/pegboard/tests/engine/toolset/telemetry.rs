//! Spans of requests to servers, for a program that receives them.

use std::{sync::Arc, time::Duration};

use pegboard::{
    Config, Pegboard, ToolCall,
    telemetry::{Attribute, Span, Telemetry, TraceContext, TraceId, Value},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Fault, MemoryHandle, Tool, When};
use serde_json::json;

use crate::support::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Keeps what it receives.
#[derive(Debug, Clone, Default)]
struct Received {
    spans: Arc<Mutex<Vec<Span>>>,
    durations: Arc<Mutex<Vec<String>>>,
    has_content: bool,
}

impl Telemetry for Received {
    fn samples(&self, _: TraceId, parent: Option<&TraceContext>) -> bool {
        parent.is_none_or(TraceContext::is_sampled)
    }

    fn finish(&self, span: Span) {
        self.spans.lock().push(span);
    }

    fn record(
        &self,
        histogram: &'static str,
        _: &[&str],
        attributes: &dyn Fn() -> Vec<Attribute<'static>>,
        _: Duration,
        _: Option<&TraceContext>,
    ) {
        let attributes = attributes();
        let error = attributes.iter().find(|(name, _)| *name == "error.type");
        let error = error.map(|(_, value)| value);
        self.durations.lock().push(format!("{histogram} {error:?}"));
    }

    fn has_content(&self) -> bool {
        self.has_content
    }
}

fn board(fake: &FakeServer, received: &Received) -> (Pegboard, MemoryHandle) {
    let (_unused, handle) = fake.connect();
    let board = Pegboard::builder(Config::default())
        .in_process("fx", dialer(&handle))
        .without_jitter()
        .telemetry(received.clone())
        .open();
    (board, handle)
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Value<'static>> {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value)
}

fn last_parent(handle: &MemoryHandle) -> String {
    let sent = handle.requests();
    let call = sent
        .iter()
        .rev()
        .find(|message| message.method == "tools/call")
        .unwrap();
    call.params["_meta"]["traceparent"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_span_of_its_trace_and_the_server_is_told_of_that_span() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t"))
        .tool(Tool::new("bad").fails_with("no"));
    let received = Received::default();
    let (board, handle) = board(&fake, &received);
    let tools = board.toolset();
    tools.call(ToolCall::new("fx.t").traceparent(PARENT)).await;
    let span = received.spans.lock()[0].clone();
    assert_eq!(span.name, "tools/call t");
    assert_eq!(span.context.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span.parent.unwrap().to_string(), "b7ad6b7169203331");
    assert!(span.has_remote_parent && !span.is_error);
    assert_eq!(last_parent(&handle), span.context.traceparent());
    assert_eq!(
        attribute(&span, "gen_ai.tool.call.arguments"),
        None,
        "content was not asked for"
    );
    // One without a trace begins one.
    tools.call(ToolCall::new("fx.bad")).await;
    let failed = received.spans.lock()[1].clone();
    assert_eq!((failed.parent, failed.is_error), (None, true));
    assert_eq!(attribute(&failed, "error.type"), Some(&Value::from("tool_error")));
    assert_ne!(failed.context.trace, span.context.trace);
    let durations = received.durations.lock().clone();
    assert_eq!(durations.len(), 2);
    assert!(durations[1].contains("mcp.client.operation.duration") && durations[1].contains("tool_error"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_does_not_record_has_no_span_and_keeps_its_context() {
    let received = Received::default();
    let (board, handle) = board(&FakeServer::new("fx").tool(Tool::new("t")), &received);
    let parent = format!("{}00", PARENT.strip_suffix("01").unwrap());
    board.toolset().call(ToolCall::new("fx.t").traceparent(&*parent)).await;
    assert_eq!(received.spans.lock().len(), 0);
    assert_eq!(last_parent(&handle), parent);
    assert_eq!(received.durations.lock().len(), 1, "durations are those of all calls");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_a_span_of_the_same_trace() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t").read_only())
        .fault_on(When::tool("t").first(1), Fault::DiesBeforeExecuting { code: 1 });
    let received = Received::default();
    let (_unused, handle) = fake.connect();
    let mut settings = pegboard::ServerConfig::in_process();
    settings.policy.trust = true;
    let board = Pegboard::builder(Config::default())
        .in_process_with("fx", dialer(&handle), settings)
        .without_jitter()
        .telemetry(received.clone())
        .open();
    let reply = board.toolset().call(ToolCall::new("fx.t").traceparent(PARENT)).await;
    assert!(!reply.is_error(), "{reply:?}");
    let spans = received.spans.lock().clone();
    assert_eq!(spans.len(), 2);
    assert_eq!((spans[0].is_error, spans[1].is_error), (true, false));
    assert_eq!(spans[0].parent, spans[1].parent);
    assert_eq!(attribute(&spans[1], "pegboard.attempt"), Some(&Value::Int(2)));
    assert_eq!(last_parent(&handle), spans[1].context.traceparent());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_ends_its_span_as_cancelled() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("t"))
        .fault_on(When::tool("t"), Fault::NeverAnswers);
    let received = Received::default();
    let (board, handle) = board(&fake, &received);
    let tools = board.toolset();
    let calling = tools.call(ToolCall::new("fx.t"));
    let sent = async {
        while handle.count("tools/call") == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = calling => panic!("it is never answered"),
        () = sent => {}
    }
    let spans = received.spans.lock().clone();
    assert_eq!(spans.len(), 1);
    assert_eq!(attribute(&spans[0], "error.type"), Some(&Value::from("cancelled")));
}

#[tokio::test(start_paused = true)]
async fn content_that_is_asked_for_is_masked() {
    let received = Received {
        has_content: true,
        ..Received::default()
    };
    let (board, _handle) = board(&FakeServer::new("fx").tool(Tool::new("t")), &received);
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let arguments = json!({"token": secret, "place": "Delft"});
    board.toolset().call(ToolCall::new("fx.t").arguments(arguments)).await;
    let span = received.spans.lock()[0].clone();
    let Some(Value::Text(text)) = attribute(&span, "gen_ai.tool.call.arguments") else {
        panic!("{span:?}");
    };
    assert!(text.contains("Delft") && !text.contains(secret), "{text}");
}
