//! `pegboard serve`: what clients get over HTTP, what the settings of the gateway do, and how it ends.

use std::{fs, net::TcpStream, time::Duration};

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use super::{
    gateway::{Response, Served, initialize},
    home::{Home, until},
};

fn fx() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only().answers_text("read it"))
        .tool(Tool::new("write").answers_text("wrote it"))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
}

/// A home with the server `fx` and more settings before it.
fn home(settings: &str) -> Home {
    let home = Home::new();
    let entry = home.entry("fx", fx(), "stop_timeout = '200ms'");
    home.config(&format!("{settings}\n{entry}"));
    home
}

/// The digest of `pgb_alice`.
fn alice(more: &str) -> String {
    let digest = pegboard::config::TokenDigest::compute("pgb_alice");
    format!("[serve.tokens.alice]\nsha256 = '{digest}'\n{more}\n")
}

const ALICE: (&str, &str) = ("Authorization", "Bearer pgb_alice");

fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}})
}

/// Calls a tool of `fx` and waits until the server has the call. The response comes on the connection.
fn begin_call(home: &Home, served: &Served, headers: &[(&str, &str)], tool: &str) -> TcpStream {
    let mut stream = served.connect();
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call(tool)});
    served.write(&mut stream, "/mcp", headers, &request.to_string());
    until("the call has arrived", || home.log("fx").count("tools/call") == 1);
    stream
}

#[test]
fn the_demo_servers_are_served_without_any_config() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    served.has_tool("demo__calculate");
    let (session, _) = served.initialize("/mcp", &[]);
    let arguments = json!({"name": "demo__calculate", "arguments": {"expression": "6 * 7"}});
    let message = served.ask("/mcp", &[], &session, "tools/call", &arguments);
    assert_eq!(message["result"]["structuredContent"]["value"], 42, "{message}");
}

#[test]
fn people_are_told_where_it_listens_and_stdout_stays_empty() {
    let home = home("");
    let (out, err) = (home.path("out"), home.path("err"));
    let mut child = home
        .pegboard(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    until("it says where it listens", || {
        fs::read_to_string(&err)
            .unwrap()
            .contains("listening on http://127.0.0.1:")
    });
    until("it says what it serves", || {
        fs::read_to_string(&err).unwrap().contains("fx")
    });
    assert_eq!(fs::read_to_string(&out).unwrap(), "");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn beyond_loopback_it_does_not_start_without_tokens() {
    let home = home("");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = home.run(&["serve", "--listen", address]);
        ran.ends_with(2).says("without tokens").says("pegboard token new NAME");
        assert_eq!(ran.out, "");
    }
    assert!(!home.path("fx.log").exists(), "no server was started");
}

#[test]
fn behind_a_proxy_it_does_not_start_without_tokens() {
    for (url, more, is_served) in [
        ("https://mcp.example.com", String::new(), false),
        ("http://10.0.0.5:8080", String::new(), false),
        ("http://localhost:8080", String::new(), true),
        ("http://127.0.0.1:8080", String::new(), true),
        ("https://mcp.example.com", alice(""), true),
    ] {
        let home = home(&format!("serve.public_url = '{url}'\n{more}"));
        let ran = home.run(&["serve", "--listen", "0", "--timeout", "300ms"]);
        match is_served {
            true => ran.ends_with(124),
            false => ran
                .ends_with(2)
                .says(&format!("everyone who reaches {url} could call every tool"))
                .says("pegboard token new"),
        };
    }
}

#[test]
fn beyond_loopback_it_warns_of_missing_encryption() {
    let home = home(&alice(""));
    let served = Served::start(&home, &["--listen", "0.0.0.0:0"]);
    served.says("is not encrypted");
}

#[test]
fn an_address_in_use_and_a_wrong_config_end_it_with_code_2() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    home("")
        .run(&["serve", "--listen", &address])
        .ends_with(2)
        .says("cannot listen on");
    let wrong = home("[serve]\nhosts = ['*']\n");
    wrong.run(&["serve", "--listen", "0"]).ends_with(2).says("serve.hosts");
    let wrong = home("[views.a]\ndney = ['x']\n");
    wrong.run(&["serve", "--listen", "0"]).ends_with(2).says("views.a.dney");
}

#[test]
fn a_signal_ends_it_with_code_0_and_leaves_no_process() {
    for name in ["TERM", "INT"] {
        let home = Home::new();
        let stubborn = fx().fault(Fault::OutlivesParent).fault(Fault::IgnoresEof);
        home.config(&home.entry("fx", stubborn, "stop_timeout = '200ms'"));
        let served = Served::start(&home, &[]);
        served.has_tool("fx__read");
        served.signal(name);
        assert_eq!(served.code(), Some(0), "SIG{name}");
        home.assert_gone("fx");
    }
}

