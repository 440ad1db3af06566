//! Failures through the daemon: the same words, exit codes and documents as without one.

use pegboard_testkit::{Answer, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, Ran},
};

/// A home with servers of which most cannot be used.
fn home() -> Home {
    let home = Home::new();
    let fx = FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("secret").answers_text("told it"))
        .tool(Tool::new("fail").answers(Answer::Result(
            json!({"content": [{"type": "text", "text": "it is broken"}], "isError": true}),
        )))
        .tool(
            Tool::new("add")
                .schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))
                .answers_text("added it"),
        )
        .tool(Tool::new("mute"))
        .tool(Tool::new("crash"))
        .fault_on(When::tool("crash"), Fault::DiesAfterExecuting { code: 9 })
        .tool(Tool::new("gated").answers_text("opened it"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers);
    let more = "deny = ['secret']\ntools = { gated = { approval = 'always' } }\ncall_timeout = '5s'\n";
    let text = [
        home.entry("fx", fx, more),
        "[servers.exits]\ncommand = '/bin/sh'\nargs = ['-c', 'echo no key >&2; exit 3']\n".to_owned(),
        "[servers.missing]\ncommand = '/nonexistent/server'\n".to_owned(),
        "[servers.off]\ncommand = '/bin/true'\nenabled = false\n".to_owned(),
        "[servers.web]\nurl = 'http://127.0.0.1:9/mcp'\n".to_owned(),
        "[servers.silent]\ncommand = '/bin/sleep'\nargs = ['1000']\nconnect_timeout = '1s'\n".to_owned(),
    ];
    home.config(&text.concat());
    home
}

/// A document without what differs between any two runs.
fn timeless(mut document: Value) -> Value {
    if let Some(outcome) = document.get_mut("outcome") {
        outcome["latency_ms"] = json!(0);
        outcome["queued_ms"] = json!(0);
    }
    document
}

/// A text without numbers, and without what a loaded machine adds: how long a server has been down, and when it is tried again.
fn untimed(text: &str) -> String {
    // The daemon logs itself what happens to its servers.
    let lines = text
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("warning: server `fx`: the "));
    let mut untimed = String::new();
    for c in lines.flat_map(str::chars) {
        match c {
            '0'..='9' if untimed.ends_with('#') => {}
            '0'..='9' => untimed.push('#'),
            other => untimed.push(other),
        }
    }
    untimed
        .replace("down for # s; ", "")
        .replace("next try in # s", "it is being tried again")
        // Without a daemon, nothing starts the server again after the command.
        .replace(" (it is being tried again)", "")
        .replace(" (the next call starts it again)", "")
        .replace(" (a call starts it again in # s)", "")
        .replace("within # ms", "within # s")
        .replace("within #.# s", "within # s")
}

#[track_caller]
fn assert_same(home: &Home, args: &[&str]) -> Ran {
    let with = home.run(args);
    let without = home.run(&[args, &["--no-daemon"]].concat());
    assert_eq!(untimed(&with.err), untimed(&without.err), "{args:?}");
    assert_eq!((with.code, &with.out), (without.code, &without.out), "{args:?}");
    let json = |more: &[&str]| home.run(&[args, &["-o", "json"], more].concat());
    let (document, plain) = (json(&[]), json(&["--no-daemon"]));
    let (ours, theirs) = (timeless(document.json()), timeless(plain.json()));
    assert_eq!(untimed(&ours.to_string()), untimed(&theirs.to_string()), "{args:?}");
    assert_eq!(document.code, plain.code, "{args:?}");
    assert_eq!(untimed(&document.err), untimed(&plain.err), "{args:?}");
    with
}

#[test]
fn a_failed_call_reads_the_same_with_a_daemon() {
    let home = home();
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    for (args, code, words) in [
        (
            &["call", "exits.x"][..],
            3,
            "the server's own words above say why it ended",
        ),
        (&["call", "missing.x"], 3, "check the path in `command`"),
        (&["call", "web.x"], 3, "nothing listens at that address"),
        (&["call", "silent.x"], 3, "no answer within"),
        (&["call", "off.x"], 3, "it is switched off"),
        (&["call", "off.x"], 3, "hint: `pegboard enable off` enables it"),
        (&["call", "fx.nothing"], 2, "there is no tool"),
        (&["call", "fx.secret"], 5, "the config hides it"),
        (&["call", "fx.gated"], 5, "`--yes` agrees"),
        (&["call", "fx.add", "n=many"], 2, "`n`"),
        (&["call", "fx.add"], 2, "`n` is missing"),
        (&["call", "fx.add", "--json", "{"], 2, "--json"),
        (&["call", "fx.fail"], 1, "it is broken"),
        (&["call", "fx.crash"], 3, "the call to fx.crash was delivered"),
        (&["call", "fx.mute"], 124, "the call to fx.mute was delivered"),
        (&["call", "fx.mute", "--timeout", "2s"], 124, "--timeout"),
    ] {
        assert_same(&home, args).ends_with(code).says(words);
    }
    assert_eq!(served.err().matches("panicked").count(), 0, "{}", served.err());
}

