//! What the log of `pegboard serve` says by default: what happens to the gateway and its servers, and nothing about single calls.

use std::fs;

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

const CONFIG: &str = ".config/pegboard/pegboard.toml";

/// The lines of a log in JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// The lines with this event.
#[track_caller]
fn events(served: &Served, event: &str) -> Vec<Value> {
    let lines = lines(&served.err()).into_iter();
    lines.filter(|line| line["event"] == event).collect()
}

/// Waits for a line with this event.
#[track_caller]
fn event(served: &Served, name: &str) -> Value {
    until(&format!("a line `{name}`: {}", served.err()), || {
        !events(served, name).is_empty()
    });
    events(served, name).swap_remove(0)
}

#[test]
fn a_server_that_cannot_be_used_is_not_counted_as_served() {
    let home = Home::new();
    home.config("[servers.bad]\nurl = 'https://example.com/mcp'\nauth = { bearer = '${NOT_SET_TOKEN}' }\n");
    home.run(&["serve", "--listen", "0", "--timeout", "300ms"])
        .ends_with(124)
        .says("serving no server: the one of the config cannot be used")
        .says("0 servers)");
}

#[test]
fn the_log_of_a_gateway_tells_the_life_of_its_servers_and_nothing_of_calls() {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read").answers_text("read it"))
        .tool(Tool::new("die"))
        .fault_on(When::tool("die"), Fault::DiesBeforeExecuting { code: 3 });
    let fx = home.entry("fx", fx, "start = 'eager'\n");
    home.config(&fx);
    let served = Served::start(&home, &["--log-format", "json"]);
    let started = event(&served, "gateway.started");
    assert_eq!((&started["level"], &started["servers"]), (&"info".into(), &1.into()));
    assert_eq!(started["addresses"], served.address.as_str());
    let ready = event(&served, "server.ready");
    assert_eq!((&ready["level"], &ready["server"]), (&"info".into(), &"fx".into()));
    served.has_tool("fx__read");
    let (session, _) = served.initialize("/mcp", &[]);
    let call = |tool: &str| {
        served.ask(
            "/mcp",
            &[],
            &session,
            "tools/call",
            &json!({"name": tool, "arguments": {}}),
        )
    };
    call("fx__die");
    let lost = event(&served, "server.connection_lost");
    assert_eq!((&lost["level"], &lost["server"]), (&"warning".into(), &"fx".into()));
    assert!(lost["reason"].as_str().unwrap().contains("exit code 3"), "{lost}");
    assert!(lost["next_start_in"].is_string(), "{lost}");
    until("it is ready again", || events(&served, "server.ready").len() == 2);
    fs::write(home.path(CONFIG), format!("views.v.servers = ['fx']\n{fx}")).unwrap();
    event(&served, "config.reloaded");
    fs::write(home.path(CONFIG), "[servers.fx\n").unwrap();
    assert_eq!(event(&served, "config.not_reloaded")["level"], "error");
    let err = home.path("serve.err");
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
    let lines = lines(&fs::read_to_string(err).unwrap());
    let names: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(names[names.len() - 2..], ["gateway.stopping", "gateway.stopped"]);
    let about_calls = lines
        .iter()
        .filter(|line| line["event"].as_str().is_some_and(|event| event.contains("call")));
    assert_eq!(about_calls.count(), 0, "{lines:#?}");
}

#[test]
fn a_changed_listing_names_the_tools() {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("grow"))
        .fault_on(When::tool("grow"), Fault::ListChanged { count: 1, every_ms: 1 })
        .fault_on(When::method("tools/list").after(1), Fault::ToolsChange);
    home.config(&home.entry("fx", fx, ""));
    let served = Served::start(&home, &["--log-format", "json"]);
    served.has_tool("fx__grow");
    let (session, _) = served.initialize("/mcp", &[]);
    served.ask(
        "/mcp",
        &[],
        &session,
        "tools/call",
        &json!({"name": "fx__grow", "arguments": {}}),
    );
    let changed = event(&served, "catalog.changed");
    let fields = ["server", "tools_changed", "level"].map(|field| changed[field].as_str());
    assert_eq!(fields, [Some("fx"), Some("grow"), Some("info")], "{changed}");
    assert!(changed.get("tools_added").is_none(), "{changed}");
}

#[test]
fn a_person_reads_sentences_and_options_choose_other_lines() {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read"))
        .tool(Tool::new("die"))
        .fault_on(When::tool("die"), Fault::DiesBeforeExecuting { code: 3 });
    home.config(&home.entry("fx", fx, ""));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    served.says("info: server `fx`: ready (2 tools, version ");
    drop(served);
    for quiet in ["-q", "--log=warn"] {
        let served = Served::start(&home, &[quiet]);
        served.has_tool("fx__read");
        assert_eq!(served.err(), "", "{quiet}");
    }
    let served = Served::start(&home, &["-v"]);
    served.has_tool("fx__die");
    let (session, _) = served.initialize("/mcp", &[]);
    served.ask(
        "/mcp",
        &[],
        &session,
        "tools/call",
        &json!({"name": "fx__die", "arguments": {}}),
    );
    served.says("the process has ended");
}

#[test]
fn a_server_that_ends_again_and_again_does_not_flood_the_log() {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read"))
        .fault(Fault::DiesIdle { after_ms: 300 });
    home.config(&home.entry("fx", fx, "start = 'eager'\n"));
    let served = Served::start(&home, &["--log-format", "json"]);
    let looping = event(&served, "server.crash_loop");
    assert!(looping["next_try_in"].is_string(), "{looping}");
    let lines = lines(&served.err());
    let starts = home.log("fx").spawned.len();
    // A line for its start, one for its end, and one for the loop.
    assert!(lines.len() <= 3 * starts + 2, "{starts} starts: {lines:#?}");
    assert!(starts <= 12, "{starts}");
}
