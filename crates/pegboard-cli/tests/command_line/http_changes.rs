//! Changes of a running daemon over its API and by its config files: what is refused, what holds, and what is recorded.

use std::{fs, thread, time::Duration};

use pegboard::config::TokenDigest;
use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, until},
};

const SERVERS: &str = "/api/v1/mcp/servers";
const RELOAD: &str = "/api/v1/mcp/reload";
const CONFIG: &str = ".config/pegboard/pegboard.toml";
const ALLOWED: &str = "[serve]\nallow_new_servers = true\n";
const ACCEPT: (&str, &str) = ("Accept", "application/json");

fn fake(name: &str) -> FakeServer {
    FakeServer::new(name).tool(Tool::new("read").read_only().answers_text("read it"))
}

/// A home with the server `fx` and more settings before it.
fn home(settings: &str) -> Home {
    let home = Home::new();
    let entry = home.entry("fx", fake("fx"), "");
    home.config(&format!("{settings}\n{entry}"));
    home
}

fn token(name: &str, more: &str) -> String {
    let digest = TokenDigest::compute(&format!("pgb_{name}"));
    format!("[serve.tokens.{name}]\nsha256 = '{digest}'\n{more}\n")
}

/// The settings of a fake server, as the body of a request.
fn settings(home: &Home, name: &str, fake: FakeServer) -> String {
    let command = home.command_of(name, fake);
    let mut words = command.split(' ');
    let program = words.next().unwrap();
    json!({"command": program, "args": words.collect::<Vec<_>>()}).to_string()
}

/// Sends a request with the token of this name, or without one.
fn send(served: &Served, who: &str, method: &str, path: &str, text: &str) -> Response {
    let bearer = format!("Bearer pgb_{who}");
    let headers = [ACCEPT, ("Authorization", bearer.as_str())];
    let headers = if who.is_empty() { &headers[..1] } else { &headers[..] };
    served.send(method, path, headers, text)
}

