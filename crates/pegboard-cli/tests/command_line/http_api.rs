//! The HTTP API of `pegboard serve`: what operators change while it runs.

use std::{
    fs,
    io::{Read as _, Write as _},
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, until},
};

const SERVERS: &str = "/api/v1/mcp/servers";
const CONFIG: &str = ".config/pegboard/pegboard.toml";
const ALLOWED: &str = "[serve]\nallow_new_servers = true\n";

fn fake(name: &str) -> FakeServer {
    FakeServer::new(name)
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"))
}

/// A home with the server `fx` and more settings before it.
fn home(settings: &str) -> Home {
    let home = Home::new();
    let entry = home.entry("fx", fake("fx"), "");
    home.config(&format!("{settings}\n{entry}"));
    home
}

/// The settings of a fake server, as the body of a request.
fn settings(home: &Home, name: &str) -> Value {
    let command = home.command_of(name, fake(name));
    let mut words = command.split(' ');
    let program = words.next().unwrap();
    json!({"command": program, "args": words.collect::<Vec<_>>()})
}

fn put(served: &Served, name: &str, settings: &Value) -> Response {
    served.send("PUT", &format!("{SERVERS}/{name}"), &[], &settings.to_string())
}

fn get(served: &Served, path: &str) -> Response {
    served.send("GET", path, &[("Accept", "application/json")], "")
}

fn call(served: &Served, tool: &str) -> Response {
    let accept = [("Accept", "application/json")];
    served.post("/api/v1/mcp/call", &accept, &json!({"name": tool}).to_string())
}

#[track_caller]
fn body(response: &Response, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    serde_json::from_str(&response.body).unwrap_or_else(|error| panic!("{error}: {response:?}"))
}