#[test]
fn requests_in_flight_are_answered_before_it_ends() {
    let home = Home::new();
    let slow = FakeServer::new("fx").tool(Tool::new("slow").answers_text("done").after(Duration::from_secs(1)));
    home.config(&home.entry("fx", slow, ""));
    let served = Served::start(&home, &[]);
    served.has_tool("fx__slow");
    let (session, _) = served.initialize("/mcp", &[]);
    let stream = begin_call(&home, &served, &[("Mcp-Session-Id", &session)], "fx__slow");
    served.signal("TERM");
    let message = Response::read(stream).message();
    assert_eq!(message["result"]["content"][0]["text"], "done", "{message}");
    assert_eq!(served.code(), Some(0));
}

#[test]
fn a_timeout_ends_it_with_code_124() {
    let ran = home("").run(&["serve", "--listen", "0", "--timeout", "300ms"]);
    ran.ends_with(124);
}

#[test]
fn a_changed_config_is_applied_and_a_broken_one_changes_nothing() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let path = home.path(".config/pegboard/pegboard.toml");
    let good = fs::read_to_string(&path).unwrap();
    let processes = home.log("fx").spawned;
    fs::write(&path, "[servers.fx\ncommand =").unwrap();
    served.says("the config is not reloaded, nothing has changed");
    assert!(served.tools("/mcp", &[]).contains(&"fx__read".to_owned()));
    let more = home.entry("more", FakeServer::new("more").tool(Tool::new("extra")), "");
    fs::write(&path, format!("{good}\n{more}")).unwrap();
    served.has_tool("more__extra");
    assert_eq!(
        home.log("fx").spawned,
        processes,
        "an unchanged server keeps its process"
    );
}

#[test]
fn a_reload_says_once_what_is_wrong_and_only_what_is() {
    let home = home("[serve]\nlisten = ['127.0.0.1:0']");
    let served = Served::start(&home, &["--no-listen"]);
    let path = home.path(".config/pegboard/pegboard.toml");
    let good = fs::read_to_string(&path).unwrap();
    let wrong = good.replace("['127.0.0.1:0']", "['127.0.0.1:0', '127.0.0.1:0']") + "\n[servers.bad]\ncomand = 'x'\n";
    let told = |words: &str| served.err().matches(words).count();
    for (before, text) in [wrong.clone(), format!("{wrong}# the same\n")].iter().enumerate() {
        fs::write(&path, text).unwrap();
        until("the error is told again", || told("comand") > before);
    }
    let more = home.entry("more", FakeServer::new("more").tool(Tool::new("extra")), "");
    fs::write(&path, format!("{good}\n{more}")).unwrap();
    served.has_tool("more__extra");
    assert_eq!(told("take effect at the next start"), 1, "{}", served.err());
    assert_eq!(told("comand"), 2, "once for each reload: {}", served.err());
}

#[test]
fn sighup_reloads_tokens_and_views() {
    let home = home("");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__read");
    let path = home.path(".config/pegboard/pegboard.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        format!(
            "[views.reading]\ntools = ['read']\n{}\n{text}",
            alice("view = 'reading'")
        ),
    )
    .unwrap();
    served.signal("HUP");
    until("the token reaches its view", || {
        served.tools_if_admitted("/mcp", &[ALICE]) == Some(vec!["fx__read".to_owned()])
    });
    let without = served.post("/mcp", &[], &initialize().to_string());
    assert_eq!(without.status, 401, "{without:?}");
}

