//! The dashboard and the alerts in `packaging`, with the Prometheus of Debian in front of a gateway. `scripts/peers` unpacks it.

mod prometheus;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use pegboard::config::TokenDigest;
use pegboard_testkit::{Era, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, Ran, until},
    telemetry::{Collector, TRACE, parent},
};
use prometheus::Prometheus;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// A program of Debian's package, if it is there.
fn program(name: &str) -> Option<PathBuf> {
    let path = root().join("target/peers/prometheus/usr/bin").join(name);
    if !path.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped check is told")]
        {
            eprintln!(
                "not tried: there is no {}; scripts/peers fetches it if it can",
                path.display()
            );
        }
        return None;
    }
    Some(path)
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

#[test]
fn the_alerts_are_valid_and_fire_on_what_they_are_for() {
    let Some(promtool) = program("promtool") else { return };
    let folder = root().join("packaging/prometheus");
    let checked = succeeds(
        Command::new(&promtool)
            .args(["check", "rules"])
            .arg(folder.join("alerts.yml")),
    );
    let alerts = alerts();
    assert!(checked.contains(&format!("{} rules found", alerts.len())), "{checked}");
    succeeds(
        Command::new(&promtool)
            .args(["test", "rules", "alerts_test.yml"])
            .current_dir(&folder),
    );
    let tests = fs::read_to_string(folder.join("alerts_test.yml")).unwrap();
    let guide = fs::read_to_string(root().join("docs/guides/monitoring.md")).unwrap();
    for alert in &alerts {
        for test in [
            format!("name: {alert} fires\n"),
            format!("name: {alert} does not fire\n"),
        ] {
            assert!(tests.contains(&test), "{test}");
        }
        assert!(guide.contains(&format!("\n### {alert}\n")), "the guide has no {alert}");
    }
    let text = fs::read_to_string(folder.join("alerts.yml")).unwrap();
    for (alert, rule) in alerts.iter().zip(text.split("- alert: ").skip(1)) {
        let link = format!("docs/guides/monitoring.md#{}\n", alert.to_lowercase());
        assert!(rule.trim_end().ends_with(link.trim_end()), "{rule}");
        for part in ["summary: ", "description: ", "severity: "] {
            assert!(rule.contains(part), "{alert} has no {part}");
        }
    }
}

/// The names of the alerts, in the order of the file.
fn alerts() -> Vec<String> {
    let text = fs::read_to_string(root().join("packaging/prometheus/alerts.yml")).unwrap();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

fn dashboard() -> Value {
    let text = fs::read_to_string(root().join("packaging/grafana/pegboard.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The queries of all panels, with all instances and servers chosen, each after the title of its panel.
fn panel_queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "30s");
            let query = query.replace("$instance", ".*").replace("$server", ".*");
            assert!(!query.contains('$'), "{query}");
            queries.push((format!("{}: {}", panel["id"], panel["title"]), query));
        }
    }
    queries
}

#[test]
fn the_dashboard_and_the_alerts_use_metrics_that_there_are() {
    let reference = fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let alerts = fs::read_to_string(root().join("packaging/prometheus/alerts.yml")).unwrap();
    let queries: Vec<String> = panel_queries(&dashboard())
        .into_iter()
        .map(|(_, query)| query)
        .collect();
    let text = format!("{}\n{alerts}", queries.join("\n"));
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_metric = |word: &&str| {
        ["pegboard_", "mcp_", "process_"]
            .iter()
            .any(|start| word.starts_with(start))
    };
    let mut seen = BTreeSet::new();
    for word in words.filter(is_metric) {
        let base = ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|end| word.strip_suffix(end));
        let is_label = word == "mcp_method_name" || word == "pegboard_server";
        let known = |name: &str| reference.contains(&format!("\n| `{name}` |"));
        assert!(is_label || known(word) || base.is_some_and(known), "{word}");
        seen.insert(word);
    }
    assert!(seen.len() > 60, "{seen:?}");
}

