//! Log lines and spans: failures are warnings with the server's name, and no content is logged.

use std::{collections::BTreeMap, fmt, io, sync::Arc};

use pegboard::{Secret, ToolCall, config::Start};
use pegboard_base::sync::{Mutex, MutexGuard};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    EnvFilter, Layer,
    fmt::format::FmtSpan,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::support::*;

/// The interest of a subscriber is cached for all threads, so these tests run one at a time, apart from tests without a subscriber.
static ALONE: Mutex<()> = Mutex::new(());

/// The subscriber of this thread, until it is dropped.
struct Logging {
    _subscriber: DefaultGuard,
    _alone: MutexGuard<'static, ()>,
}

/// The lines that were logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start(filter: &str) -> (Self, Logging) {
        let alone = ALONE.lock();
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(filter))
            .with_ansi(false)
            .without_time()
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(move || writer.clone())
            .finish();
        let logging = Logging {
            _subscriber: tracing::subscriber::set_default(subscriber),
            _alone: alone,
        };
        (log, logging)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// The lines that contain all of `words`.
    fn lines(&self, words: &[&str]) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        lines.map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The fields of a span.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// The spans of calls that have ended on this thread, and the names of the fields of all spans.
#[derive(Clone, Default)]
struct Spans {
    calls: Arc<Mutex<Vec<Fields>>>,
    declared: Arc<Mutex<Vec<(&'static str, &'static str)>>>,
}

impl Spans {
    fn record() -> (Self, Logging) {
        let alone = ALONE.lock();
        let spans = Self::default();
        let subscriber = tracing_subscriber::registry()
            .with(EnvFilter::new("info"))
            .with(spans.clone());
        let logging = Logging {
            _subscriber: tracing::subscriber::set_default(subscriber),
            _alone: alone,
        };
        (spans, logging)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let declared = metadata.fields().iter().map(|field| (metadata.name(), field.name()));
        self.declared.lock().extend(declared);
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let fields = span.extensions_mut().remove::<Fields>();
        if span.name() == "call" {
            self.calls.lock().extend(fields);
        }
    }
}

fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("content of hunter2hunter2"))
        .tool(Tool::new("fails").fails_with("private words"))
}

fn lazy() -> pegboard::ServerConfig {
    set_to(|settings| {
        settings.start = Start::Lazy;
        settings.policy.health.interval = Some(secs(60));
    })
}

