//! What has failed, or is not in effect, is told by every command and route that an operator looks at.

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served},
    home::{Home, Ran},
};

const RELOAD: &str = "/api/v1/mcp/reload";

fn fx() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"))
}

fn broken() -> FakeServer {
    FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 7,
        stderr: "no such database".into(),
    })
}

#[track_caller]
fn body(response: &Response, status: u16) -> Value {
    assert_eq!(response.status, status, "{response:?}");
    serde_json::from_str(&response.body).unwrap()
}

fn get(served: &Served, path: &str) -> Value {
    body(&served.send("GET", path, &[], ""), 200)
}

/// The ids of the warnings of a document.
fn ids(document: &Value) -> Vec<String> {
    let warnings = document["warnings"].as_array().unwrap().iter();
    warnings
        .map(|warning| warning["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_reload_says_which_server_goes_on_under_its_old_settings_until_it_works() {
    let home = Home::new();
    let good = home.entry("fx", fx(), "stop_timeout = '200ms'");
    home.config(&good);
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    // A process would have ended before its new settings are tried.
    let unreachable = "[servers.fx]\nurl = 'http://127.0.0.1:9/mcp'\n".to_owned();
    let invalid = format!("{good}\ncomand = 1\n");
    for new in [unreachable, invalid] {
        home.config(&new);
        let reloaded = body(&served.post(RELOAD, &[], ""), 200);
        assert_eq!(reloaded["servers"]["kept"], json!(["fx"]), "{reloaded}");
        assert_eq!(reloaded["servers"]["errors"][0]["server"], "fx", "{reloaded}");
        assert_eq!(reloaded["notes"][0]["server"], "fx", "{reloaded}");
        served.says("server `fx` goes on under its old settings");
        let id = "config:server:fx".to_owned();
        assert!(ids(&get(&served, "/api/v1/mcp/warnings")).contains(&id));
        let health = get(&served, "/health");
        assert_eq!(health["status"], "degraded", "{health}");
        assert!(ids(&health).contains(&id), "{health}");
        let ran = home.run(&["status", "-o", "json"]);
        assert!(ids(&ran.json()).contains(&id), "{ran:?}");
        home.run(&["status"]).says("goes on under its old settings");
        let call = served.post(
            "/api/v1/mcp/call",
            &[("Accept", "application/json")],
            r#"{"name": "fx.read"}"#,
        );
        assert_eq!(body(&call, 200)["text"], "read it", "the old server goes on");

        home.config(&good);
        let reloaded = body(&served.post(RELOAD, &[], ""), 200);
        assert_eq!(reloaded["servers"]["kept"], json!([]), "{reloaded}");
        assert_eq!(ids(&get(&served, "/api/v1/mcp/warnings")), [""; 0]);
        assert_eq!(get(&served, "/health")["status"], "ready");
    }
}

#[test]
fn a_command_connects_a_server_that_waits_for_it_with_a_daemon_as_without() {
    for (settings, tool) in [
        ("preset = 'goat'\n", "mcp__fx__read"),
        ("start = 'explicit'\n", "fx__read"),
    ] {
        let home = Home::new();
        home.config(&(settings.to_owned() + &home.entry("fx", fx(), "stop_timeout = '200ms'")));
        home.run(&["call", "fx.read"]).ends_with(0).prints("read it");
        let served = Served::start(&home, &[]);
        served.says("server `fx` is not connected");
        let id = "not_connected:fx".to_owned();
        assert!(ids(&get(&served, "/api/v1/mcp/warnings")).contains(&id), "{settings}");
        assert!(ids(&get(&served, "/health")).contains(&id), "{settings}");
        assert_eq!(served.tools("/mcp", &[]), [""; 0], "nobody has connected it");
        let ran = home.run(&["status"]);
        ran.ends_with(0).says("not connected").says("--server fx");
        home.run(&["call", "fx.read"]).ends_with(0).prints("read it");
        assert_eq!(ids(&get(&served, "/api/v1/mcp/warnings")), [""; 0], "{settings}");
        served.has_tool(tool);
        home.run(&["tools"]).ends_with(0).prints("fx");
    }
}

#[test]
fn a_client_of_its_own_endpoint_connects_a_server_that_waits() {
    for is_modern in [false, true] {
        let home = Home::new();
        home.config(&("preset = 'goat'\n".to_owned() + &home.entry("fx", fx(), "stop_timeout = '200ms'")));
        let served = Served::start(&home, &[]);
        let (_, described) = served.initialize("/mcp", &[]);
        let told = described["instructions"].as_str().unwrap_or_default();
        assert!(told.contains("`/mcp/fx`"), "{described}");
        assert_eq!(served.tools("/mcp", &[]), [""; 0], "nobody has connected it");
        assert!(home.log("fx").spawned.is_empty());
        if is_modern {
            assert_eq!(served.tools("/mcp/fx", &[]), ["read"]);
        } else {
            let (session, described) = served.initialize("/mcp/fx", &[]);
            assert_eq!(described["serverInfo"]["name"], "fx", "{described}");
            let params = json!({"name": "read", "arguments": {}});
            let answer = served.ask("/mcp/fx", &[], &session, "tools/call", &params);
            assert_eq!(answer["result"]["content"][0]["text"], "read it", "{answer}");
        }
        served.has_tool("mcp__fx__read");
        assert_eq!(ids(&get(&served, "/api/v1/mcp/warnings")), [""; 0]);
        let (_, described) = served.initialize("/mcp", &[]);
        let told = described["instructions"].as_str().unwrap_or_default();
        assert!(!told.contains("`/mcp/fx`"), "{described}");
    }
}

#[test]
fn a_required_server_that_waits_to_be_connected_says_so_everywhere() {
    let home = Home::new();
    let entry = home.entry("fx", fx(), "required = true\nstop_timeout = '200ms'");
    home.config(&("preset = 'goat'\n".to_owned() + &entry));
    let served = Served::start(&home, &[]);
    let reconnect = "/api/v1/mcp/servers/fx/reconnect";
    served.says(reconnect);
    let call = served.post(
        "/api/v1/mcp/call",
        &[("Accept", "application/json")],
        r#"{"name": "fx.read"}"#,
    );
    let refused = body(&call, 409);
    assert!(refused["hint"].as_str().unwrap().contains(reconnect), "{refused}");
    let ready = body(&served.send("GET", "/readyz", &[], ""), 503);
    let health = get(&served, "/health");
    for row in [&ready["not_ready"][0], &health["servers"]["troubled"][0]] {
        assert_eq!((&row["server"], &row["state"]), (&json!("fx"), &json!("idle")), "{row}");
        assert_eq!(row["error"], "nobody has connected it yet", "{row}");
        assert!(row["hint"].as_str().unwrap().contains(reconnect), "{row}");
    }
    let since = || get(&served, "/api/v1/mcp/warnings")["warnings"][0]["created_at"].clone();
    assert_eq!(since(), since(), "not the time of the request");
    body(&served.post(reconnect, &[], ""), 200);
    super::home::until("it is ready", || served.send("GET", "/readyz", &[], "").status == 200);
}

#[test]
fn a_gateway_on_stdio_names_the_servers_that_wait_and_offers_those_that_its_command_names() {
    let home = Home::new();
    home.config(&("preset = 'goat'\n".to_owned() + &home.entry("fx", fx(), "")));
    let ran = Ran::fed(home.pegboard(&["mcp"]), "");
    ran.says("server `fx` is not connected").says("--server fx");
    let (mut mcp, _) = super::mcp::Mcp::start(&home, &["--server", "fx"]);
    assert_eq!(mcp.ready(), ["read"]);
}

#[test]
fn a_listing_without_a_required_server_is_exit_code_3() {
    let home = Home::new();
    let good = home.entry("good", fx(), "");
    for (top, own, code) in [
        ("", "", 0),
        ("", "required = true", 3),
        ("required = true\n", "", 3),
        ("required = true\n", "required = false", 0),
    ] {
        home.config(&format!("{top}{good}{}", home.entry("bad", broken(), own)));
        let run = |args: &[&str]| {
            let ran = home.run(args);
            assert_eq!(ran.code, Some(code), "{top}{own} {args:?}: {ran:?}");
        };
        run(&["tools"]);
        run(&["tools", "-o", "json"]);
        run(&["resources"]);
        run(&["status"]);
        home.run(&["tools", "good.*"]).ends_with(0);
        let served = Served::start(&home, &[]);
        run(&["tools"]);
        served.signal("TERM");
        served.code();
    }
}