#[test]
fn every_panel_of_the_dashboard_has_a_place_and_says_what_it_shows() {
    let dashboard = dashboard();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel:#}");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel:#}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "two panels are at {x}, {y}: {panel:#}");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        for text in ["title", "description"] {
            assert!(panel[text].as_str().is_some_and(|text| !text.is_empty()), "{panel:#}");
        }
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target:#}");
            assert!(target["legendFormat"].as_str().is_some_and(|legend| !legend.is_empty()));
        }
    }
}

fn object() -> Value {
    json!({"type": "object"})
}

/// A server that works, one that is slow and has one place, one that dies, and one that cannot be started.
fn servers(home: &Home) -> String {
    let fx = FakeServer::new("fx")
        .era(Era::Modern)
        .tool(Tool::new("echo").schema(object()).answers_text("done"))
        .tool(Tool::new("fail").schema(object()).fails_with("no"));
    let wait = Tool::new("wait")
        .schema(object())
        .after(std::time::Duration::from_millis(150));
    let slow = FakeServer::new("slow").tool(wait.answers_text("done"));
    let dies = FakeServer::new("dies")
        .tool(Tool::new("die").schema(object()).answers_text("never"))
        .fault_on(When::tool("die"), Fault::DiesBeforeExecuting { code: 9 });
    [
        home.entry("fx", fx, "start = 'eager'"),
        home.entry("slow", slow, "start = 'eager'\nmax_in_flight = 1"),
        home.entry("dies", dies, "start = 'eager'"),
        "[servers.gone]\ncommand = '/no/such/program'\nstart = 'eager'\n".to_owned(),
    ]
    .join("\n")
}

/// The token of this name is the name.
fn token(name: &str, more: &str) -> String {
    let digest = TokenDigest::compute(name);
    format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n{more}\n")
}

fn start(home: &Home, collector: &Collector) -> Served {
    let config = [
        servers(home),
        format!("audit = {:?}", home.path("audit.jsonl")),
        "[views.small]\nservers = ['fx']\n[views.searching]\nbudget = 1\n".to_owned(),
        format!(
            "[serve.telemetry]\nendpoint = {:?}\nmetrics_interval = '500ms'",
            collector.endpoint
        ),
        token("agent", ""),
        token("limited", "concurrent = 1"),
        token("prometheus", "scopes = ['read']"),
    ];
    // What belongs to no table comes first.
    let [servers, audit, rest @ ..] = config;
    home.config(&format!("{audit}\n{servers}\n{}", rest.join("\n")));
    let served = Served::start_with(home, &["--no-socket"], &[("OTEL_BSP_SCHEDULE_DELAY", "20")]);
    let agent = [("Authorization", "Bearer agent")];
    for tool in ["fx__echo", "slow__wait", "dies__die"] {
        until(&format!("there is a tool `{tool}`"), || {
            served.tools("/mcp", &agent).iter().any(|known| known == tool)
        });
    }
    served
}

/// Makes calls of every kind.
fn make_calls(served: &Served) {
    let call = |holder: &str, path: &str, tool: &str| {
        let authorization = format!("Bearer {holder}");
        let headers = [("Authorization", authorization.as_str())];
        let (session, _) = served.initialize(path, &headers);
        let meta = json!({"traceparent": parent("00f067aa0ba902b7")});
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        served.ask(path, &headers, &session, "tools/call", &params);
    };
    call("agent", "/mcp", "fx__echo");
    call("agent", "/mcp", "fx__fail");
    call("agent", "/mcp", "fx__made_up");
    call("agent", "/mcp", "dies__die");
    call("agent", "/mcp", "gone__anything");
    call("agent", "/mcp/view/small", "fx__echo");
    call("agent", "/mcp/view/small", "fx__fail");
    call("agent", "/mcp/view/searching", "find_tools");
    call("limited", "/mcp", "fx__echo");
    std::thread::scope(|scope| {
        // One of them waits for the other.
        for holder in ["agent", "limited"] {
            scope.spawn(move || call(holder, "/mcp", "slow__wait"));
        }
    });
    let refused = served.send("GET", "/metrics", &[("Authorization", "Bearer wrong")], "");
    assert_eq!(refused.status, 401);
}

