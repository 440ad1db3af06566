//! `/metrics` of `pegboard serve`: both formats, as parsers that others wrote read them. `scripts/peers` installs those.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use pegboard::config::TokenDigest;
use pegboard_testkit::{Era, FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, Ran, until},
    telemetry::{self, call_modern, parent},
};

/// What Prometheus 2 sends.
const OPENMETRICS: (&str, &str) = (
    "Accept",
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
);

fn fake() -> FakeServer {
    let any = json!({"type": "object"});
    FakeServer::new("fx")
        .era(Era::Modern)
        .tool(Tool::new("echo").schema(any.clone()).answers_text("done"))
        .tool(Tool::new("fail").schema(any).fails_with("no"))
}

/// The families of a page in OpenMetrics.
#[track_caller]
fn families(served: &Served) -> Vec<Value> {
    let response = served.send("GET", "/metrics", &[OPENMETRICS], "");
    assert_eq!(
        response.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = repository.join("target/peers/python-metrics");
    assert!(peers.join(".stamp").exists(), "run scripts/peers first");
    let mut command = Command::new(peers.join("bin/python"));
    command
        .arg(repository.join("tests/peers/openmetrics.py"))
        .stderr(Stdio::piped());
    let ran = Ran::fed(command, &response.body);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.err, response.body);
    serde_json::from_value(ran.json()).unwrap()
}

/// The samples of a family with this name, in which each of the labels has its value.
fn samples<'f>(families: &'f [Value], name: &str, labels: &Value) -> Vec<&'f Value> {
    let all = families.iter().flat_map(|family| family["samples"].as_array().unwrap());
    let labels = labels.as_object().unwrap();
    let has_labels = |sample: &&Value| labels.iter().all(|(label, value)| sample["labels"][label] == *value);
    all.filter(|sample| sample["name"] == name).filter(has_labels).collect()
}

fn start(more: &str) -> (Home, Served) {
    start_for(&[], more)
}

/// A gateway whose server is ready, as a client with these headers sees.
fn start_for(headers: &[(&str, &str)], more: &str) -> (Home, Served) {
    let home = Home::new();
    let entry = home.entry("fx", fake(), "");
    home.config(&format!("{entry}\n{more}"));
    let served = Served::start(&home, &["--no-socket"]);
    until("there is a tool `fx__echo`", || {
        served.tools("/mcp", headers).iter().any(|tool| tool == "fx__echo")
    });
    (home, served)
}

#[test]
fn requests_have_durations_without_a_collector() {
    let (_home, served) = start("");
    for tool in ["fx__echo", "fx__echo", "fx__fail"] {
        call_modern(&served, &[], tool, &json!({}));
    }
    let page = served.send("GET", "/metrics", &[], "");
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    for line in [
        "mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\",network_transport=\"tcp\",mcp_protocol_version=\"2026-07-28\"} 2",
        "mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\",error_type=\"tool_error\",network_transport=\"tcp\",mcp_protocol_version=\"2026-07-28\"} 1",
        "mcp_client_operation_duration_seconds_count{pegboard_server=\"fx\",mcp_method_name=\"tools/call\",network_transport=\"pipe\",mcp_protocol_version=\"2026-07-28\"} 2",
        "mcp_client_operation_duration_seconds_count{pegboard_server=\"fx\",mcp_method_name=\"tools/call\",error_type=\"tool_error\",network_transport=\"pipe\",mcp_protocol_version=\"2026-07-28\"} 1",
    ] {
        assert!(
            page.body.lines().any(|written| written == line),
            "{line}: {}",
            page.body
        );
    }
    assert!(!page.body.contains("# EOF") && !page.body.contains("trace_id"));
}

#[test]
fn a_parser_of_openmetrics_reads_the_page_and_finds_no_exemplars_without_traces() {
    let (_home, served) = start("");
    call_modern(
        &served,
        &[],
        "fx__echo",
        &json!({"traceparent": parent("00f067aa0ba902b7")}),
    );
    call_modern(&served, &[], "nothing", &json!({}));
    let families = families(&served);
    let calls = samples(
        &families,
        "pegboard_calls_total",
        &json!({"server": "fx", "kind": "ok"}),
    );
    assert_eq!(calls.len(), 1, "{families:#?}");
    assert_eq!(calls[0]["value"], 1.0);
    let family = |name: &str| families.iter().find(|family| family["name"] == name).unwrap();
    assert_eq!(family("pegboard_calls")["type"], "counter");
    assert_eq!(family("pegboard_received_bytes")["unit"], "bytes");
    assert_eq!(family("mcp_server_operation_duration_seconds")["unit"], "seconds");
    for family in &families {
        for sample in family["samples"].as_array().unwrap() {
            assert_eq!(sample["exemplar"], Value::Null, "{sample:#}");
        }
    }
}