#[test]
fn failed_listings_and_reads_are_the_same_with_a_daemon() {
    let home = home();
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    for (args, code, words) in [
        (&["tools", "--server", "exits"][..], 3, "no key"),
        (&["tools", "--server", "missing"], 3, "was not found"),
        (&["resources", "--server", "web"], 3, "Connection refused"),
        (&["prompts", "--server", "silent"], 3, "no answer within"),
        (
            &["resources", "read", "a://b", "--server", "missing"],
            3,
            "check the path",
        ),
        (
            &["resources", "read", "a://b", "--server", "fx"],
            2,
            "no server offers a resource",
        ),
        (&["prompts", "get", "x", "--server", "exits"], 3, "no key"),
        (&["tools"], 0, "server `web` is down"),
    ] {
        assert_same(&home, args).ends_with(code).says(words);
    }
}

/// The failure of a call through the daemon, which must be that of the same call over the daemon's HTTP API.
fn failure_of_both(home: &Home, served: &Served, name: &str) -> Value {
    let ours = home.run(&["call", name, "-o", "json"]).json();
    let body = json!({ "name": name }).to_string();
    let theirs = served.post("/api/v1/mcp/call", &[("Accept", "application/json")], &body);
    let theirs: Value = serde_json::from_str(&theirs.body).unwrap();
    let told = |reply: &Value| {
        let has_wait = reply["outcome"]["retry_after_ms"].is_number();
        let told = json!([reply["text"], reply["hint"], reply["outcome"]["kind"], has_wait]);
        untimed(&told.to_string())
    };
    assert_eq!(told(&ours), told(&theirs), "{name}");
    ours
}

#[test]
fn an_outage_has_the_words_the_kind_and_the_times_of_the_daemon() {
    let home = Home::new();
    let fx = FakeServer::new("fx").tool(Tool::new("read").read_only().answers_text("read it"));
    home.config(&home.entry("fx", fx, "restart = { backoff = ['30s'] }"));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    for pid in home.log("fx").spawned {
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success());
    }
    let is_down = || {
        served
            .send("GET", "/api/v1/mcp/servers/fx", &[], "")
            .body
            .contains("\"down\"")
    };
    super::home::until("the daemon has noticed it", is_down);
    let failure = failure_of_both(&home, &served, "fx.read");
    assert_eq!(failure["outcome"]["kind"], "restart_failed", "{failure}");
    let wait = failure["outcome"]["retry_after_ms"].as_f64().unwrap();
    assert!((1000.0..=60_000.0).contains(&wait), "{failure}");
    assert!(failure["text"].as_str().unwrap().contains("next try in "), "{failure}");

    let disabled = served.post("/api/v1/mcp/servers/fx/disable", &[], "");
    assert_eq!(disabled.status, 200, "{disabled:?}");
    let failure = failure_of_both(&home, &served, "fx.read");
    let text = failure["text"].as_str().unwrap();
    assert!(
        text.contains("it is switched off. Calling again does not help"),
        "{failure}"
    );
    assert!(failure["outcome"].get("retry_after_ms").is_none(), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_have_the_hint_of_the_daemon() {
    let home = Home::new();
    let fake = FakeServer::new("web").tool(Tool::new("read")).bearer("secret");
    let web = fake.serve_http().await.unwrap();
    let token = home.write("token", "wrong");
    let auth = format!("auth = {{ bearer_file = '{}' }}", token.display());
    home.config(&format!("[servers.web]\nurl = '{}'\n{auth}\n", web.url()));
    let served = Served::start(&home, &[]);
    let failure = failure_of_both(&home, &served, "web.read");
    let hint = failure["hint"].as_str().unwrap();
    assert!(hint.contains("write a valid token to"), "{failure}");
}

#[test]
fn a_tool_that_the_daemon_hides_is_in_its_audit_log_and_never_called() {
    let home = home();
    let config = home.path(".config/pegboard/pegboard.toml");
    let text = std::fs::read_to_string(config).unwrap();
    home.config(&format!(
        "[audit]\nfile = '{}'\n{text}",
        home.path("audit.jsonl").display()
    ));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    home.run(&["call", "fx.secret"]).ends_with(5);
    assert_eq!(home.log("fx").count("tools/call"), 0);
    super::home::until("the refusal is in the log", || {
        std::fs::read_to_string(home.path("audit.jsonl")).is_ok_and(|log| log.contains("secret"))
    });
}
