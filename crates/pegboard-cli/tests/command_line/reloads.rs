//! What a reload of a running daemon applies and in which order, and what it says of the settings that it does not apply.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
};

use pegboard::config::TokenDigest;
use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, until},
};

const RELOAD: &str = "/api/v1/mcp/reload";
const CONFIG: &str = ".config/pegboard/pegboard.toml";

fn fake(name: &str) -> FakeServer {
    FakeServer::new(name).tool(Tool::new("read").read_only().answers_text("read it"))
}

/// The part of a config that has the server `fx`.
fn fx(home: &Home) -> String {
    home.entry("fx", fake("fx"), "stop_timeout = '200ms'")
}

fn token(name: &str) -> String {
    let digest = TokenDigest::compute(&format!("pgb_{name}"));
    format!("[serve.tokens.{name}]\nsha256 = '{digest}'\nscopes = ['read', 'call', 'admin']\n")
}

/// Sends a request with the token of this name.
fn send(served: &Served, who: &str, method: &str, path: &str) -> Response {
    let bearer = format!("Bearer pgb_{who}");
    let headers = [("Accept", "application/json"), ("Authorization", bearer.as_str())];
    served.send(method, path, &headers, "")
}

#[track_caller]
fn json_of(response: &Response) -> Value {
    assert_eq!(response.status, 200, "{response:?}");
    serde_json::from_str(&response.body).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

fn warnings(served: &Served) -> Vec<String> {
    let document = json_of(&send(served, "", "GET", "/api/v1/mcp/warnings"));
    let warnings = document["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| format!("{} {}", warning["id"], warning["details"]))
        .collect()
}

fn is_in_effect(served: &Served) -> bool {
    let page = send(served, "", "GET", "/metrics");
    page.body.contains("\npegboard_config_in_effect 1\n")
}

#[test]
fn a_setting_of_the_board_that_a_reload_does_not_apply_is_named_everywhere() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    assert!(is_in_effect(&served));
    fs::write(
        home.path(CONFIG),
        format!("max_processes = 2\naudit = '{}'\n{fx}", home.path("a.jsonl").display()),
    )
    .unwrap();
    let reloaded = json_of(&served.post(RELOAD, &[], ""));
    assert_eq!(reloaded["notes"][0]["topic"], "restart", "{reloaded}");
    let told = reloaded["notes"][0]["message"].as_str().unwrap();
    assert!(told.contains("`audit`, `max_processes`"), "{told}");
    assert!(!is_in_effect(&served));
    let warned = warnings(&served);
    assert!(
        warned
            .iter()
            .any(|one| one.contains("config:restart") && one.contains("`audit`")),
        "{warned:?}"
    );
    served.says("settings that take effect at the next start have changed: `audit`, `max_processes`");
    let health = json_of(&send(&served, "", "GET", "/health"));
    assert_eq!(health["status"], "ready", "nothing that was protected is not: {health}");
    fs::write(home.path(CONFIG), &fx).unwrap();
    let reloaded = json_of(&served.post(RELOAD, &[], ""));
    assert_eq!((&reloaded["notes"], is_in_effect(&served)), (&json!([]), true));
}

#[test]
fn an_audit_log_that_is_required_from_now_on_and_missing_is_loud() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    fs::write(
        home.path(CONFIG),
        format!("audit = {{ file = '/nonexistent/a.jsonl', required = true }}\n{fx}"),
    )
    .unwrap();
    json_of(&served.post(RELOAD, &[], ""));
    served.says("`audit.required = true`, and this process was started without that");
    let warned = warnings(&served);
    assert!(warned.iter().any(|one| one.contains("config:audit")), "{warned:?}");
    let health = json_of(&send(&served, "", "GET", "/health"));
    assert_eq!(health["status"], "degraded", "{health}");
    home.run(&["status"]).says("audit.required");
}

#[test]
fn clients_see_the_names_of_a_new_style_after_a_reload() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let (session, _) = served.initialize("/mcp", &[]);
    let listed = || served.ask("/mcp", &[], &session, "tools/list", &json!({}))["result"]["tools"][0]["name"].clone();
    assert_eq!(listed(), "fx__read");
    fs::write(home.path(CONFIG), format!("naming = '{{server}}-{{tool}}'\n{fx}")).unwrap();
    json_of(&served.post(RELOAD, &[], ""));
    assert_eq!(listed(), "fx-read");
    assert_eq!(served.tools("/mcp", &[]), ["fx-read"]);
    let tools = json_of(&send(&served, "", "GET", "/api/v1/mcp/tools"));
    assert_eq!(tools["tools"][0]["name"], "fx-read", "{tools}");
    assert!(is_in_effect(&served));
}

/// A `serve` that talks to people.
struct Spoken {
    child: Child,
    err: PathBuf,
}