#[test]
fn exemplars_name_the_recorded_request_and_the_durations_are_sent_once() {
    let (_home, collector, served) = telemetry::start(Era::Modern, "metrics_interval = \"200ms\"");
    call_modern(
        &served,
        &[],
        "fx__echo",
        &json!({"traceparent": parent("00f067aa0ba902b7")}),
    );
    let spans = [("server", "SPAN_KIND_SERVER"), ("client", "SPAN_KIND_CLIENT")];
    let families = families(&served);
    for (side, kind) in spans {
        let tool = if side == "client" { "echo" } else { "fx__echo" };
        let span = collector.span(telemetry::TRACE, &format!("tools/call {tool}"), kind);
        let name = format!("mcp_{side}_operation_duration_seconds_bucket");
        let buckets = samples(&families, &name, &json!({"mcp_method_name": "tools/call"}));
        let mut exemplars = buckets.iter().map(|bucket| &bucket["exemplar"]);
        let exemplar = exemplars.find(|exemplar| !exemplar.is_null()).unwrap();
        assert_eq!(
            exemplar["labels"],
            json!({"trace_id": telemetry::TRACE, "span_id": span.id()})
        );
        let otlp = format!("mcp.{side}.operation.duration");
        until("the durations are sent with their exemplars", || {
            collector.points(&otlp).iter().any(|point| {
                let traces = point["exemplars"].as_array().into_iter().flatten();
                let mut traces = traces.map(|exemplar| telemetry::hex(&exemplar["traceId"]));
                traces.any(|trace| trace == telemetry::TRACE)
            })
        });
        assert_eq!(collector.points(&format!("mcp_{side}_operation_duration")).len(), 0);
    }
}

#[test]
fn calls_are_counted_by_tool_principal_and_view_within_bounds() {
    let tokens: String = ["alice", "bob", "other"].map(token).concat();
    // The one that waits for the tools is the first to be seen.
    let first = [("Authorization", "Bearer other")];
    let (home, served) = start_for(
        &first,
        &format!("[views.small]\nservers = [\"fx\"]\n[serve.metrics]\nmax_tools = 1\nmax_principals = 2\n{tokens}"),
    );
    let call = |name: &str, path: &str, tool: &str| {
        let authorization = format!("Bearer {name}");
        let (session, _) = served.initialize(path, &[("Authorization", &authorization)]);
        let params = json!({"name": tool, "arguments": {}});
        served.ask(
            path,
            &[("Authorization", &authorization)],
            &session,
            "tools/call",
            &params,
        )
    };
    for (name, path, tool) in [
        ("other", "/mcp/view/small", "fx__echo"),
        ("alice", "/mcp", "fx__echo"),
        ("alice", "/mcp", "fx__fail"),
        ("alice", "/mcp", "fx__made_up"),
        ("bob", "/mcp", "fx__echo"),
    ] {
        call(name, path, tool);
    }
    let page = served
        .send("GET", "/metrics", &[("Authorization", "Bearer alice")], "")
        .body;
    for line in [
        "pegboard_tool_calls_total{server=\"fx\",tool=\"echo\",kind=\"ok\"} 3",
        "pegboard_tool_calls_total{server=\"fx\",tool=\"other\",kind=\"tool_error\"} 1",
        "pegboard_principal_calls_total{principal=\"other'\",kind=\"ok\"} 1",
        "pegboard_principal_calls_total{principal=\"alice\",kind=\"ok\"} 1",
        "pegboard_principal_calls_total{principal=\"alice\",kind=\"tool_error\"} 1",
        "pegboard_principal_calls_total{principal=\"alice\",kind=\"unknown_tool\"} 1",
        "pegboard_principal_calls_total{principal=\"other\",kind=\"ok\"} 1",
        "pegboard_view_calls_total{view=\"mcp/view/small\",kind=\"ok\"} 1",
        "pegboard_view_calls_total{view=\"mcp\",kind=\"ok\"} 2",
        "pegboard_view_call_duration_seconds_count{view=\"mcp\"} 4",
        "pegboard_view_calls_in_flight{view=\"mcp\"} 0",
    ] {
        assert!(page.lines().any(|written| written == line), "{line}: {page}");
    }
    assert!(!page.contains("made_up"), "{page}");
    assert!(page.contains("pegboard_tool_call_seconds_total{server=\"fx\",tool=\"echo\"} "));
    drop(served);
    // Zero leaves them out.
    let entry = home.entry("fx", fake(), "");
    home.config(&format!(
        "{entry}\n[serve.metrics]\nmax_tools = 0\nmax_principals = 0\n"
    ));
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("fx__echo");
    call_modern(&served, &[], "fx__echo", &json!({}));
    let page = served.send("GET", "/metrics", &[], "").body;
    assert!(
        page.contains("pegboard_calls_total{server=\"fx\",kind=\"ok\"} 1"),
        "{page}"
    );
    assert!(
        !page.contains("pegboard_tool_call") && !page.contains("pegboard_principal_call"),
        "{page}"
    );
}

