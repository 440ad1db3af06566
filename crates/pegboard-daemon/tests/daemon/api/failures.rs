//! What has failed is shown everywhere an operator looks, until it is well again.

use std::{io, sync::Once, time::Duration};

use axum::body::Body;
use http::Request;
use pegboard::{
    Config, Env, Format, Pegboard, Timestamp, ToolCall,
    journal::{CallJournal, JournalEntry, JournalProblem},
};
use pegboard_base::sync::Mutex;
use pegboard_daemon::{Daemon, ReloadNote, Reloads};
use pegboard_gateway::{Gateway, GatewayHost};
use pegboard_testkit::{FakeServer, NetHandle, Tool};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_service::Service as _;

use crate::api::fixture::{API, PATIENCE, json, read};

/// The log of this process. The audit log is written by a thread of its own, so a subscriber of this thread would miss it.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start_log() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| LogWriter);
        let _ = tracing::subscriber::set_global_default(subscriber.finish());
    });
}

/// A server, a board with it, and the gateway of its daemon.
struct Stage {
    board: Pegboard,
    gateway: Gateway,
    reloads: Reloads,
    server: NetHandle,
    folder: tempfile::TempDir,
}

fn good() -> FakeServer {
    FakeServer::new("x").tool(Tool::new("read").read_only().answers_text("read it"))
}

impl Stage {
    /// The server `name` with these settings. `{folder}` in the settings of the board is a folder of the test.
    async fn new(name: &str, server: &FakeServer, of_board: &str, of_server: &str) -> Self {
        start_log();
        let server = server.serve_http().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let of_board = of_board.replace("{folder}", folder.path().to_str().unwrap());
        let config = format!("{of_board}\n[servers.{name}]\nurl = '{}'\n{of_server}\n", server.url());
        let loaded = Config::from_text(&config, Format::Toml, &Env::process());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
        let (reloads, _requests) = Reloads::new();
        let builder = Gateway::for_board(board.clone()).unwrap();
        let daemon = Daemon::new(board.clone(), reloads.clone()).with_monitor(builder.monitor());
        Self {
            board,
            gateway: builder.fallback(daemon.router()).build(),
            reloads,
            server,
            folder,
        }
    }