impl Spoken {
    fn start(home: &Home) -> Self {
        let err = home.path("spoken.err");
        let child = home
            .pegboard(&["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(fs::File::create(&err).unwrap())
            .spawn()
            .unwrap();
        let spoken = Self { child, err };
        spoken.says("listening on");
        spoken
    }

    /// What it has said so far, without the breaks of lines.
    fn err(&self) -> String {
        let text = fs::read_to_string(&self.err).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn says(&self, words: &str) {
        until(&format!("it says `{words}`, not {}", self.err()), || {
            self.err().contains(words)
        });
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_line_of_a_reload_names_what_has_changed_and_what_is_not_in_effect() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let spoken = Spoken::start(&home);
    let view = "views.reading = { servers = ['fx'] }\n";
    fs::write(home.path(CONFIG), format!("{view}{}{}{fx}", token("ann"), token("ben"))).unwrap();
    spoken.says(
        "config reloaded; no server changed; tokens: new ann ben; every request needs a token from now on; views: new reading",
    );
    fs::write(
        home.path(CONFIG),
        format!("max_processes = 2\n{}{}{fx}", token("ann"), token("cem")),
    )
    .unwrap();
    spoken.says(
        "config reloaded; no server changed; tokens: new cem, removed ben; views: removed reading; not in effect before a restart: `max_processes`",
    );
    assert!(!spoken.err().contains("pgb_"), "{}", spoken.err());
}

/// A server whose handshake takes longer than a test.
fn slow(home: &Home) -> String {
    home.entry(
        "slow",
        fake("slow").fault(Fault::SlowStart { ms: 600_000 }),
        "stop_timeout = '200ms'",
    )
}

/// How many reloads were applied.
fn applied(served: &Served, who: &str) -> u64 {
    json_of(&send(served, who, "GET", "/health"))["reload"]["applied"]
        .as_u64()
        .unwrap()
}

fn is_admitted(served: &Served, who: &str) -> bool {
    send(served, who, "GET", "/api/v1/mcp/tools").status == 200
}

#[test]
fn a_token_that_is_removed_ends_while_a_reload_waits_for_a_slow_server() {
    let home = Home::new();
    let fx = fx(&home);
    let config = |tokens: &[&str], more: &str| {
        let tokens: Vec<String> = tokens.iter().map(|name| token(name)).collect();
        format!("views.reading = {{ servers = ['fx'] }}\n{}{fx}{more}", tokens.join(""))
    };
    home.config(&config(&["ann", "ben", "cem"], ""));
    let served = Served::start(&home, &[]);
    until("the server is ready", || {
        let tools = send(&served, "ann", "GET", "/api/v1/mcp/tools").body;
        tools.contains("fx__read")
    });
    // The server that is added takes its time. The token that the same reload takes away does not.
    fs::write(home.path(CONFIG), config(&["ann", "ben"], &slow(&home))).unwrap();
    until("the token of this reload has ended", || !is_admitted(&served, "cem"));
    until("the slow server starts", || home.path("slow.log").exists());
    assert!(is_admitted(&served, "ben"));
    assert_eq!(applied(&served, "ann"), 0, "the reload is under way");
    // So does one that a later reload takes away, which waits for the first one.
    fs::write(home.path(CONFIG), config(&["ann", "dan"], &slow(&home))).unwrap();
    until("the token of the later reload has ended", || {
        !is_admitted(&served, "ben")
    });
    assert!(is_admitted(&served, "dan") && is_admitted(&served, "ann"));
    assert_eq!(applied(&served, "ann"), 0, "the first reload is under way");
}

#[test]
fn a_command_uses_the_daemon_while_a_reload_waits_for_a_slow_server() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let processes = home.log("fx").spawned.len();
    fs::write(home.path(CONFIG), format!("{fx}{}", slow(&home))).unwrap();
    // By the first command, or because the file has changed.
    let ran = home.run(&["call", "fx.read"]);
    assert_eq!(ran.ends_with(0).out, "read it\n");
    assert!(!ran.err.contains("without it"), "{}", ran.err);
    until("the slow server starts", || home.path("slow.log").exists());
    let began = std::time::SystemTime::now();
    let ran = home.run(&["call", "fx.read"]);
    assert_eq!(ran.ends_with(0).out, "read it\n");
    assert!(!ran.err.contains("without it"), "{}", ran.err);
    assert!(began.elapsed().unwrap().as_secs() < 8, "it waited for the reload");
    let status = home.run(&["status", "-o", "json"]).json();
    assert_eq!(status["daemon"]["pid"], served.pid(), "{status}");
    assert_eq!(applied(&served, ""), 0, "the reload is under way");
    assert_eq!(
        home.log("fx").spawned.len(),
        processes,
        "nothing was started beside the daemon"
    );
    assert_eq!(home.log("slow").spawned.len(), 1);
}

#[test]
fn a_command_waits_for_the_server_that_a_reload_adds() {
    let home = Home::new();
    let fx = fx(&home);
    home.config(&fx);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let late = home.entry(
        "late",
        fake("late").fault(Fault::SlowStart { ms: 2000 }),
        "stop_timeout = '200ms'",
    );
    fs::write(home.path(CONFIG), format!("{fx}{late}")).unwrap();
    let ran = home.run(&["call", "late.read"]);
    assert_eq!(ran.ends_with(0).out, "read it\n");
    assert!(!ran.err.contains("without it"), "{}", ran.err);
    assert_eq!(home.log("late").spawned.len(), 1);
}
