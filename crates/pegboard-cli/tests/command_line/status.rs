//! `pegboard status`.

use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::json;

use super::home::Home;

#[test]
fn there_is_one_row_per_server() {
    let home = Home::new();
    let good = home.server("good", FakeServer::new("fx").tool(Tool::new("t")));
    let bad = home.server(
        "bad",
        FakeServer::new("fx").fault(Fault::ExitsAtStart {
            code: 7,
            stderr: "oh no".into(),
        }),
    );
    let ran = home.run(&["status", &good, &bad]);
    ran.ends_with(0).says("error: server `bad` is down").says("oh no");
    let pid = home.log("good").spawned[0].to_string();
    let table = ran.out.replace(&pid, &"#".repeat(pid.len()));
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["NAME", "STATE", "TRANSPORT", "ERA"]);
    assert_eq!(rows[1][..6], ["bad", "down", "stdio", "-", "-", "0"]);
    assert_eq!(rows[2][..6], ["good", "ready", "stdio", "legacy", "2025-11-25", "1"]);
    assert!(rows[2][6].starts_with('#'));
    home.assert_gone("good");
    home.assert_gone("bad");
}

#[test]
fn a_failure_that_the_table_shows_whole_is_told_once() {
    let home = Home::new();
    let ran = home.run(&["status", "--server=x=/no/such/program"]);
    ran.ends_with(0);
    assert!(ran.out.contains("`/no/such/program` was not found"), "{}", ran.out);
    assert!(!ran.err.contains("was not found"), "{}", ran.err);
    ran.says("hint: server `x`: check the path");
}

#[test]
fn a_config_without_servers_is_worth_a_warning_in_every_form() {
    let home = Home::new();
    let config = home.write("empty.toml", "");
    let config = config.to_str().unwrap();
    for command in ["status", "tools"] {
        home.run(&[command, "-c", config])
            .ends_with(0)
            .says("warning: the config names no server");
        let document = home.run(&[command, "-c", config, "-o", "json"]).ends_with(0).json();
        assert!(
            document["warnings"].to_string().contains("the config names no server"),
            "{document}"
        );
    }
}

#[test]
fn json_has_the_promised_shape() {
    let home = Home::new();
    let good = home.server("good", FakeServer::new("fx").tool(Tool::new("t")).resource("x:y", "z"));
    let config = home.write(
        "bad.toml",
        "[servers.odd]\nurll = 'http://x'\n[servers.off]\ncommand = 'x'\nenabled = false\n",
    );
    let mut status = home
        .run(&["status", "-o", "json", &good, "-c", config.to_str().unwrap()])
        .ends_with(0)
        .json();
    let server = &mut status["servers"][0];
    assert!(server["pid"].take().is_u64());
    assert!(server["since"].take().as_str().unwrap().ends_with('Z'));
    assert!(server["checked_at"].take().as_str().unwrap().ends_with('Z'));
    assert!(server["ready_after_ms"].take().as_f64().is_some_and(|took| took > 0.0));
    assert_eq!(
        *server,
        json!({
            "name": "good", "state": "ready", "since": null, "transport": "stdio", "era": "legacy", "protocol_version": "2025-11-25",
            "server_info": {"name": "fx", "version": "1.0.0"}, "instructions": null, "description": null, "scope": "shared",
            "capabilities": {"resources": {"listChanged": true}, "tools": {"listChanged": true}}, "tool_cache": "ready", "tools": 1, "resources": 1, "prompts": 0,
            "pid": null, "restarts": 0, "in_flight": 0, "queued": 0, "breaker": "closed", "required": false,
            "ready_after_ms": null, "calls": {"total": 0, "failed": 0, "avg_ms": 0.0}, "last_error": null,
            "checked_at": null, "check_error": null,
        })
    );
    assert_eq!(
        (&status["servers"][1]["name"], &status["servers"][1]["state"]),
        (&json!("odd"), &json!("misconfigured"))
    );
    assert!(status["servers"][1]["last_error"]["message"].is_string());
    assert_eq!(status["servers"][2]["state"], "disabled");
    assert_eq!((&status["healthy"], &status["ready"]), (&json!(false), &json!(true)));
    assert_eq!(status["queues"][0]["name"], "default");
    assert!(status["queues"][0]["capacity"].is_u64());
    let about = |category: &str| {
        let warnings = status["warnings"].as_array().unwrap();
        let mut about = warnings.iter().filter(|warning| warning["category"] == category);
        about.next().map(|warning| warning["server"].clone())
    };
    assert_eq!(about("mcp_health"), Some(json!("odd")));
    assert_eq!(about("config"), Some(json!("odd")));
}

#[test]
fn a_server_that_never_comes_up_does_not_hold_the_command_for_ever() {
    let home = Home::new();
    let fake = FakeServer::new("fx").fault(Fault::SilentHandshake);
    let fake = fake.fault(Fault::OutlivesParent).fault(Fault::IgnoresEof);
    let hung = home.server("hung", fake);
    let ran = home.run(&["status", "--timeout", "500ms", &hung]);
    ran.ends_with(124).prints("connecting");
    home.assert_gone("hung");
}

#[test]
fn a_required_server_that_is_down_is_exit_code_3() {
    let home = Home::new();
    let broken = || {
        FakeServer::new("fx").fault(Fault::ExitsAtStart {
            code: 7,
            stderr: "oh no".into(),
        })
    };
    let good = home.entry("good", FakeServer::new("fx").tool(Tool::new("t")), "");
    home.config(&(good.clone() + &home.entry("bad", broken(), "")));
    home.run(&["status"]).ends_with(0);
    home.config(&(good + &home.entry("bad", broken(), "required = true")));
    let ran = home.run(&["status", "-o", "json"]);
    assert_eq!(ran.ends_with(3).json()["ready"], false);
}

#[cfg(unix)]
#[test]
fn a_server_that_is_ready_in_the_end_is_no_error() {
    let home = Home::new();
    let command = home.command_of("fx", FakeServer::new("fx").tool(Tool::new("t")));
    let marker = home.path("started-before");
    let script = format!(
        "if [ -e {0} ]; then exec {command}; fi; touch {0}; echo too early >&2; exit 9",
        marker.display()
    );
    home.config(&format!("[servers.fx]\ncommand = 'sh'\nargs = ['-c', '{script}']\nera = 'legacy'\nstart_wait = '60s'\nrestart = {{ backoff = ['100ms'] }}\n"),
    );
    let ran = home.run(&["status"]);
    ran.ends_with(0).prints("ready").prints("exit");
    assert!(!ran.err.contains("error"), "{ran:?}");
}
