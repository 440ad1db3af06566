//! `/livez`, `/readyz`, `/health` and `/metrics` of `pegboard serve`, and who may read them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read as _, Write as _},
    process::{Command, Stdio},
    time::Duration,
};

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, until},
};

fn fx() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("read").answers_text("read it"))
}

/// It cannot be started.
fn broken() -> Fault {
    Fault::ExitsAtStart {
        code: 3,
        stderr: "no such database".to_owned(),
    }
}

fn home(settings: &str) -> Home {
    let home = Home::new();
    let entry = home.entry("fx", fx(), "required = true\nstop_timeout = '200ms'");
    home.config(&format!("{settings}\n{entry}"));
    home
}

fn token(name: &str, more: &str) -> String {
    let digest = pegboard::config::TokenDigest::compute(&format!("pgb_{name}"));
    format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n{more}\n")
}

/// Sends a request without a body.
fn ask(served: &Served, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut stream = served.connect();
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += "Host: localhost\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    Response::read(stream)
}

fn get(served: &Served, path: &str) -> Response {
    ask(served, "GET", path, &[])
}

fn document(response: &Response) -> Value {
    serde_json::from_str(&response.body).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

fn is_ready(served: &Served) {
    until("the gateway is ready", || get(served, "/readyz").status == 200);
}

#[test]
fn it_is_ready_when_every_required_server_is() {
    let home = Home::new();
    let slow = fx().fault(Fault::SlowStart { ms: 1500 });
    let other = home.entry("other", fx().fault(broken()), "");
    home.config(&format!(
        "{}{other}",
        home.entry("fx", slow, "required = true\nstop_timeout = '200ms'")
    ));
    let served = Served::start(&home, &[]);
    let before = get(&served, "/readyz");
    assert_eq!(before.status, 503);
    assert_eq!(get(&served, "/livez").status, 200);
    assert_eq!(document(&before)["not_ready"][0]["server"], "fx");
    is_ready(&served);
    assert_eq!(
        document(&get(&served, "/readyz")),
        json!({"ready": true, "status": "ready", "not_ready": []}),
        "the other one is not required"
    );
}

#[test]
fn a_probe_without_a_token_is_told_states_and_no_errors() {
    let home = Home::new();
    let entry = home.entry("fx", fx().fault(broken()), "required = true");
    let tokens = format!(
        "{}{}",
        token("reader", "scopes = ['read']"),
        token("viewer", "view = 'v'")
    );
    home.config(&format!("[views.v]\n{tokens}{entry}"));
    let served = Served::start(&home, &[]);
    let row = |headers: &[(&str, &str)]| document(&ask(&served, "GET", "/readyz", headers))["not_ready"][0].clone();
    let reader = [("Authorization", "Bearer pgb_reader")];
    until("the start has failed", || row(&reader)["error"].is_string());
    for others in [
        &[][..],
        &[("Authorization", "Bearer pgb_nobody")],
        &[("Authorization", "Bearer pgb_viewer")],
    ] {
        let row = row(others);
        let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["server", "state"], "{others:?}");
    }
}

#[test]
fn it_is_not_ready_from_the_moment_it_stops() {
    let home = Home::new();
    let slow = fx().tool(Tool::new("slow").answers_text("done").after(Duration::from_secs(2)));
    home.config(&home.entry("fx", slow, "required = true"));
    let served = Served::start(&home, &[]);
    is_ready(&served);
    let (session, _) = served.initialize("/mcp", &[]);
    let mut call = served.connect();
    let request =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "fx__slow", "arguments": {}}});
    served.write(&mut call, "/mcp", &[("Mcp-Session-Id", &session)], &request.to_string());
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    // The head of this request is half sent when the signal comes.
    let mut probe = served.connect();
    probe.write_all(b"GET /readyz HTTP/1.1\r\nHost: local").unwrap();
    until("the probe is connected", || {
        let page = get(&served, "/metrics").body;
        page.contains("\npegboard_http_connections_open 3\n")
    });
    served.signal("TERM");
    until("new connections are refused", || {
        std::net::TcpStream::connect(&served.address).is_err()
    });
    probe.write_all(b"host\r\n\r\n").unwrap();
    let mut answer = String::new();
    probe.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\"stopping\""), "{answer}");
    let message = Response::read(call).message();
    assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
    assert_eq!(served.code(), Some(0));
}