#[test]
fn prometheus_finds_a_series_for_every_panel_of_the_dashboard() {
    let (Some(promtool), Some(program)) = (program("promtool"), program("prometheus")) else {
        return;
    };
    let home = Home::new();
    let collector = Collector::start(&home);
    let served = start(&home, &collector);
    let prometheus = Prometheus::start(&home, &program, &promtool, &served.address);
    let dashboard = dashboard();
    let mut missing = panel_queries(&dashboard);
    assert!(missing.len() > 60, "{}", missing.len());
    make_calls(&served);
    prometheus.until(&format!("every panel has a series; stderr: {}", served.err()), || {
        missing.retain(|(_, query)| prometheus.query(query).is_empty());
        match missing.is_empty() {
            true => Ok(()),
            false => {
                make_calls(&served);
                Err(format!("{missing:#?}"))
            }
        }
    });
    variables_have_values(&prometheus, &dashboard);
    alerts_are_loaded(&prometheus);
    exemplars_are_traces_of_the_collector(&prometheus, &collector);
    let page = served.send("GET", "/metrics", &[("Authorization", "Bearer prometheus")], "");
    let mut check = Command::new(promtool);
    check.args(["check", "metrics"]).stderr(Stdio::piped());
    let checked = Ran::fed(check, &page.body);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
}

/// Grafana offers the values of a label of a metric.
fn variables_have_values(prometheus: &Prometheus, dashboard: &Value) {
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let mut seen = BTreeSet::new();
    for variable in variables.iter().filter(|variable| variable["type"] == "query") {
        let query = variable["query"]["query"].as_str().unwrap();
        let inner = query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
        let (metric, label) = inner.rsplit_once(", ").unwrap();
        let series = prometheus.query(&metric.replace("$instance", ".*"));
        assert!(
            series.iter().any(|series| series["metric"][label].is_string()),
            "{query}"
        );
        seen.insert(label.to_owned());
    }
    assert_eq!(seen, BTreeSet::from(["instance".to_owned(), "server".to_owned()]));
}

fn alerts_are_loaded(prometheus: &Prometheus) {
    let mut rules = Vec::new();
    prometheus.until("every alert was evaluated", || {
        let answer = prometheus.get("/api/v1/rules", &[]);
        rules = answer["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
        match rules.iter().all(|rule| rule["health"] == "ok") {
            true => Ok(()),
            false => Err(format!("{rules:#?}")),
        }
    });
    let names: Vec<String> = rules
        .iter()
        .map(|rule| rule["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, alerts());
    // What is wrong with this gateway is noticed.
    let is_pending = |name: &str| {
        rules
            .iter()
            .any(|rule| rule["name"] == name && rule["state"] != "inactive")
    };
    assert!(is_pending("PegboardServerDown"), "{rules:#?}");
    for name in [
        "PegboardDown",
        "PegboardNotReady",
        "PegboardAuditNotWritten",
        "PegboardReloadFailed",
    ] {
        assert!(!is_pending(name), "{name}: {rules:#?}");
    }
}

/// Prometheus keeps exemplars, and they name the spans that the collector has got.
fn exemplars_are_traces_of_the_collector(prometheus: &Prometheus, collector: &Collector) {
    for side in ["server", "client"] {
        let metric = format!("mcp_{side}_operation_duration_seconds_bucket");
        let mut span = String::new();
        prometheus.until("there is an exemplar", || {
            let answer = prometheus.exemplars(&metric);
            let series = answer.as_array().into_iter().flatten();
            let mut exemplars = series.flat_map(|series| series["exemplars"].as_array().into_iter().flatten());
            let found = exemplars.find(|exemplar| exemplar["labels"]["trace_id"] == TRACE);
            let id = found.and_then(|exemplar| exemplar["labels"]["span_id"].as_str());
            id.map(|id| id.clone_into(&mut span)).ok_or_else(|| answer.to_string())
        });
        until("the collector has the span of the exemplar", || {
            collector
                .spans()
                .iter()
                .any(|known| known.id() == span && known.trace() == TRACE)
        });
    }
}