#[tokio::test(start_paused = true)]
async fn lost_connections_failed_starts_and_failed_probes_are_warnings_with_the_servers_name() {
    let (log, _guard) = Log::start("warn");
    let (board, handle) = in_memory_with(&good(), lazy());
    let tools = board.toolset();
    call(&tools, "fx.t", json!({})).await;
    assert_eq!(log.text(), "", "an ordinary call is no news");
    handle.kill();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(
        log.lines(&["WARN", "fx", "the connection was lost"]).len(),
        1,
        "{}",
        log.text()
    );
    handle.change(|script| {
        *script = good()
            .fault_on(When::method("ping"), Fault::NeverAnswers)
            .fault_on(When::method("tools/list"), Fault::NeverAnswers)
            .script()
            .clone()
    });
    tokio::time::sleep(secs(100)).await;
    assert!(
        !log.lines(&["WARN", "fx", "a probe failed"]).is_empty(),
        "{}",
        log.text()
    );
    handle.change(|script| *script = FakeServer::new("fx").fault(Fault::SilentHandshake).script().clone());
    handle.kill();
    tokio::time::sleep(secs(120)).await;
    assert!(
        !log.lines(&["WARN", "fx", "the start failed"]).is_empty(),
        "{}",
        log.text()
    );
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_a_warning() {
    let (log, _guard) = Log::start("warn");
    let (board, handle) = in_memory_with(&good(), lazy());
    let tools = board.toolset();
    for _ in 0..12 {
        call(&tools, "fx.t", json!({})).await;
        handle.kill();
        tokio::time::sleep(secs(1)).await;
    }
    assert!(
        !log.lines(&["WARN", "fx", "ends again and again"]).is_empty(),
        "{}",
        log.text()
    );
}

#[tokio::test]
async fn every_line_of_a_servers_error_output_is_logged_with_its_name_and_masked() {
    let (log, _guard) = Log::start("pegboard::stderr=debug");
    let broken = |name: &str| {
        let stderr = format!("{name} has hunter2hunter2\nand a second line\n");
        let mut config = process(&FakeServer::new(name).fault(Fault::ExitsAtStart { code: 1, stderr }));
        config.start = Start::Lazy;
        config
    };
    let board = boards([("one", broken("one")), ("two", broken("two"))]);
    board.hide([Secret::new("hunter2hunter2")]);
    board.toolset().list(PATIENCE).await;
    for server in ["one", "two"] {
        let quoted = format!("server=\"{server}\"");
        let said = format!("{server} has [MASKED_SECRET]");
        assert!(!log.lines(&[&quoted, &said]).is_empty(), "{}", log.text());
        assert!(!log.lines(&[&quoted, "and a second line"]).is_empty(), "{}", log.text());
    }
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_wire_can_be_traced_masked_and_bounded_and_is_not_unless_asked_for() {
    let (log, logging) = Log::start("pegboard::wire=trace");
    let long = good().tool(Tool::new("long").answers_text("x".repeat(1 << 20)));
    let (board, _handle) = in_memory_with(&long, lazy());
    board.hide([Secret::new("hunter2hunter2")]);
    let tools = board.toolset();
    call(&tools, "fx.t", json!({"key": "hunter2hunter2"})).await;
    call(&tools, "fx.long", json!({})).await;
    let sent = log.lines(&["server=fx", "sent", r#""method":"tools/call""#, "[MASKED_SECRET]"]);
    assert_eq!(sent.len(), 1, "{}", log.text());
    let received = log.lines(&["server=fx", "received", "content of [MASKED_SECRET]"]);
    assert_eq!(received.len(), 1, "{}", log.text());
    assert!(!log.text().contains("hunter2hunter2"));
    assert!(
        log.text().lines().all(|line| line.len() < 8 << 10),
        "a line is too long"
    );
    drop(logging);

    let (log, _guard) = Log::start("debug");
    call(&tools, "fx.t", json!({"key": "private argument"})).await;
    assert!(
        !log.text().contains("private argument") && !log.text().contains("content of"),
        "{}",
        log.text()
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_one_span_that_tells_how_it_went() {
    let (log, _guard) = Log::start("info");
    let (board, _handle) = in_memory_with(&good().tool(Tool::new("never").waits_at("never")), lazy());
    let tools = board.toolset();
    tools.call(ToolCall::new("fx.t").id("a")).await;
    tools.call(ToolCall::new("fx.fails").id("b")).await;
    tools.call(ToolCall::new("fx.nope").id("c")).await;
    let dropped = tools.call(ToolCall::new("fx.never").id("d"));
    tokio::time::timeout(secs(1), dropped).await.unwrap_err();
    let closed = |words: &[&str]| {
        let mut all = vec!["close"];
        all.extend(words);
        assert_eq!(log.lines(&all).len(), 1, "{words:?} in {}", log.text());
    };
    closed(&["id=a", "server=fx", "tool=\"t\"", "kind=\"ok\"", "attempts=1"]);
    closed(&["id=b", "kind=\"tool_error\""]);
    closed(&[
        "id=c",
        "gen_ai.tool.name=\"fx.nope\"",
        "kind=\"unknown_tool\"",
        "attempts=0",
    ]);
    closed(&["id=d", "kind=\"cancelled\""]);
    // A failed call has its own line too, without the server's text.
    assert_eq!(
        log.lines(&["call failed", "id=b", "kind=\"tool_error\""]).len(),
        1,
        "{}",
        log.text()
    );
    assert!(!log.text().contains("private words"));
}

#[tokio::test(start_paused = true)]
async fn the_span_of_a_call_has_the_fields_of_opentelemetrys_conventions() {
    let (spans, _guard) = Spans::record();
    let (board, _handle) = in_memory_with(&good().tool(Tool::new("never").waits_at("never")), lazy());
    let tools = board.toolset();
    tools.call(ToolCall::new("fx.t").id("call_7")).await;
    tools.call(ToolCall::new("fx.fails")).await;
    tools.call(ToolCall::new("fx.nope")).await;
    let dropped = tools.call(ToolCall::new("fx.never"));
    tokio::time::timeout(secs(1), dropped).await.unwrap_err();
    let calls = spans.calls.lock().clone();
    assert_eq!(calls.len(), 4, "{calls:?}");
    let done = [("otel.name", "tools/call fx.t"), ("gen_ai.tool.call.id", "call_7")];
    assert_conventional(&calls[0], "fx.t", &done);
    // What a model wrote is no name of a span, unless a tool has been called.
    for (call, tool_name, span_name, error) in [
        (&calls[1], "fx.fails", "tools/call fx.fails", "tool_error"),
        (&calls[2], "fx.nope", "tools/call", "unknown_tool"),
        (&calls[3], "fx.never", "tools/call", "cancelled"),
    ] {
        let others = [
            ("otel.name", span_name),
            ("otel.status_code", "ERROR"),
            ("error.type", error),
        ];
        assert_conventional(call, tool_name, &others);
    }
    assert_eq!((calls[0].get("server"), calls[0].get("kind")), (Some("fx"), Some("ok")));
}

/// Asserts that the fields of a call's span whose names are conventions are those of every call, and `others`.
#[track_caller]
fn assert_conventional(call: &Fields, tool_name: &str, others: &[(&'static str, &str)]) {
    let mut expected = BTreeMap::from([
        ("otel.kind", "client"),
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", tool_name),
    ]);
    expected.extend(others.iter().copied());
    let conventional = call.0.iter().filter(|(name, _)| name.contains('.'));
    let conventional: BTreeMap<&str, &str> = conventional.map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(conventional, expected);
}

#[tokio::test(start_paused = true)]
async fn no_span_has_a_field_that_json_would_have_twice() {
    let (spans, _guard) = Spans::record();
    let (board, _handle) = in_memory_with(&good(), lazy());
    call(&board.toolset(), "fx.t", json!({})).await;
    let declared = spans.declared.lock().clone();
    for span in ["call", "supervisor"] {
        assert!(declared.contains(&(span, "server")), "{declared:?}");
    }
    // A formatter writes the name of the span under this key.
    assert!(declared.iter().all(|(_, field)| *field != "name"), "{declared:?}");
}

#[tokio::test]
async fn the_end_of_a_process_is_logged_with_its_server_and_its_status() {
    let (log, _logging) = Log::start("pegboard=info");
    let board = board(process(&good()));
    board.settle(PATIENCE).await;
    let pid = board.status().servers[0].pid.unwrap();
    board.shutdown().await;
    let lines = log.lines(&["the process has ended", "fx", &format!("pid={pid}")]);
    assert_eq!(lines.len(), 1, "{}", log.text());
}