#[test]
fn a_required_server_that_is_lazy_is_started_and_makes_it_ready() {
    let home = Home::new();
    let slow = fx().fault(Fault::SlowStart { ms: 1000 });
    let lazy = "required = true\nstart = 'lazy'\nstop_timeout = '200ms'";
    let other = home.entry("other", FakeServer::new("other"), "start = 'lazy'");
    home.config(&format!("{}{other}", home.entry("fx", slow, lazy)));
    let served = Served::start(&home, &[]);
    let before = get(&served, "/readyz");
    assert_eq!(before.status, 503, "{before:?}");
    // Without a call: a balancer sends none before it is ready.
    is_ready(&served);
    assert!(
        !home.path("other.log").exists(),
        "the other one waits for its first call"
    );
    // It is as ready after a restart, and says so while it is not.
    served.post("/api/v1/mcp/servers/fx/disable", &[], "");
    let stopped = get(&served, "/readyz");
    assert_eq!(stopped.status, 503);
    assert_eq!(document(&stopped)["not_ready"][0]["state"], "disabled", "{stopped:?}");
    served.post("/api/v1/mcp/servers/fx/enable", &[], "");
    is_ready(&served);
}

#[test]
fn a_broken_config_changes_nothing_and_is_told_everywhere() {
    let home = home("");
    let served = Served::start(&home, &[]);
    is_ready(&served);
    let config = std::fs::read_to_string(home.path(".config/pegboard/pegboard.toml")).unwrap();
    let health = || document(&get(&served, "/health"));
    assert_eq!(health()["status"], "ready");
    assert_eq!(health()["reload"]["failed"], Value::Null);
    home.config("[servers.fx\n");
    served.signal("HUP");
    until("the failure is told", || health()["reload"]["failed"].is_object());
    let told = health();
    assert_eq!(told["status"], "degraded");
    let message = told["reload"]["failed"]["message"].as_str().unwrap();
    assert!(message.contains("nothing has changed"), "{message}");
    served.says("the config is not reloaded, nothing has changed");
    let metrics = get(&served, "/metrics").body;
    assert!(
        metrics.contains("\npegboard_config_last_reload_successful 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\npegboard_config_reloads_total{outcome=\"failed\"} "),
        "{metrics}"
    );
    assert_eq!(served.tools("/mcp", &[]), ["fx__read"]);
    home.config(&config);
    served.signal("HUP");
    until("it is well again", || health()["status"] == "ready");
}

#[test]
fn every_route_asks_for_the_rights_that_it_needs() {
    let tokens = [
        token("reader", "scopes = ['read']"),
        token("runner", "scopes = ['call']"),
        token("admin", "scopes = ['admin']"),
        token("viewer", "view = 'other'\nscopes = ['read', 'call', 'admin']"),
    ];
    let home = home(&format!("[views.some]\n[views.other]\n{}", tokens.concat()));
    let served = Served::start(&home, &[]);
    is_ready(&served);
    // Without a token, with read, call, admin, and with a token of another view.
    let callers = [None, Some("reader"), Some("runner"), Some("admin"), Some("viewer")];
    let table: [(&str, &str, [u16; 5]); 12] = [
        ("GET", "/livez", [200; 5]),
        ("GET", "/readyz", [200; 5]),
        ("GET", "/health", [401, 200, 403, 403, 200]),
        ("GET", "/metrics", [401, 200, 403, 403, 403]),
        ("POST", "/metrics", [401, 405, 405, 405, 405]),
        // Without a session only POST works.
        ("GET", "/mcp", [401, 405, 405, 405, 405]),
        ("GET", "/mcp/fx", [401, 405, 405, 405, 403]),
        ("GET", "/mcp/view/some", [401, 405, 405, 405, 403]),
        ("GET", "/mcp/view/other", [401, 405, 405, 405, 405]),
        ("POST", "/messages", [401, 400, 400, 400, 400]),
        ("GET", "/fx/messages", [401, 405, 405, 405, 403]),
        ("GET", "/nothing", [401, 404, 404, 404, 404]),
    ];
    for (method, path, statuses) in table {
        for (caller, status) in callers.iter().zip(statuses) {
            let bearer = caller.map(|name| format!("Bearer pgb_{name}"));
            let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
            let response = ask(&served, method, path, &headers);
            assert_eq!(response.status, status, "{method} {path} by {caller:?}: {response:?}");
        }
    }
    // A token for a view is told nothing of the servers.
    let viewer = [("Authorization", "Bearer pgb_viewer")];
    let summary = document(&ask(&served, "GET", "/health", &viewer));
    let keys: BTreeSet<&String> = summary.as_object().unwrap().keys().collect();
    let expected: BTreeSet<String> = ["started_at", "status", "uptime_s", "version"]
        .map(str::to_owned)
        .into();
    assert_eq!(keys, expected.iter().collect());
}