#[test]
fn limits_stand_beside_what_they_limit() {
    let home = Home::new();
    let entry = home.entry("fx", fake(), "start = \"eager\"\nmax_in_flight = 3");
    home.config(&format!(
        "max_processes = 7\nmax_buffered = \"2MiB\"\n{entry}\n[queues.shared]\nconcurrent = 5\n[serve]\nmax_in_flight = 50\nmax_sessions = 60\nmax_connections = 70\n"
    ));
    let served = Served::start(&home, &["--no-socket"]);
    served.has_tool("fx__echo");
    let page = served.send("GET", "/metrics", &[], "").body;
    for line in [
        "pegboard_calls_permits_in_use{server=\"fx\"} 0",
        "pegboard_calls_permits_limit{server=\"fx\"} 3",
        "pegboard_calls_queued{server=\"fx\"} 0",
        "pegboard_calls_queued_limit{server=\"fx\"} 512",
        "pegboard_server_breaker{server=\"fx\",state=\"closed\"} 1",
        "pegboard_server_breaker{server=\"fx\",state=\"open\"} 0",
        "pegboard_queue_limit{queue=\"shared\"} 5",
        "pegboard_processes 1",
        "pegboard_processes_limit 7",
        "pegboard_buffered_limit_bytes 2097152",
        "pegboard_http_requests_in_flight_limit 50",
        "pegboard_http_sessions_limit 60",
        "pegboard_http_connections_limit 70",
        "pegboard_audit_required 0",
        "pegboard_audit_records_total 0",
    ] {
        assert!(page.lines().any(|written| written == line), "{line}: {page}");
    }
}

#[test]
fn records_of_the_audit_log_are_counted_written_or_lost() {
    let (home, served) = start("");
    drop(served);
    let value = |served: &Served, name: &str| -> f64 {
        let page = served.send("GET", "/metrics", &[], "").body;
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {page}")).parse().unwrap()
    };
    let serve = |audit: &str| {
        let entry = home.entry("fx", fake(), "");
        home.config(&format!("audit = {audit}\n{entry}"));
        let served = Served::start(&home, &["--no-socket"]);
        served.has_tool("fx__echo");
        call_modern(&served, &[], "fx__echo", &json!({}));
        served
    };
    let file = home.path("audit.jsonl");
    let served = serve(&format!("{{ file = {file:?}, required = true }}"));
    until("the decision and the end are written", || {
        value(&served, "pegboard_audit_records_total") >= 2.0
    });
    assert!((value(&served, "pegboard_audit_required") - 1.0).abs() < 0.1);
    assert!(value(&served, "pegboard_audit_lost_total") < 0.1);
    drop(served);
    // A folder is no file.
    std::fs::create_dir(home.path("folder")).unwrap();
    let served = serve(&format!("{:?}", home.path("folder")));
    until("both are lost", || value(&served, "pegboard_audit_lost_total") >= 2.0);
    assert!(value(&served, "pegboard_audit_records_total") < 0.1);
    assert!(value(&served, "pegboard_audit_ok") < 0.1);
}

/// A token that is the name of its holder.
fn token(name: &str) -> String {
    let digest = TokenDigest::compute(name);
    format!("[serve.tokens.{name}]\nsha256 = \"{digest}\"\n")
}