#[track_caller]
fn body(response: &Response, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    serde_json::from_str(&response.body).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

fn call(served: &Served, path: &str, text: &str) -> Response {
    served.post(&format!("/api/v1/mcp/{path}"), &[ACCEPT], text)
}

#[test]
fn a_config_file_that_was_emptied_removes_no_server() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    for text in ["", " \n\n"] {
        fs::write(home.path(CONFIG), text).unwrap();
        let problem = body(&served.post(RELOAD, &[], ""), 409);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("pegboard.toml is empty now"), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains("`[servers]`"), "{problem}");
        assert_eq!(
            body(&call(&served, "call", r#"{"name": "fx.read"}"#), 200)["text"],
            "read it"
        );
    }
    served.signal("HUP");
    served.says("is empty now");
    // One that is meant to have no servers says so.
    fs::write(home.path(CONFIG), "[servers]\n").unwrap();
    body(&served.post(RELOAD, &[], ""), 200);
    let status = body(&served.send("GET", SERVERS, &[ACCEPT], ""), 200);
    assert_eq!(status["servers"], json!([]));
    // From there an empty file changes nothing any more, but it was not empty before.
    fs::write(home.path(CONFIG), "").unwrap();
    body(&served.post(RELOAD, &[], ""), 409);
}

#[test]
fn a_config_file_that_is_just_being_written_is_read_again() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let text = fs::read_to_string(home.path(CONFIG)).unwrap();
    // Emptied, cut and gone: the ways in which editors replace a file.
    for step in 0..3 {
        let path = home.path(CONFIG);
        match step {
            0 => fs::write(&path, "").unwrap(),
            1 => fs::write(&path, &text[..text.len() / 2]).unwrap(),
            _ => fs::remove_file(&path).unwrap(),
        }
        let text = text.clone();
        let editor = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            fs::write(path, text).unwrap();
        });
        let reloaded = served.post(RELOAD, &[], "");
        editor.join().unwrap();
        body(&reloaded, 200);
        assert_eq!(home.log("fx").spawned.len(), 1, "the server was never removed");
    }
    fs::remove_file(home.path(CONFIG)).unwrap();
    let problem = body(&served.post(RELOAD, &[], ""), 409);
    assert!(
        problem["detail"].as_str().unwrap().contains("no config file any more"),
        "{problem}"
    );
    assert_eq!(
        body(&call(&served, "call", r#"{"name": "fx.read"}"#), 200)["text"],
        "read it"
    );
}

#[test]
fn a_call_of_a_disabled_server_is_told_what_to_do_and_not_to_try_again() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let change = |verb: &str| served.post(&format!("{SERVERS}/fx/{verb}"), &[ACCEPT], "");
    body(&change("disable"), 200);
    for (path, text) in [("call", r#"{"name": "fx.read"}"#), ("tools/fx/read", "{}")] {
        let refused = call(&served, path, text);
        let document = body(&refused, 409);
        assert_eq!(refused.header("retry-after"), None, "{refused:?}");
        assert!(document["hint"].as_str().unwrap().contains("enable"), "{document}");
        let kind = document["outcome"]["kind"].as_str().or(document["kind"].as_str());
        assert_eq!(kind, Some("unavailable"), "{document}");
    }
    let problem = body(&change("reconnect"), 409);
    assert!(problem["hint"].as_str().unwrap().contains("/fx/enable"), "{problem}");
    body(&change("refresh"), 409);
    body(&change("enable"), 200);
    body(&change("reconnect"), 200);
    assert_eq!(
        body(&call(&served, "call", r#"{"name": "fx.read"}"#), 200)["text"],
        "read it"
    );
}

#[test]
fn adding_a_server_needs_the_scope_the_flag_and_no_view() {
    let tokens = [
        token("reader", "scopes = ['read', 'call']"),
        token("admin", "scopes = ['admin']"),
        token("viewer", "view = 'v'\nscopes = ['read', 'call', 'admin']"),
    ]
    .concat();
    for (flag, admin) in [("", 403), (ALLOWED, 201)] {
        let home = home(&format!("{flag}[views.v]\nservers = ['fx']\n{tokens}"));
        let served = Served::start(&home, &[]);
        until("the server is ready", || {
            let status = send(&served, "reader", "GET", SERVERS, "");
            body(&status, 200)["servers"][0]["state"] == "ready"
        });
        let new = settings(&home, "new", fake("new"));
        let put =
            |who: &str, name: &str, text: &str| send(&served, who, "PUT", &format!("{SERVERS}/{name}"), text).status;
        assert_eq!(put("", "new", &new), 401, "{flag}");
        assert_eq!(put("reader", "new", &new), 403, "{flag}");
        for name in ["new", "fx"] {
            assert_eq!(put("viewer", name, &new), 403, "{flag}: a view adds and replaces none");
        }
        assert!(!home.path("new.log").exists(), "nothing was started");
        // As the config has it: no flag is needed, and a view may do it with its own servers.
        assert_eq!(put("admin", "fx", ""), 200, "{flag}");
        assert_eq!(put("viewer", "fx", ""), 200, "{flag}");
        assert_eq!(put("admin", "new", &new), admin, "{flag}");
        assert_eq!(home.path("new.log").exists(), admin == 201, "{flag}");
        // A view has only the servers that its config names.
        assert_eq!(
            send(&served, "viewer", "GET", &format!("{SERVERS}/new"), "").status,
            404
        );
    }
}

#[test]
fn a_reload_does_not_undo_what_is_added_or_removed_meanwhile() {
    let home = home(ALLOWED);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let slow = settings(&home, "new", fake("new").fault(Fault::SlowStart { ms: 700 }));
    thread::scope(|scope| {
        let put = scope.spawn(|| served.send("PUT", &format!("{SERVERS}/new"), &[ACCEPT], &slow));
        until("the new server starts", || home.path("new.log").exists());
        body(&served.post(RELOAD, &[], ""), 200);
        body(&put.join().unwrap(), 201);
    });
    assert_eq!(
        body(&call(&served, "call", r#"{"name": "new.read"}"#), 200)["text"],
        "read it"
    );
    assert_eq!(home.log("new").spawned.len(), 1, "it was not removed in between");
    for _ in 0..10 {
        thread::scope(|scope| {
            let reload = scope.spawn(|| served.post(RELOAD, &[], ""));
            assert_eq!(served.send("DELETE", &format!("{SERVERS}/new"), &[], "").status, 204);
            body(&reload.join().unwrap(), 200);
        });
        body(&served.send("GET", &format!("{SERVERS}/new"), &[ACCEPT], ""), 404);
        body(&served.send("PUT", &format!("{SERVERS}/new"), &[ACCEPT], &slow), 201);
    }
}

#[test]
fn every_change_is_in_the_audit_log_with_who_asked_for_it() {
    let tokens = [
        token("reader", "scopes = ['read']"),
        token("admin", "scopes = ['admin', 'read']"),
        token("viewer", "view = 'v'\nscopes = ['admin']"),
    ]
    .concat();
    let home = Home::new();
    let log = home.path("audit.jsonl");
    let entry = home.entry("fx", fake("fx"), "");
    home.config(&format!(
        "audit = {log:?}\n[views.v]\nservers = ['fx']\n{tokens}{entry}"
    ));
    let served = Served::start(&home, &[]);
    let one = |verb: &str| format!("{SERVERS}/fx{verb}");
    for (who, method, path, status) in [
        ("reader", "POST", one("/disable"), 403),
        ("viewer", "POST", one("/disable"), 200),
        ("admin", "POST", one("/reconnect"), 409),
        ("admin", "POST", one("/enable"), 200),
        ("admin", "POST", one("/reconnect"), 200),
        ("admin", "DELETE", one(""), 204),
        ("admin", "PUT", one(""), 201),
        ("admin", "POST", one("/refresh"), 200),
        ("admin", "GET", one(""), 200),
        ("admin", "DELETE", format!("{SERVERS}/nobody"), 404),
        ("admin", "POST", RELOAD.to_owned(), 200),
        ("viewer", "POST", RELOAD.to_owned(), 403),
    ] {
        let response = send(&served, who, method, &path, "");
        assert_eq!(response.status, status, "{who} {method} {path}: {response:?}");
    }
    served.signal("HUP");
    let records = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        records.filter(|record: &Value| record["event"] == "change").collect()
    };
    until("the reload is recorded", || records().len() == 12);
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let told: Vec<String> = records()
        .iter()
        .map(|record| {
            ["principal", "view", "action", "server", "outcome"]
                .map(|field| word(&record[field]))
                .join(" ")
        })
        .collect();
    assert_eq!(
        told,
        [
            "reader - disable fx refused",
            "viewer v disable fx done",
            "admin - reconnect fx refused",
            "admin - enable fx done",
            "admin - reconnect fx done",
            "admin - delete fx done",
            "admin - put fx done",
            "admin - refresh fx done",
            "admin - delete nobody refused",
            "admin - reload - done",
            "viewer v reload - refused",
            // By the signal.
            "- - reload - done",
        ]
    );
    home.run(&["audit", "verify"]).ends_with(0);
    let shown = home.run(&["audit", "show"]);
    let rows: Vec<Vec<&str>> = shown
        .ends_with(0)
        .out
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    let changes = rows.iter().filter(|row| row.contains(&"change"));
    let who: Vec<&str> = changes.clone().take(3).map(|row| row[1]).collect();
    assert_eq!(
        (rows[0][1], who),
        ("WHO", vec!["reader", "viewer", "admin"]),
        "{}",
        shown.out
    );
    assert!(
        changes.clone().any(|row| row.ends_with(&["reconnect", "refused"])),
        "{}",
        shown.out
    );
}

#[test]
fn the_log_of_calls_shows_whose_they_were() {
    let home = Home::new();
    let fails = FakeServer::new("fx").tool(Tool::new("read").fails_with("it is private"));
    let entry = home.entry("fx", fails, "");
    let log = home.path("audit.jsonl");
    home.config(&format!("audit = {log:?}\n{}{entry}", token("ann", "")));
    let served = Served::start(&home, &["-v"]);
    until("the call was made", || {
        send(&served, "ann", "POST", "/api/v1/mcp/call", r#"{"name": "fx.read"}"#)
            .body
            .contains("it is private")
    });
    until("it is in the audit log", || {
        let shown = home.run(&["audit", "show"]);
        let is_it = |row: &str| row.contains(" ann ") && row.contains("fx.read") && row.contains("tool_error");
        shown.ends_with(0).out.lines().any(is_it)
    });
    let told = served.err();
    assert!(
        told.lines()
            .any(|line| line.contains("call failed") && line.contains("principal=ann")),
        "{told}"
    );
}

#[test]
fn tokens_that_a_reload_would_take_away_are_told_in_the_status() {
    let home = home(&token("admin", "scopes = ['admin', 'read']"));
    let served = Served::start(&home, &[]);
    let text = fs::read_to_string(home.path(CONFIG)).unwrap();
    let (_, servers) = text.split_once("[servers.fx]").unwrap();
    let warnings = || {
        let response = send(&served, "admin", "GET", "/api/v1/mcp/warnings", "");
        let warnings = body(&response, 200)["warnings"].as_array().unwrap().clone();
        let of_config = warnings.into_iter().filter(|warning| warning["category"] == "config");
        of_config.collect::<Vec<Value>>()
    };
    assert_eq!(warnings(), Vec::<Value>::new());
    fs::write(home.path(CONFIG), format!("[servers.fx]{servers}")).unwrap();
    body(&send(&served, "admin", "POST", RELOAD, ""), 200);
    let told = warnings();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["id"], "config:tokens");
    assert!(told[0]["details"].as_str().unwrap().contains("stay valid"), "{told:?}");
    assert_eq!(served.send("GET", SERVERS, &[ACCEPT], "").status, 401);
    let (status, told) = (home.run(&["status", "-o", "json"]).json(), "config:tokens");
    assert!(status["warnings"].to_string().contains(told), "{status}");
    fs::write(home.path(CONFIG), text).unwrap();
    body(&send(&served, "admin", "POST", RELOAD, ""), 200);
    assert_eq!(warnings(), Vec::<Value>::new());
}