    async fn get(&self, path: &str) -> String {
        let request = Request::get(path).header("host", "localhost");
        let response = self.gateway.router().call(request.body(Body::empty()).unwrap()).await;
        let (status, text) = read(response.unwrap()).await;
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    async fn get_json(&self, path: &str) -> Value {
        json(&self.get(path).await)
    }

    /// Calls a tool in a view of its own. Returns whether it has run.
    async fn call(&self, tool: &str) -> bool {
        let tools = self.board.toolset();
        let reply = tools.call(ToolCall::new(tool).timeout(PATIENCE)).await;
        tools.close().await;
        !reply.outcome.is_error()
    }

    /// Calls a tool until it runs: the wait before the next attempt to connect is not the test's.
    async fn call_until_it_runs(&self, tool: &str) {
        let end = Instant::now() + 3 * PATIENCE;
        while !self.call(tool).await {
            assert!(Instant::now() < end, "{:?}", self.board.status());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the check that follows a failed call is done.
    async fn until_noticed(&self) {
        let end = Instant::now() + 3 * PATIENCE;
        while self.board.status().healthy {
            assert!(Instant::now() < end, "{:?}", self.board.status());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether each place shows a failure: status, health, warnings, metrics.
    async fn shown(&self, metric: &str, has_failed: &str, warning: &str) -> [(&'static str, bool); 4] {
        let servers = self.get_json(&format!("{API}/servers")).await;
        let health = self.get_json("/health").await;
        let warnings = self.get_json(&format!("{API}/warnings")).await;
        let metrics = self.get("/metrics").await;
        let has = |warnings: &Value| {
            let mut ids = warnings
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["id"].as_str().unwrap());
            ids.any(|id| id.starts_with(warning))
        };
        let is_failed = metrics.lines().any(|line| line == format!("{metric} {has_failed}"));
        let is_known = metrics.lines().any(|line| line.starts_with(&format!("{metric} ")));
        assert!(is_known, "{metric}: {metrics}");
        [
            ("status", has(&servers["warnings"])),
            ("health", health["status"] == "degraded" && has(&health["warnings"])),
            ("warnings", has(&warnings["warnings"])),
            ("metrics", is_failed),
        ]
    }
}

/// A kind of failure: how it begins and ends, and by which words each place shows it.
struct Case {
    name: &'static str,
    stage: Stage,
    metric: String,
    has_failed: &'static str,
    warning: String,
    logged: Option<String>,
}

impl Case {
    fn of_server(name: &'static str, stage: Stage, server: &str) -> Self {
        Self {
            name,
            stage,
            metric: format!("pegboard_server_troubled{{server=\"{server}\"}}"),
            has_failed: "1",
            warning: format!("mcp_health:{server}"),
            logged: Some(server.to_owned()),
        }
    }

    async fn assert_shown(&self, expected: bool, step: &str) {
        let shown = self.stage.shown(&self.metric, self.has_failed, &self.warning).await;
        for (place, is_shown) in shown {
            assert_eq!(is_shown, expected, "{}, {step}: {place}", self.name);
        }
        if let Some(words) = self.logged.as_ref().filter(|_| expected) {
            let log = String::from_utf8(LOG.lock().clone()).unwrap();
            let mut warned = log.lines().filter(|line| line.contains("WARN"));
            assert!(warned.any(|line| line.contains(words)), "{}, {step}: {log}", self.name);
        }
    }
}

/// Under these settings nothing but a call tries a server again.
const ONLY_CALLS: &str =
    "start = 'lazy'\nrestart = false\nhealth_interval = 'off'\nconnect_timeout = '5s'\nbreaker = 'off'\n";

#[tokio::test]
async fn a_server_that_is_down_is_shown_everywhere_until_it_is_well() {
    for scope in ["shared", "session"] {
        let name = format!("down-{scope}");
        let tool = format!("{name}.read");
        let settings = format!("{ONLY_CALLS}scope = '{scope}'");
        let stage = Stage::new(&name, &good(), "", &settings).await;
        assert!(stage.call(&tool).await);
        let case = Case::of_server("a server is down", stage, &name);
        case.assert_shown(false, "before").await;
        case.stage.server.stop().await;
        assert!(!case.stage.call(&tool).await);
        case.stage.until_noticed().await;
        case.assert_shown(true, "during").await;
        // Neither a view nor a listing changes what is known.
        let view = case.stage.board.toolset();
        let listed = case.stage.get_json(&format!("{API}/tools")).await;
        assert_eq!(listed["tools"][0]["available"], false, "{listed}");
        assert_eq!(listed["unavailable"][0]["server"], name.as_str(), "{listed}");
        case.assert_shown(true, "a view was opened").await;
        view.close().await;
        case.assert_shown(true, "and closed").await;
        case.stage.server.restart().await.unwrap();
        case.stage.call_until_it_runs(&tool).await;
        case.assert_shown(false, "after").await;
        let listed = case.stage.get_json(&format!("{API}/tools")).await;
        assert_eq!(listed["tools"][0]["available"], Value::Null, "{listed}");
        case.stage.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_its_credential_is_shown_everywhere_until_it_is_well() {
    for scope in ["shared", "session"] {
        let name = format!("locked-{scope}");
        let tool = format!("{name}.read");
        let settings = format!("{ONLY_CALLS}scope = '{scope}'");
        let locked = good().bearer("token-1234");
        let stage = Stage::new(&name, &locked, "", &settings).await;
        assert!(!stage.call(&tool).await);
        let case = Case::of_server("a server needs a credential", stage, &name);
        case.assert_shown(true, "during").await;
        case.stage.server.change(|script| *script = good().script().clone());
        assert!(case.stage.board.reconnect(&name).await);
        case.stage.call_until_it_runs(&tool).await;
        case.assert_shown(false, "after").await;
        case.stage.board.shutdown().await;
    }
}

#[tokio::test]
async fn a_required_audit_log_that_cannot_be_written_is_shown_everywhere_until_it_can() {
    let of_board = "audit = { file = '{folder}/audit.jsonl', required = true }";
    let stage = Stage::new("audited", &good(), of_board, "start = 'lazy'").await;
    let file = stage.folder.path().join("audit.jsonl");
    let case = Case {
        name: "the audit log cannot be written",
        metric: "pegboard_audit_ok".to_owned(),
        has_failed: "0",
        warning: "audit:required".to_owned(),
        logged: Some(file.display().to_string()),
        stage,
    };
    std::fs::create_dir(&file).unwrap();
    assert!(!case.stage.call("audited.read").await);
    case.assert_shown(true, "during").await;
    assert!(!case.stage.call("audited.read").await);
    case.assert_shown(true, "still").await;
    std::fs::remove_dir(&file).unwrap();
    assert!(case.stage.call("audited.read").await);
    case.assert_shown(false, "after").await;
    case.stage.board.shutdown().await;
}

/// The command logs these, because it applies configs.
#[tokio::test]
async fn a_config_that_is_not_in_effect_is_shown_everywhere_until_it_is() {
    let stage = Stage::new("kept", &good(), "", "start = 'lazy'").await;
    let mut case = Case {
        name: "a reload failed",
        metric: "pegboard_config_in_effect".to_owned(),
        has_failed: "0",
        warning: "config:reload".to_owned(),
        logged: None,
        stage,
    };
    case.assert_shown(false, "before").await;
    case.stage.reloads.note_failed("it has errors", Some("line 3"));
    case.assert_shown(true, "during").await;
    case.stage.reloads.note_applied();
    case.assert_shown(false, "after").await;

    (case.name, case.warning) = ("a server was not replaced", "config:server:kept".to_owned());
    let note = ReloadNote::for_server("kept".parse().unwrap(), "its new settings do not work");
    case.stage.reloads.note_applied_with(&[note], Default::default());
    case.assert_shown(true, "during").await;
    let health = case.stage.get_json("/health").await;
    assert_eq!(health["reload"]["notes"][0]["server"], "kept", "{health}");
    case.stage.reloads.note_applied();
    case.assert_shown(false, "after").await;
}

#[tokio::test]
async fn a_server_that_waits_to_be_connected_is_named_until_it_is() {
    let stage = Stage::new("goat", &good(), "", "start = 'explicit'").await;
    let warned = async || {
        let warnings = stage.get_json(&format!("{API}/warnings")).await;
        let warnings = warnings["warnings"].as_array().unwrap().clone();
        let about = warnings.iter().find(|warning| warning["id"] == "not_connected:goat");
        about.map(|warning| warning["details"].as_str().unwrap().to_owned())
    };
    assert!(warned().await.unwrap().contains("/api/v1/mcp/servers/goat/reconnect"));
    let row = &stage.get_json(&format!("{API}/servers/goat")).await["servers"][0];
    assert_eq!((&row["state"], &row["awaits_connect"]), (&json!("idle"), &json!(true)));
    let request = Request::post(format!("{API}/servers/goat/reconnect"))
        .header("host", "localhost")
        .header("content-type", "application/json");
    let response = stage.gateway.router().call(request.body(Body::empty()).unwrap()).await;
    let (status, text) = read(response.unwrap()).await;
    assert!((200..300).contains(&status), "{text}");
    assert_eq!(warned().await, None);
    assert!(stage.call("goat.read").await);
}

#[tokio::test]
async fn listings_of_the_api_open_no_server_of_a_session() {
    let settings = format!("{ONLY_CALLS}scope = 'session'");
    let stage = Stage::new("mine", &good(), "", &settings).await;
    assert!(stage.call("mine.read").await);
    let starts = stage.server.count("initialize") + stage.server.count("server/discover");
    for path in [
        "/api/v1/mcp/tools",
        "/api/v1/mcp/resources",
        "/api/v1/mcp/prompts",
        "/openapi.json",
    ] {
        stage.get(path).await;
    }
    let listed = stage.get_json(&format!("{API}/tools?search=read")).await;
    assert_eq!(listed["tools"][0]["name"], "mine__read", "{listed}");
    assert_eq!(
        stage.server.count("initialize") + stage.server.count("server/discover"),
        starts
    );
    let rows = stage.get_json(&format!("{API}/servers")).await;
    let rows = rows["servers"].as_array().unwrap();
    assert!(rows.iter().all(|row| row.get("view").is_none()), "{rows:?}");
    stage.board.shutdown().await;
}

/// A journal on a full disk.
struct FullJournal;

impl CallJournal for FullJournal {
    fn begin(&self, _: &JournalEntry<'_>) -> u64 {
        0
    }

    fn end(&self, _: u64) {}

    fn problem(&self) -> Option<JournalProblem> {
        Some(JournalProblem::new("no space left", Timestamp::now()))
    }
}

#[tokio::test]
async fn a_journal_that_cannot_note_calls_is_a_warning_and_a_metric() {
    let board = Pegboard::builder(Config::default()).journal(FullJournal).open();
    let daemon = Daemon::new(board.clone(), Reloads::new().0);
    let gateway = Gateway::for_board(board.clone())
        .unwrap()
        .fallback(daemon.router())
        .build();
    let status = daemon.status();
    assert_eq!(status["warnings"][0]["category"], "journal", "{status}");
    assert_eq!(status["warnings"][0]["details"], "no space left", "{status}");
    assert_eq!(status["healthy"], true, "calls are made all the same");
    let request = Request::get("/metrics").header("host", "localhost");
    let response = gateway.router().call(request.body(Body::empty()).unwrap()).await;
    let (_, page) = read(response.unwrap()).await;
    assert!(page.contains("pegboard_journal_ok 0\n"), "{page}");
}

#[tokio::test]
async fn what_a_tool_said_to_one_client_is_not_in_the_status_of_the_server() {
    let fake = good().tool(Tool::new("insert").fails_with("no room for row 4711 of Ada"));
    let stage = Stage::new("db", &fake, "", "").await;
    stage.call("db.insert").await;
    let status = stage.get_json(&format!("{API}/servers/db")).await;
    let error = &status["servers"][0]["last_error"];
    assert_eq!(error["message"], "a call failed: tool_error", "{error}");
    assert_eq!(error["call"], "tool_error", "{error}");
    assert!(error["at"].is_string(), "{error}");
    for path in [
        format!("{API}/servers"),
        format!("{API}/warnings"),
        "/health".to_owned(),
        "/readyz".to_owned(),
    ] {
        let text = stage.get_json(&path).await.to_string();
        assert!(!text.contains("4711") && !text.contains("insert"), "{path}: {text}");
    }
    let own = stage.board.status().servers[0].last_error.clone().unwrap();
    assert!(own.message.contains("4711"), "the program itself reads it: {own:?}");
    stage.board.shutdown().await;
}