#[test]
fn a_reload_cannot_take_the_tokens_of_an_open_gateway_away() {
    let home = home(&alice(""));
    let served = Served::start(&home, &["--listen", "0.0.0.0:0"]);
    let path = home.path(".config/pegboard/pegboard.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (_, servers) = text.split_once("[servers.fx]").unwrap();
    fs::write(&path, format!("[servers.fx]{servers}")).unwrap();
    served.says("the config is not reloaded, nothing has changed");
    let host = served.address.replace("0.0.0.0", "127.0.0.1");
    let response = served.post("/mcp", &[("Host", &host)], &initialize().to_string());
    assert_eq!(response.status, 401, "{response:?}");
}

#[test]
fn a_reload_without_any_token_keeps_the_tokens_and_their_limits() {
    let home = home(&alice("rate = '1/h'"));
    let served = Served::start(&home, &[]);
    until("the token lets its holder in", || {
        served
            .tools_if_admitted("/mcp", &[ALICE])
            .is_some_and(|tools| !tools.is_empty())
    });
    let path = home.path(".config/pegboard/pegboard.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (_, servers) = text.split_once("[servers.fx]").unwrap();
    let more = home.entry("more", FakeServer::new("more").tool(Tool::new("extra")), "");
    fs::write(&path, format!("[servers.fx]{servers}\n{more}")).unwrap();
    served.says("the config has no tokens any more");
    until("the rest of the config is applied", || {
        served.tools("/mcp", &[ALICE]).contains(&"more__extra".to_owned())
    });
    let hello = initialize().to_string();
    assert_eq!(served.post("/mcp", &[], &hello).status, 401);
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    served.ask("/mcp", &[ALICE], &session, "tools/call", &call("fx__read"));
    let second = served.ask("/mcp", &[ALICE], &session, "tools/call", &call("fx__read"));
    assert_eq!(second["error"]["code"], -32000, "{second}");
}

#[test]
fn it_listens_where_the_config_says() {
    let home = home("[serve]\nlisten = ['127.0.0.1:0', '127.0.0.1:0']");
    let served = Served::start(&home, &["--no-listen"]);
    assert_eq!(served.addresses, 2);
    served.has_tool("fx__read");
    drop(served);
    let served = Served::start(&home, &["--listen", "127.0.0.1:0"]);
    assert_eq!(served.addresses, 1, "the command line wins");
}

#[test]
fn hosts_and_origins_are_let_in_by_name() {
    let home = home("[serve]\nhosts = ['gateway.example.com']\norigins = ['https://app.example.com']");
    let served = Served::start(&home, &[]);
    let hello = initialize().to_string();
    for (header, value, expected) in [
        ("Host", "gateway.example.com", true),
        ("Host", "evil.example.com", false),
        ("Origin", "https://app.example.com", true),
        ("Origin", "https://evil.example.com", false),
    ] {
        let status = served.post("/mcp", &[(header, value)], &hello).status;
        assert_eq!(status == 200, expected, "{header}: {value}: {status}");
    }
}

#[test]
fn a_body_above_the_limit_is_refused() {
    let home = home("[serve]\nmax_body = '2KiB'");
    let served = Served::start(&home, &[]);
    let hello = |padding: usize| {
        let mut hello = initialize();
        hello["params"]["clientInfo"]["name"] = "x".repeat(padding).into();
        served.post("/mcp", &[], &hello.to_string()).status
    };
    assert_eq!((hello(100), hello(4000)), (200, 413));
}

#[test]
fn so_many_sessions_are_open_at_once() {
    let home = home("[serve]\nmax_sessions = 2");
    let served = Served::start(&home, &[]);
    let (first, _) = served.initialize("/mcp", &[]);
    served.initialize("/mcp", &[]);
    let third = served.post("/mcp", &[], &initialize().to_string());
    assert!(matches!(third.status, 429 | 503), "{third:?}");
    let message = served.ask("/mcp", &[], &first, "ping", &json!({}));
    assert_eq!(message["result"], json!({}), "the others go on");
}

#[test]
fn an_idle_session_ends_and_makes_room_for_another() {
    let home = home("[serve]\nsession_idle = '300ms'\nmax_sessions = 1");
    let served = Served::start(&home, &[]);
    let hello = initialize().to_string();
    let first = served.post("/mcp", &[], &hello);
    let session = first.header("mcp-session-id").unwrap();
    until("a second session can be opened", || {
        served.post("/mcp", &[], &hello).status == 200
    });
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    let back = served.post("/mcp", &[("Mcp-Session-Id", session)], &ping);
    assert_eq!(back.status, 503, "it goes on when there is room again: {back:?}");
}

#[test]
fn further_connections_wait_until_one_ends() {
    let home = home("[serve]\nmax_connections = 1");
    let served = Served::start(&home, &[]);
    let first = served.connect();
    let mut second = served.connect();
    served.write(&mut second, "/mcp", &[], &initialize().to_string());
    second.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let early = std::io::Read::read(&mut second, &mut [0; 1]);
    assert!(
        early.is_err(),
        "the second connection is served beside the first: {early:?}"
    );
    second.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    drop(first);
    assert_eq!(Response::read(second).status, 200);
}

#[test]
fn further_requests_are_refused_at_once_with_a_time_to_retry() {
    let home = home("[serve]\nmax_in_flight = 1");
    let served = Served::start(&home, &[]);
    served.has_tool("fx__mute");
    let (session, _) = served.initialize("/mcp", &[]);
    let _stream = begin_call(&home, &served, &[("Mcp-Session-Id", &session)], "fx__mute");
    let ping = json!({"jsonrpc": "2.0", "id": 8, "method": "ping"}).to_string();
    let refused = served.post("/mcp", &[("Mcp-Session-Id", &session)], &ping);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
}

#[test]
fn a_token_lets_its_holder_in_until_it_expires() {
    let past = pegboard::config::TokenDigest::compute("pgb_past");
    let home = home(&format!(
        "{}\n[serve.tokens.past]\nsha256 = '{past}'\nexpires = '2020-01-01T00:00:00Z'\n",
        alice("expires = '2900-01-01T00:00:00Z'")
    ));
    let served = Served::start(&home, &[]);
    let warnings = served.document["warnings"].to_string();
    assert!(warnings.contains("serve.tokens.past.expires: has passed"), "{warnings}");
    let hello = initialize().to_string();
    for (token, expected) in [
        (None, 401),
        (Some("Bearer pgb_bob"), 401),
        (Some("Bearer pgb_past"), 401),
        (Some("Bearer pgb_alice"), 200),
    ] {
        let headers: Vec<(&str, &str)> = token.map(|token| ("Authorization", token)).into_iter().collect();
        assert_eq!(served.post("/mcp", &headers, &hello).status, expected, "{token:?}");
    }
}

#[test]
fn a_token_with_a_view_reaches_that_view_only() {
    let home = home(&format!(
        "[views.reading]\ndescription = 'Only to read.'\ntools = ['read']\n{}",
        alice("view = 'reading'")
    ));
    let served = Served::start(&home, &[]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    assert_eq!(served.tools("/mcp", &[ALICE]), ["fx__read"]);
    assert_eq!(served.tools("/mcp/view/reading", &[ALICE]), ["fx__read"]);
    let around = served.post("/mcp/fx", &[ALICE], &initialize().to_string());
    assert!(matches!(around.status, 403 | 404), "{around:?}");
    let (session, described) = served.initialize("/mcp", &[ALICE]);
    assert!(
        described["instructions"]
            .as_str()
            .unwrap_or_default()
            .contains("Only to read."),
        "{described}"
    );
    let message = served.ask("/mcp", &[ALICE], &session, "tools/call", &call("fx__write"));
    assert!(is_refused(&message), "{message}");
    assert_eq!(home.log("fx").count("tools/call"), 0);
}

fn is_refused(message: &Value) -> bool {
    message["result"]["isError"] == true || message.get("error").is_some()
}

#[test]
fn a_token_has_a_rate_that_its_sessions_share() {
    let home = home(&alice("rate = '2/h'"));
    let served = Served::start(&home, &[]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    let refused: Vec<bool> = (0..3)
        .map(|_| {
            let (session, _) = served.initialize("/mcp", &[ALICE]);
            is_refused(&served.ask("/mcp", &[ALICE], &session, "tools/call", &call("fx__read")))
        })
        .collect();
    assert_eq!(refused, [false, false, true]);
    assert_eq!(home.log("fx").count("tools/call"), 2);
}

#[test]
fn a_token_has_a_number_of_calls_at_once() {
    let home = home(&alice("concurrent = 1"));
    let served = Served::start(&home, &[]);
    until("the server is ready", || !served.tools("/mcp", &[ALICE]).is_empty());
    let (session, _) = served.initialize("/mcp", &[ALICE]);
    let _stream = begin_call(&home, &served, &[ALICE, ("Mcp-Session-Id", &session)], "fx__mute");
    let second = served.ask("/mcp", &[ALICE], &session, "tools/call", &call("fx__read"));
    assert!(is_refused(&second), "{second}");
    assert_eq!(home.log("fx").count("tools/call"), 1);
}

#[test]
fn each_line_of_the_log_has_its_time_and_is_an_object_for_programs_that_ask() {
    let home = Home::new();
    let dead = Fault::ExitsAtStart {
        code: 1,
        stderr: "no licence".to_owned(),
    };
    home.config(&home.entry("fx", FakeServer::new("fx").fault(dead), "start = 'eager'\n"));
    let served = Served::start(&home, &["--no-socket", "--log-format", "json"]);
    served.says("server.start_failed");
    let text = served.err();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line));
    let lines: Vec<Value> = lines.collect();
    let failed = lines
        .iter()
        .find(|line| line["event"] == "server.start_failed")
        .unwrap();
    assert_eq!(
        (&failed["level"], &failed["server"]),
        (&"warning".into(), &"fx".into()),
        "{failed}"
    );
    assert!(failed["error"].as_str().unwrap().contains("no licence"), "{failed}");
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(
            line["message"]
                .as_str()
                .is_some_and(|message| !message.contains('\u{1b}')),
            "{line}"
        );
    }
    drop(served);
    let served = Served::start(&home, &["--no-socket"]);
    served.says("Z warning: server `fx`: the start failed");
}