#[test]
fn a_call_that_only_a_person_can_make_possible_is_refused_for_good() {
    let home = Home::new();
    let entry = home.entry("fx", fake("fx"), "");
    home.config(&format!("{entry}[servers.gone]\ncommand = '/does/not/exist'\n"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    // The command is not there.
    let response = call(&served, "gone.read");
    let reply = body(&response, 409);
    assert_eq!(response.header("Retry-After"), None, "{response:?}");
    assert_eq!(reply["outcome"]["code"], "program-missing", "{reply}");
    assert_eq!(reply["outcome"]["advice"], "useless", "{reply}");
    assert_eq!(reply["outcome"]["retry_after_ms"], Value::Null, "{reply}");
    // An operator has disabled the server, and not its config.
    body(&served.send("POST", &format!("{SERVERS}/fx/disable"), &[], ""), 200);
    let response = call(&served, "fx.read");
    let reply = body(&response, 409);
    let hint = reply["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("enable it on the running board") && hint.contains("/servers/fx/enable"),
        "{reply}"
    );
    assert_eq!(reply["outcome"]["diagnosis"]["edit"], Value::Null, "{reply}");
    body(&served.send("POST", &format!("{SERVERS}/fx/enable"), &[], ""), 200);
    body(&call(&served, "fx.read"), 200);
}

#[test]
fn a_server_that_the_config_does_not_have_needs_the_flag() {
    let home = home("");
    let served = Served::start(&home, &[]);
    let new = settings(&home, "new");
    for settings in [
        &new,
        &json!({"url": "http://127.0.0.1:1/mcp"}),
        &json!({"command": "true"}),
        // The file is not even looked for.
        &json!({"command": "true", "env_file": "/no/such/file"}),
    ] {
        let problem = body(&put(&served, "new", settings), 403);
        assert_eq!(problem["kind"], "not_permitted");
        assert!(
            problem["hint"].as_str().unwrap().contains("allow_new_servers"),
            "{problem}"
        );
    }
    // Nor are the settings of a server of the config changed.
    body(&put(&served, "fx", &new), 403);
    assert!(!home.path("new.log").exists(), "nothing was started");
    drop(served);
    let entry = fs::read_to_string(home.path(CONFIG)).unwrap();
    home.config(&format!("{ALLOWED}{entry}"));
    let served = Served::start(&home, &[]);
    let document = body(&put(&served, "new", &new), 201);
    assert_eq!(document["servers"][0]["state"], "ready", "{document}");
    assert_eq!(body(&call(&served, "new.read"), 200)["text"], "read it");
    body(&put(&served, "new", &new), 200);
    assert_eq!(home.log("new").spawned.len(), 1, "the same settings keep the process");
    let problem = body(&put(&served, "worse", &json!({"comand": "x"})), 422);
    assert_eq!(problem["errors"][0]["field"], "servers.worse.comand", "{problem}");
    let doubled = served.send(
        "PUT",
        &format!("{SERVERS}/worse"),
        &[],
        r#"{"command": "a", "command": "b"}"#,
    );
    assert!(body(&doubled, 422)["detail"].as_str().unwrap().contains("command"));
    let gone = served.send("DELETE", &format!("{SERVERS}/new"), &[], "");
    assert_eq!(gone.status, 204);
    body(&get(&served, &format!("{SERVERS}/new")), 404);
    home.assert_gone("new");
}

#[test]
fn a_server_that_cannot_be_reached_is_told_and_kept_and_never_replaces_a_working_one() {
    let home = home(ALLOWED);
    let served = Served::start(&home, &[]);
    let nowhere = json!({"url": "http://127.0.0.1:1/mcp"});
    let problem = body(&put(&served, "new", &nowhere), 502);
    assert_eq!(
        (&problem["kind"], &problem["server"]),
        (&json!("unavailable"), &json!("new")),
        "{problem}"
    );
    body(&served.post("/api/v1/mcp/reload", &[], ""), 200);
    let document = body(&get(&served, &format!("{SERVERS}/new")), 200);
    assert_eq!(document["servers"][0]["state"], "down", "{document}");
    served.has_tool("fx__read");
    body(&put(&served, "fx", &nowhere), 502);
    assert_eq!(body(&call(&served, "fx.read"), 200)["text"], "read it");
}

#[test]
fn a_server_that_was_added_has_the_settings_for_all_servers() {
    let settings_for_all =
        "approval = 'writes'\nmasking = { custom = [{ name = 'animal', pattern = 'zebra-[0-9]+' }] }\n";
    let home = home(&format!("{settings_for_all}{ALLOWED}"));
    let served = Served::start(&home, &[]);
    let zoo = FakeServer::new("new")
        .tool(Tool::new("read").read_only().answers_text("it is zebra-77"))
        .tool(Tool::new("write").answers_text("wrote it"));
    let command = home.command_of("new", zoo);
    let words: Vec<&str> = command.split(' ').collect();
    let new = json!({"command": words[0], "args": words[1..], "trust": true});
    body(&put(&served, "new", &new), 201);
    let reply = body(&call(&served, "new.write"), 403);
    assert_eq!(reply["outcome"]["kind"], "not_permitted", "{reply}");
    let reply = body(&call(&served, "new.read"), 200);
    assert_eq!(reply["outcome"]["masked"], 1, "{reply}");
    assert!(!reply.to_string().contains("zebra-77"), "{reply}");
}

#[test]
fn a_reload_keeps_an_added_server_until_the_config_forbids_it() {
    let home = home(ALLOWED);
    let served = Served::start(&home, &[]);
    body(&put(&served, "new", &settings(&home, "new")), 201);
    let reloaded = body(&served.post("/api/v1/mcp/reload", &[], ""), 200);
    assert_eq!(reloaded["applied"], 1, "{reloaded}");
    assert_eq!(body(&call(&served, "new.read"), 200)["text"], "read it");
    assert_eq!(home.log("new").spawned.len(), 1);
    let text = fs::read_to_string(home.path(CONFIG)).unwrap();
    fs::write(home.path(CONFIG), text.replace("= true", "= false")).unwrap();
    body(&served.post("/api/v1/mcp/reload", &[], ""), 200);
    body(&get(&served, &format!("{SERVERS}/new")), 404);
    home.assert_gone("new");
}

#[test]
fn a_server_of_the_config_that_was_removed_is_connected_again_without_the_flag() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let remove = || served.send("DELETE", &format!("{SERVERS}/fx"), &[], "").status;
    assert_eq!(remove(), 204);
    body(&call(&served, "fx.read"), 404);
    let document = body(&served.send("PUT", &format!("{SERVERS}/fx"), &[], ""), 201);
    assert_eq!(document["servers"][0]["name"], "fx");
    assert_eq!(body(&call(&served, "fx.read"), 200)["text"], "read it");
    assert_eq!(remove(), 204);
    body(&served.post("/api/v1/mcp/reload", &[], ""), 200);
    assert_eq!(body(&call(&served, "fx.read"), 200)["text"], "read it");
}

#[test]
fn a_broken_config_changes_nothing_and_is_told() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let good = fs::read_to_string(home.path(CONFIG)).unwrap();
    fs::write(home.path(CONFIG), "[servers.fx\ncommand =").unwrap();
    let problem = body(&served.post("/api/v1/mcp/reload", &[], ""), 409);
    assert!(
        problem["detail"].as_str().unwrap().contains("nothing has changed"),
        "{problem}"
    );
    let warnings = body(&get(&served, "/api/v1/mcp/warnings"), 200);
    assert_eq!(warnings["warnings"][0]["id"], "config:reload", "{warnings}");
    assert_eq!(body(&call(&served, "fx.read"), 200)["text"], "read it");
    fs::write(home.path(CONFIG), good).unwrap();
    body(&served.post("/api/v1/mcp/reload", &[], ""), 200);
    let warnings = body(&get(&served, "/api/v1/mcp/warnings"), 200);
    assert_eq!(warnings["warnings"], json!([]));
}

