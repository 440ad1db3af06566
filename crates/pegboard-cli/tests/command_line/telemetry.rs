//! Telemetry of `pegboard serve`, as a collector sees it that decodes it with the official protobufs of OpenTelemetry. `scripts/peers` installs
//! those.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use pegboard_testkit::{Era, FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

pub(crate) const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN: &str = "00f067aa0ba902b7";

/// A collector. It is killed when it is dropped.
pub(crate) struct Collector {
    child: Child,
    pub(crate) endpoint: String,
    file: PathBuf,
}

impl Collector {
    pub(crate) fn start(home: &Home) -> Self {
        let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let peers = repository.join("target/peers/python-telemetry");
        assert!(peers.join(".stamp").exists(), "run scripts/peers first");
        let file = home.path("telemetry.jsonl");
        let mut child = Command::new(peers.join("bin/python"))
            .arg(repository.join("tests/peers/otlp_receiver.py"))
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        Self {
            child,
            endpoint: format!("http://127.0.0.1:{}", port.trim()),
            file,
        }
    }

    /// The requests to a path, as JSON.
    fn requests(&self, path: &str) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let rows = rows.filter(|row| row["path"] == path);
        rows.inspect(|row| assert_eq!(row["unknown"], 0, "{row}")).collect()
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for request in self.requests("/v1/traces") {
            for resource in items(&request["message"]["resourceSpans"]) {
                for scope in items(&resource["scopeSpans"]) {
                    spans.extend(items(&scope["spans"]).iter().cloned().map(Span));
                }
            }
        }
        spans
    }

    /// Waits for a span with this name in a trace.
    #[track_caller]
    pub(crate) fn span(&self, trace: &str, name: &str, kind: &str) -> Span {
        let found = || {
            let mut spans = self.spans().into_iter();
            spans.find(|span| span.trace() == trace && span.0["name"] == name && span.0["kind"] == kind)
        };
        until(&format!("a span `{name}`: {:#?}", self.spans()), || found().is_some());
        found().unwrap()
    }

    /// The newest points of a metric.
    pub(crate) fn points(&self, name: &str) -> Vec<Value> {
        let mut points = Vec::new();
        for request in self.requests("/v1/metrics") {
            for resource in items(&request["message"]["resourceMetrics"]) {
                for scope in items(&resource["scopeMetrics"]) {
                    for metric in items(&scope["metrics"]).iter().filter(|metric| metric["name"] == name) {
                        let data = ["sum", "gauge", "histogram"].map(|kind| &metric[kind]["dataPoints"]);
                        points = data.iter().flat_map(|data| items(data)).cloned().collect();
                    }
                }
            }
        }
        points
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A span, as the protobufs print it.
#[derive(Debug)]
pub(crate) struct Span(Value);

impl Span {
    pub(crate) fn trace(&self) -> String {
        hex(&self.0["traceId"])
    }

    pub(crate) fn id(&self) -> String {
        hex(&self.0["spanId"])
    }

    fn parent(&self) -> String {
        hex(&self.0["parentSpanId"])
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        attribute(&self.0, name)
    }

    #[track_caller]
    fn has(&self, attributes: &Value) {
        for (name, value) in attributes.as_object().unwrap() {
            assert_eq!(self.attribute(name).as_ref(), Some(value), "{name} of {:#}", self.0);
        }
    }
}

fn attribute(of: &Value, name: &str) -> Option<Value> {
    let found = items(&of["attributes"])
        .iter()
        .find(|attribute| attribute["key"] == name)?;
    let value = found["value"].as_object()?;
    value.values().next().cloned()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Base64, as JSON has the bytes of protobufs, in hexadecimal digits.
pub(crate) fn hex(base64: &Value) -> String {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = base64.as_str().unwrap_or_default().trim_end_matches('=');
    let bits: String = text.bytes().map(|byte| format!("{:06b}", digit(byte))).collect();
    let bytes = bits.as_bytes().chunks_exact(8);
    bytes
        .map(|byte| {
            format!(
                "{:02x}",
                u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap()
            )
        })
        .collect()
}

fn fake(era: Era) -> FakeServer {
    let echo = Tool::new("echo").schema(json!({"type": "object"})).answers_text("done");
    FakeServer::new("fx")
        .era(era)
        .tool(echo)
        .tool(Tool::new("fail").schema(json!({"type": "object"})).fails_with("no"))
        .prompt("hello", "hi")
}

/// A gateway with a server, which sends its telemetry to a collector at once.
pub(crate) fn start(era: Era, more: &str) -> (Home, Collector, Served) {
    let home = Home::new();
    let collector = Collector::start(&home);
    let entry = home.entry("fx", fake(era), "");
    // What goes wrong with it is a line of the log.
    let gone = "[servers.gone]\ncommand = \"/no/such/program\"\n";
    let endpoint = &collector.endpoint;
    home.config(&format!(
        "{entry}\n{gone}\n[serve.telemetry]\nendpoint = \"{endpoint}\"\n{more}\n"
    ));
    let served = Served::start_with(&home, &["--no-socket"], &[("OTEL_BSP_SCHEDULE_DELAY", "20")]);
    served.has_tool("fx__echo");
    (home, collector, served)
}

/// Calls a tool as a client of 2026-07-28.
pub(crate) fn call_modern(served: &Served, headers: &[(&str, &str)], tool: &str, meta: &Value) -> Value {
    let mut all = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    let params = json!({"name": tool, "arguments": {"secret": "in the arguments"}, "_meta": all});
    let request = json!({"jsonrpc": "2.0", "id": "call-7", "method": "tools/call", "params": params});
    let modern = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let response = served.post("/mcp", &[headers, &modern].concat(), &request.to_string());
    response.message()
}

pub(crate) fn parent(span: &str) -> String {
    format!("00-{TRACE}-{span}-01")
}

/// What the server got in the `_meta` of the last call.
fn last_meta(home: &Home) -> Value {
    let log = home.log("fx");
    let mut calls = log.requests.iter().filter(|request| request.method == "tools/call");
    calls.next_back().unwrap().params["_meta"].clone()
}

#[test]
fn a_trace_leads_from_a_modern_client_through_the_gateway_to_the_server() {
    let (home, collector, served) = start(Era::Modern, "");
    let meta = json!({"traceparent": parent(CLIENT_SPAN), "tracestate": "rojo=1", "baggage": "user=ada"});
    let answer = call_modern(&served, &[], "fx__echo", &meta);
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    let server = collector.span(TRACE, "tools/call fx__echo", "SPAN_KIND_SERVER");
    assert_eq!(server.parent(), CLIENT_SPAN);
    assert_eq!(server.0["traceState"], "rojo=1");
    server.has(&json!({
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fx__echo",
        "jsonrpc.request.id": "call-7",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }));
    let client = collector.span(TRACE, "tools/call echo", "SPAN_KIND_CLIENT");
    assert_eq!(client.parent(), server.id());
    client.has(&json!({
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "pipe",
        "pegboard.server": "fx",
        "pegboard.attempt": "1",
    }));
    assert_eq!(client.attribute("error.type"), None);
    let got = last_meta(&home);
    assert_eq!(got["traceparent"], parent(&client.id()));
    assert_eq!(
        (&got["tracestate"], &got["baggage"]),
        (&json!("rojo=1"), &json!("user=ada"))
    );
    let everything = fs::read_to_string(&collector.file).unwrap();
    assert!(!everything.contains("in the arguments"), "content was not asked for");
}

#[test]
fn a_trace_leads_from_a_session_through_the_gateway_to_a_legacy_server() {
    let (home, collector, served) = start(Era::Legacy, "");
    let (session, _) = served.initialize("/mcp", &[]);
    // From the headers of HTTP, because `_meta` has none.
    let traced = [("traceparent", &*parent(CLIENT_SPAN)), ("baggage", "user=ada")];
    let params = json!({"name": "fx__fail", "arguments": {}});
    let answer = served.ask("/mcp", &traced, &session, "tools/call", &params);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let server = collector.span(TRACE, "tools/call fx__fail", "SPAN_KIND_SERVER");
    assert_eq!(server.parent(), CLIENT_SPAN);
    assert_eq!(server.0["status"]["code"], "STATUS_CODE_ERROR");
    server.has(&json!({"error.type": "tool_error", "jsonrpc.request.id": "2", "mcp.protocol.version": "2025-11-25"}));
    let id = server.attribute("mcp.session.id").unwrap();
    assert_eq!(id.as_str().unwrap().len(), 32);
    assert_ne!(id, json!(session), "the id itself lets its holder in");
    let client = collector.span(TRACE, "tools/call fail", "SPAN_KIND_CLIENT");
    assert_eq!(client.parent(), server.id());
    client.has(&json!({"error.type": "tool_error", "mcp.protocol.version": "2025-11-25"}));
    assert_eq!(client.0["status"]["code"], "STATUS_CODE_ERROR");
    let got = last_meta(&home);
    assert_eq!(
        (&got["traceparent"], &got["baggage"]),
        (&json!(parent(&client.id())), &json!("user=ada"))
    );
    // Other requests have spans too.
    for (method, params, name) in [
        ("tools/list", json!({}), "tools/list"),
        ("prompts/get", json!({"name": "fx__hello"}), "prompts/get fx__hello"),
    ] {
        served.ask("/mcp", &traced, &session, method, &params);
        collector.span(TRACE, name, "SPAN_KIND_SERVER");
    }
    let client = collector.span(TRACE, "prompts/get hello", "SPAN_KIND_CLIENT");
    client.has(&json!({"gen_ai.prompt.name": "hello"}));
    let unknown = served.ask("/mcp", &traced, &session, "tools/forget", &json!({}));
    let refused = collector.span(TRACE, "tools/forget", "SPAN_KIND_SERVER");
    let code = unknown["error"]["code"].to_string();
    refused.has(&json!({"error.type": code, "rpc.response.status_code": code}));
}

#[test]
fn metrics_and_log_lines_reach_the_collector() {
    let (_home, collector, served) = start(
        Era::Modern,
        "service_name = \"edge\"\nresource = { team = \"tools\" }\nmetrics_interval = \"200ms\"",
    );
    call_modern(&served, &[], "fx__echo", &json!({}));
    call_modern(&served, &[], "fx__fail", &json!({}));
    for side in ["client", "server"] {
        let name = format!("mcp.{side}.operation.duration");
        let is_call = |point: &Value, error: Option<Value>| {
            attribute(point, "mcp.method.name") == Some(json!("tools/call")) && attribute(point, "error.type") == error
        };
        until(&format!("durations of {side}: {:#?}", collector.points(&name)), || {
            let points = collector.points(&name);
            points.iter().any(|point| is_call(point, None))
                && points.iter().any(|point| is_call(point, Some(json!("tool_error"))))
        });
        let points = collector.points(&name);
        let good = points.iter().find(|point| is_call(point, None)).unwrap();
        assert_eq!(good["count"], "1", "{good:#}");
        assert_eq!(
            items(&good["bucketCounts"]).len(),
            items(&good["explicitBounds"]).len() + 1
        );
    }
    until("the calls are counted", || {
        let points = collector.points("pegboard_calls");
        points
            .iter()
            .any(|point| attribute(point, "kind") == Some(json!("tool_error")))
    });
    let of_server = || {
        let requests = collector.requests("/v1/logs").into_iter();
        let mut records = requests
            .flat_map(|request| items(&request["message"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"]).to_vec());
        records.find(|record| record.to_string().contains("gone"))
    };
    until("a line of the log is sent", || of_server().is_some());
    let record = of_server().unwrap();
    assert_eq!(record["severityText"], "WARN", "{record:#}");
    assert!(
        record["body"]["stringValue"]
            .as_str()
            .is_some_and(|body| !body.is_empty()),
        "{record:#}"
    );
    let request = &collector.requests("/v1/metrics")[0];
    let resource = &request["message"]["resourceMetrics"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some(json!("edge")));
    assert_eq!(attribute(resource, "team"), Some(json!("tools")));
    let page = served.send("GET", "/metrics", &[], "").body;
    assert!(
        page.contains("pegboard_telemetry_exported_total{signal=\"traces\"}"),
        "{page}"
    );
}

#[test]
fn signals_that_are_off_are_not_sent_and_a_collector_that_hangs_is_left_in_time() {
    let (_home, collector, served) = start(
        Era::Modern,
        "traces = false\nlogs = false\nmetrics_interval = \"200ms\"",
    );
    call_modern(&served, &[], "fx__fail", &json!({}));
    until("metrics are sent", || !collector.points("pegboard_calls").is_empty());
    assert!(collector.spans().is_empty() && collector.requests("/v1/logs").is_empty());
    drop(served);
    // It accepts connections and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = Home::new();
    let (entry, address) = (home.entry("fx", fake(Era::Modern), ""), silent.local_addr().unwrap());
    home.config(&format!(
        "{entry}\n[serve.telemetry]\nendpoint = \"http://{address}\"\nmetrics = false\nlogs = false\ntimeout = \"50ms\"\n"
    ));
    let served = Served::start_with(&home, &["--no-socket"], &[("OTEL_BSP_SCHEDULE_DELAY", "1")]);
    served.has_tool("fx__echo");
    served.says("does not take traces: it does not answer within 0.05 s");
}

#[test]
fn content_is_masked_and_only_there_if_it_is_asked_for() {
    let (_home, collector, served) = start(
        Era::Modern,
        "content = true\ncompression = \"gzip\"\nheaders = { api-key = \"k-3f9a8c71d2\" }",
    );
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let params = json!({"name": "fx__echo", "arguments": {"token": secret, "place": "Delft"}});
    let (session, _) = served.initialize("/mcp", &[]);
    served.ask(
        "/mcp",
        &[("traceparent", &parent(CLIENT_SPAN))],
        &session,
        "tools/call",
        &params,
    );
    let client = collector.span(TRACE, "tools/call echo", "SPAN_KIND_CLIENT");
    let arguments = client.attribute("gen_ai.tool.call.arguments").unwrap().to_string();
    assert!(
        arguments.contains("Delft") && !arguments.contains(secret),
        "{arguments}"
    );
    let result = client.attribute("gen_ai.tool.call.result").unwrap().to_string();
    assert!(result.contains("done"), "{result}");
    let request = &collector.requests("/v1/traces")[0];
    assert_eq!(request["headers"]["api-key"], "k-3f9a8c71d2");
    assert_eq!(request["headers"]["content-encoding"], "gzip");
}

#[test]
fn a_client_that_does_not_record_its_trace_gets_no_spans_and_its_context_is_passed_on() {
    let (home, collector, served) = start(Era::Modern, "sampler = \"parentbased_traceidratio\"\nratio = \"0\"");
    let unsampled = format!("00-{TRACE}-{CLIENT_SPAN}-00");
    call_modern(
        &served,
        &[("traceparent", &unsampled), ("baggage", "a=1")],
        "fx__echo",
        &json!({}),
    );
    let got = last_meta(&home);
    assert_eq!(
        (&got["traceparent"], &got["baggage"]),
        (&json!(unsampled), &json!("a=1"))
    );
    // One that records it is followed.
    call_modern(&served, &[], "fx__echo", &json!({"traceparent": parent(CLIENT_SPAN)}));
    collector.span(TRACE, "tools/call fx__echo", "SPAN_KIND_SERVER");
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| span.parent() != "" && span.trace() == TRACE),
        "{spans:#?}"
    );
    assert_eq!(spans.len(), 2, "{spans:#?}");
}

#[test]
fn without_telemetry_a_trace_is_passed_on_as_it_came() {
    let home = Home::new();
    home.config(&home.entry("fx", fake(Era::Modern), ""));
    let served = Served::start_with(&home, &["--no-socket"], &[]);
    served.has_tool("fx__echo");
    let meta = json!({"traceparent": "what-the-client-wrote", "baggage": "a=1"});
    call_modern(&served, &[("traceparent", &parent(CLIENT_SPAN))], "fx__echo", &meta);
    let got = last_meta(&home);
    assert_eq!(
        (&got["traceparent"], &got["baggage"]),
        (&meta["traceparent"], &meta["baggage"])
    );
}

#[test]
fn what_is_not_supported_is_said_and_a_dead_collector_costs_no_call() {
    let home = Home::new();
    home.config(&home.entry("fx", fake(Era::Modern), ""));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
    ];
    let served = Served::start_with(&home, &["--no-socket"], &variables);
    served.has_tool("fx__echo");
    served.says("`OTEL_EXPORTER_OTLP_PROTOCOL` is `grpc`, and only `http/protobuf` is supported");
    for _ in 0..50 {
        let answer = call_modern(&served, &[], "fx__echo", &json!({}));
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    }
    served.says("the collector at http://127.0.0.1:9 does not take");
    assert_eq!(served.err().matches("does not take").count(), 1, "{}", served.err());
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
}