/// The samples of a page by name and labels. Checks what Prometheus would refuse.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let mut types = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, is) = rest.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), is.to_owned()).is_none(), "twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let family = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| family.strip_suffix(suffix).filter(|name| types.contains_key(*name)))
                .unwrap_or(family);
            assert!(types.contains_key(family), "no type: {line}");
            let value: f64 = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn metrics_count_what_happens_and_prometheus_can_read_them() {
    let home = home("");
    let served = Served::start(&home, &[]);
    is_ready(&served);
    let (session, _) = served.initialize("/mcp", &[]);
    let call = json!({"name": "fx__read", "arguments": {}});
    for _ in 0..3 {
        served.ask("/mcp", &[], &session, "tools/call", &call);
    }
    ask(&served, "GET", "/mcp", &[("Host", "evil.example")]);
    let response = get(&served, "/metrics");
    let media_type = response.header("content-type");
    assert_eq!(media_type, Some("text/plain; version=0.0.4; charset=utf-8"));
    let found = samples(&response.body);
    for (name, value) in [
        ("pegboard_calls_total{server=\"fx\",kind=\"ok\"}", 3.0),
        ("pegboard_call_duration_seconds_count{server=\"fx\"}", 3.0),
        ("pegboard_call_duration_seconds_bucket{server=\"fx\",le=\"+Inf\"}", 3.0),
        ("pegboard_server_ready{server=\"fx\"}", 1.0),
        ("pegboard_ready", 1.0),
        ("pegboard_http_sessions_open", 1.0),
        ("pegboard_http_refused_total{reason=\"host\"}", 1.0),
        ("pegboard_http_requests_total{path=\"mcp\",status=\"4xx\"}", 1.0),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name}: {}", response.body);
    }
    assert!(found["process_open_fds"] > 3.0 && found["process_resident_memory_bytes"] > 1e6);
    let piped = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match piped {
        Ok(mut promtool) => {
            let page = response.body.clone();
            promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
            let ran = promtool.wait_with_output().unwrap();
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&ran.stdout),
                String::from_utf8_lossy(&ran.stderr)
            );
            assert!(ran.status.success() && said.trim().is_empty(), "{said}");
        }
        Err(error) => println!("skipped: promtool cannot be run: {error}"),
    }
    let file = home.path("metrics.txt");
    std::fs::write(&file, &response.body).unwrap();
    let python = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/peers/python-tools/bin/python"
    );
    let parse = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as f\n\
        print(sum(len(m.samples) for m in f(open(sys.argv[1]).read())))";
    match Command::new(python).args(["-c", parse]).arg(&file).output() {
        Ok(ran) if ran.status.success() => {
            let parsed: usize = String::from_utf8_lossy(&ran.stdout).trim().parse().unwrap();
            assert_eq!(parsed, found.len(), "the samples that the official client parses");
        }
        // The packages of `scripts/peers` are older than this test, or not installed.
        Ok(ran) => {
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(said.contains("No module named"), "{said}");
            println!("skipped: prometheus_client is not installed");
        }
        Err(error) => println!("skipped: the Python of scripts/peers cannot be run: {error}"),
    }
}

#[test]
fn nothing_that_clients_send_grows_the_labels() {
    let home = home("");
    let served = Served::start(&home, &[]);
    is_ready(&served);
    let (session, _) = served.initialize("/mcp", &[]);
    let visit = |round: usize| {
        let call = json!({"name": format!("fx__{round}"), "arguments": {}});
        served.ask("/mcp", &[], &session, "tools/call", &call);
        ask(&served, "GET", &format!("/path{round}"), &[]);
        ask(&served, "GET", &format!("/mcp/server{round}"), &[]);
        ask(&served, &format!("M{round}"), "/mcp", &[]);
        ask(&served, "GET", "/mcp", &[("Host", &format!("h{round}.example"))]);
        ask(
            &served,
            "GET",
            "/mcp",
            &[("Origin", &format!("https://o{round}.example"))],
        );
    };
    let names = || -> BTreeSet<String> { samples(&get(&served, "/metrics").body).into_keys().collect() };
    visit(0);
    names();
    let before = names();
    for round in 1..100 {
        visit(round);
    }
    assert_eq!(names(), before);
}

/// What a port scan from another machine would find.
#[cfg(target_os = "linux")]
#[test]
fn only_loopback_is_listened_on() {
    let home = home("");
    let served = Served::start(&home, &[]);
    is_ready(&served);
    let proc = format!("/proc/{}", served.pid());
    let sockets: BTreeSet<String> = std::fs::read_dir(format!("{proc}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut listening = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("{proc}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // State 0A is LISTEN; a UDP socket has no such state.
            if sockets.contains(fields[9]) && (fields[3] == "0A" || table.starts_with("udp")) {
                listening.push((table, fields[1].to_owned()));
            }
        }
    }
    // 127.0.0.1, in the byte order of the machine.
    let loopback = format!("{:08X}:", u32::from_ne_bytes([127, 0, 0, 1]));
    assert_eq!(listening.len(), 1, "{listening:?}");
    assert!(listening[0].1.starts_with(&loopback), "{listening:?}");
}