#[test]
fn the_documents_are_those_of_the_command() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let tools = body(&get(&served, "/api/v1/mcp/tools"), 200);
    assert_eq!(tools, home.run(&["--no-daemon", "tools", "-o", "json"]).json());
    let keys = |document: &Value| {
        let fields = document.as_object().unwrap().keys();
        fields.cloned().collect::<Vec<String>>()
    };
    let (status, mut printed) = (
        body(&get(&served, SERVERS), 200),
        home.run(&["--no-daemon", "status", "-o", "json"]).json(),
    );
    // Where the user of the command keeps tokens is no matter of the daemon's clients.
    assert!(printed.as_object_mut().unwrap().remove("tokens").is_some());
    assert_eq!(keys(&status), keys(&printed));
    assert_eq!(keys(&status["servers"][0]), keys(&printed["servers"][0]));
    let (reply, printed) = (
        body(&call(&served, "fx.read"), 200),
        home.run(&["--no-daemon", "call", "fx.read", "-o", "json"]).json(),
    );
    assert_eq!(keys(&reply), keys(&printed));
    assert_eq!(keys(&reply["outcome"]), keys(&printed["outcome"]));
}

#[test]
fn a_stream_of_events_does_not_hold_up_the_end() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let mut stream = served.connect();
    let head = format!(
        "GET /api/v1/mcp/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut read = String::new();
    let mut read_until = |words: &str| {
        while !read.contains(words) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "{read}");
            read.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    };
    read_until("200 OK");
    body(&call(&served, "fx.read"), 200);
    read_until("event: call_completed");
    served.signal("TERM");
    // The end of the chunks: a stream that is cut off at the end of the drain time has none.
    read_until("\r\n0\r\n\r\n");
    assert_eq!(served.code(), Some(0));
}

#[test]
fn the_scopes_of_the_config_hold_and_change_with_a_reload() {
    let token = |scopes: &str| {
        let digest = pegboard::config::TokenDigest::compute("pgb_ops");
        format!("[serve.tokens.ops]\nsha256 = '{digest}'\nscopes = [{scopes}]\n")
    };
    let home = home(&token("'admin', 'read'"));
    let served = Served::start(&home, &[]);
    let bearer = [("Authorization", "Bearer pgb_ops"), ("Accept", "application/json")];
    let send = |method: &str, path: &str| served.send(method, &format!("/api/v1/mcp/{path}"), &bearer, "");
    assert_eq!(served.send("GET", SERVERS, &[], "").status, 401);
    body(&send("GET", "servers"), 200);
    let call = json!({"name": "fx.read"}).to_string();
    let reply = body(&served.post("/api/v1/mcp/call", &bearer, &call), 403);
    assert_eq!(reply["outcome"]["kind"], "not_permitted", "{reply}");
    let text = fs::read_to_string(home.path(CONFIG)).unwrap();
    fs::write(home.path(CONFIG), text.replace("'admin', 'read'", "'call'")).unwrap();
    // The reload takes the token's rights away from the request that asked for it.
    let reloaded = send("POST", "reload").status;
    assert!(matches!(reloaded, 200 | 401 | 403), "{reloaded}");
    let call = || served.post("/api/v1/mcp/call", &bearer, &call);
    until("the token may call", || call().status == 200);
    assert_eq!(send("GET", "servers").status, 403);
    assert_eq!(send("POST", "reload").status, 403);
}
