//! `pegboard call`.

use std::{io::Write as _, process::Stdio, time::Duration};

use pegboard_testkit::{Answer, Ask, Block, FakeServer, Fault, Tool};
use serde_json::json;

use super::home::{Home, Ran};

fn fake() -> FakeServer {
    let typed = json!({"type": "object", "properties": {"zip": {"type": "string"}, "n": {"type": "integer"}}});
    let blocks = [
        Block::text("seen"),
        Block::image(),
        Block::link("file:///x"),
        Block::unknown(),
    ];
    FakeServer::new("fx")
        .tool(Tool::new("echo").schema(typed).echoes())
        .tool(Tool::new("mixed").answers_blocks(blocks))
        .tool(Tool::new("fails").fails_with("no such pod\nreally"))
        .tool(
            Tool::new("steps")
                .progress(3, Duration::from_millis(1))
                .answers_text("all steps"),
        )
}

#[test]
fn the_demo_server_calculates() {
    let ran = Home::new().run(&["call", "demo.calculate", "expression=6 * 7"]);
    assert_eq!(ran.ends_with(0).out, "{\"value\":42}\n");
}

#[test]
fn log_lines_of_a_call_name_it_once() {
    let ran = Home::new().run(&["--log", "pegboard=debug", "call", "demo.calculate", "expression=6 * 7"]);
    let err = &ran.ends_with(0).err;
    let line = err.lines().find(|line| line.starts_with("debug: call ")).expect(err);
    assert!(line.contains("gen_ai.tool.name=\"demo.calculate\" id="), "{line}");
    for repeated in ["otel.", "mcp.method", "gen_ai.operation", "gen_ai.tool.call"] {
        assert!(!line.contains(repeated), "{line}");
    }
}

#[test]
fn a_tool_is_found_under_every_style_of_its_name() {
    let home = Home::new();
    let server = home.server("fx", fake());
    for name in ["fx.steps", "fx__steps", "mcp__fx__steps", "mcp_fx_steps", "steps"] {
        let ran = home.run(&["call", name, &server]);
        assert_eq!(ran.ends_with(0).out, "all steps\n", "{name}");
    }
}

#[test]
fn arguments_are_typed_by_the_schema_and_json_is_taken_as_it_is() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let pairs = home.run(&["call", "fx.echo", "zip=01234", "n=5", "free=a=b", &server]);
    assert_eq!(pairs.ends_with(0).out, "{\"free\":\"a=b\",\"n\":5,\"zip\":\"01234\"}\n");
    home.write("args.json", "{\"n\": 1}");
    let file = home.run(&["call", "fx.echo", "--json", "@args.json", &server]);
    assert_eq!(file.ends_with(0).out, "{\"n\":1}\n");
    let mut child = home
        .pegboard(&["call", "fx.echo", "--json", "-", &server])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"n\": 2}").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"{\"n\":2}\n");
}

#[test]
fn what_is_not_text_is_named_in_text_and_kept_in_json() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", "mixed", &server]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r#"
    seen
    [image image/png, 8 bytes]
    [link file:///x: file:///x]
    [hologram block, 29 bytes]
    "#);
    let json = home.run(&["call", "mixed", "-o", "json", &server]).ends_with(0).json();
    assert_eq!(json["content"][1], Block::image());
    assert_eq!(json["status"], "done");
    assert_eq!(json["outcome"]["kind"], "ok");
    assert_eq!(
        (&json["name"], &json["server"], &json["tool"]),
        (&json!("fx.mixed"), &json!("fx"), &json!("mixed"))
    );
}

#[test]
fn a_long_result_is_printed_in_full_unless_asked_otherwise() {
    let home = Home::new();
    let long: String = (1..=20_000).map(|n| format!("line {n}\n")).collect();
    let server = home.server("fx", FakeServer::new("fx").tool(Tool::new("long").answers_text(&long)));
    assert_eq!(home.run(&["call", "fx.long", &server]).ends_with(0).out, long);
    let json = home
        .run(&["call", "fx.long", "-o", "json", &server])
        .ends_with(0)
        .json();
    assert_eq!(
        (&json["text"], &json["outcome"]["truncated"]),
        (&json!(long), &json!(false))
    );
    let cut = home.run(&["call", "fx.long", "--max-result", "1KiB", &server]);
    let cut = &cut.ends_with(0).out;
    assert!(
        cut.len() <= 1025 && cut.starts_with("line 1\n") && cut.ends_with("line 20000\n"),
        "{cut}"
    );
    assert!(cut.contains(&format!(" of {} bytes are shown", long.len())), "{cut}");
    let cut = home.run(&["call", "fx.long", "--max-result=1KiB", "-o", "json", &server]);
    let outcome = &cut.ends_with(0).json()["outcome"];
    assert_eq!(
        (&outcome["truncated"], &outcome["handle"]),
        (&json!(true), &json!(null))
    );
    assert_eq!(outcome["original_bytes"], long.len());
}

#[test]
fn a_failed_tool_is_an_error_with_its_words_on_stderr() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", "fx.fails", &server]);
    assert_eq!(ran.ends_with(1).err, "error: fx.fails failed: no such pod\n  really\n");
    assert_eq!(ran.out, "");
    let json = home
        .run(&["call", "fx.fails", "-o", "json", &server])
        .ends_with(1)
        .json();
    assert_eq!(
        (&json["status"], &json["is_error"]),
        (&json!("tool_failed"), &json!(true))
    );
    assert_eq!(json["text"], "no such pod\nreally");
}

#[test]
fn an_unknown_tool_is_answered_with_names_that_come_close() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", "fx.ecko", &server]);
    assert_eq!(
        ran.ends_with(2).err,
        "error: there is no tool `fx.ecko`\nhint: did you mean `fx.echo`? `pegboard tools fx` lists its tools\n"
    );
    let json = home
        .run(&["call", "fx.ecko", "-o", "json", &server])
        .ends_with(2)
        .json();
    assert_eq!(
        (&json["status"], &json["outcome"]["kind"]),
        (&json!("refused"), &json!("unknown_tool"))
    );
    // A model is told what there is.
    let text = json["text"].as_str().unwrap();
    assert!(
        text.contains("The closest names are `fx.echo`.") && text.contains("Available servers: fx."),
        "{text}"
    );
}

#[test]
fn a_misspelt_tool_asks_only_its_own_server() {
    let home = Home::new();
    let (one, two) = (home.server("one", fake()), home.server("two", fake()));
    let ran = home.run(&["call", "one.ecko", &one, &two]);
    assert_eq!(
        ran.ends_with(2).err,
        "error: there is no tool `one.ecko`\nhint: did you mean `one.echo`? `pegboard tools one` lists its tools\n"
    );
    assert!(!home.path("two.log").exists(), "the other server was started");
}

#[test]
fn a_misspelt_server_starts_none() {
    let home = Home::new();
    let (one, two) = (home.server("github", fake()), home.server("two", fake()));
    for name in ["githb.echo", "githb__echo"] {
        let ran = home.run(&["call", name, &one, &two]);
        assert_eq!(
            ran.ends_with(2).err,
            "error: there is no server `githb`\nhint: did you mean `github.echo`? `pegboard tools github` lists its tools\n"
        );
    }
    home.run(&["call", "nothing.echo", &one, &two])
        .ends_with(2)
        .says("error: there is no server `nothing`\nhint: `pegboard list` lists the servers");
    assert!(!home.path("github.log").exists() && !home.path("two.log").exists());
    // Other styles of the name are understood.
    home.run(&["call", "functions.GitHub__echo", "n=1", &one, &two])
        .ends_with(0);
}

#[test]
fn wrong_json_names_line_and_column_before_any_server_is_started() {
    let home = Home::new();
    let server = home.server("fx", fake());
    home.write("args.json", "{\n  \"a\": 1,\n  oops\n}");
    for (json, words) in [
        (
            "{\"a\": }",
            "error: the arguments are not JSON: expected value (line 1, column 7)",
        ),
        (
            "@args.json",
            "error: args.json: the arguments are not JSON: key must be a string (line 3, column 3)",
        ),
        ("[1]", "error: the arguments must be a JSON object"),
        ("@none.json", "error: none.json cannot be read"),
    ] {
        let args = ["call", "fx.echo", "--json", json, &server];
        home.run(&args).ends_with(2).says(words).says("hint: write `--json");
        let document = home.run(&[&args[..], &["-o", "json"]].concat()).ends_with(2).json();
        assert_eq!(document["outcome"]["kind"], "invalid_arguments", "{json}");
    }
    home.run(&["call", "fx.echo", "a=1", "a=2", &server])
        .ends_with(2)
        .says("the argument `a` is given twice");
    assert_eq!(home.log("fx").count("tools/call"), 0);
}

#[test]
fn only_the_server_that_the_name_says_is_started() {
    let home = Home::new();
    let (one, two) = (home.server("one", fake()), home.server("two", fake()));
    home.run(&["call", "one.steps", &one, &two]).ends_with(0);
    assert!(home.log("two").spawned.is_empty());
    let ran = home.run(&["call", "steps", &one, &two]);
    ran.ends_with(2)
        .says("could mean one.steps or two.steps")
        .says("hint: say which one");
    home.run(&["call", "steps", &one, &two, "--server", "two"]).ends_with(0);
}

/// One row per exit code: the server's behaviour, the command, and the expected code and kind.
#[test]
fn the_exit_code_tells_how_the_call_ended() {
    let on_call = |fault| FakeServer::new("fx").tool(Tool::new("t")).fault(fault);
    for (fake, more, code, kind) in [
        (FakeServer::new("fx").tool(Tool::new("t")), "", 0, "ok"),
        (
            FakeServer::new("fx").tool(Tool::new("t").fails_with("no")),
            "",
            1,
            "tool_error",
        ),
        (
            FakeServer::new("fx").tool(Tool::new("t").refuses(-32602, "no")),
            "",
            1,
            "tool_error",
        ),
        (FakeServer::new("fx").tool(Tool::new("other")), "", 2, "unknown_tool"),
        (on_call(Fault::DiesAfterExecuting { code: 7 }), "", 3, "transport"),
        (
            on_call(Fault::ExitsAtStart {
                code: 7,
                stderr: "no".into(),
            }),
            "",
            3,
            "unavailable",
        ),
        (
            FakeServer::new("fx").tool(Tool::new("t").answers(Answer::Bytes(10_000))),
            "max_message = '4KiB'",
            3,
            "limit_exceeded",
        ),
        (on_call(Fault::NeverAnswers), "call_timeout = '300ms'", 124, "timeout"),
        (
            on_call(Fault::SilentHandshake),
            "connect_timeout = '300ms'",
            3,
            "unavailable",
        ),
    ] {
        let home = Home::new();
        let config = home.write("fx.toml", &home.entry("fx", fake, more));
        let args = ["call", "fx.t", "-c", config.to_str().unwrap()];
        let text = home.run(&args);
        text.ends_with(code);
        assert_eq!(text.out.is_empty(), code != 0, "{text:?}");
        // A warning about a lost connection may come first.
        let has_error = text.err.lines().any(|line| line.starts_with("error: "));
        assert_eq!(has_error, code != 0, "{text:?}");
        let json = home.run(&[&args[..], &["-o", "json"]].concat());
        assert_eq!(json.ends_with(code).json()["outcome"]["kind"], kind);
        home.assert_gone("fx");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_somebody_to_sign_in_has_a_code_of_its_own() {
    let home = Home::new();
    let http = fake().bearer("secret").serve_http().await.unwrap();
    let server = format!("--server=web={}", http.url());
    home.run(&["call", "web.echo", &server])
        .ends_with(4)
        .says("error: server `web` has no valid credentials")
        .says("hint: ");
    home.run(&["tools", &server])
        .ends_with(4)
        .says("server `web` has no valid credentials");
    let json = home.run(&["tools", "-o", "json", &server]).ends_with(4).json();
    assert_eq!(json["unavailable"][0]["state"], "needs_auth");
}

#[test]
fn the_whole_command_has_a_limit() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("t")).fault(Fault::NeverAnswers);
    let server = home.server("fx", fake);
    let ran = home.run(&["--timeout", "3s", "call", "fx.t", &server]);
    ran.ends_with(124)
        .says("error: ")
        .says("hint: `--timeout` sets the limit");
    let json = home
        .run(&["--timeout", "3s", "call", "fx.t", "-o", "json", &server])
        .ends_with(124)
        .json();
    assert_eq!(
        (&json["status"], &json["outcome"]["kind"]),
        (&json!("lost"), &json!("timeout"))
    );
    assert_eq!(json["outcome"]["may_have_executed"], true);
    home.assert_gone("fx");
    // The same while the command reads its arguments from stdin.
    let mut command = home.pegboard(&["--timeout", "100ms", "call", "fx.t", "--json", "-", &server]);
    command.stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    drop(open);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_over_every_transport() {
    let home = Home::new();
    let call = |url: &str| -> Ran { home.run(&["call", "web.echo", "n=1", &format!("--server=web={url}")]) };
    let (http, sse, ws) = (
        fake().serve_http().await,
        fake().serve_sse().await,
        fake().serve_ws().await,
    );
    for handle in [http.unwrap(), sse.unwrap(), ws.unwrap()] {
        assert_eq!(call(&handle.url()).ends_with(0).out, "{\"n\":1}\n", "{}", handle.url());
    }
}

#[test]
fn a_name_with_a_slip_is_understood_and_that_is_told() {
    let home = Home::new();
    let server = home.server("fx", fake());
    let ran = home.run(&["call", "functions.FX__Echo", &server]);
    ran.ends_with(0)
        .says("warning: `functions.FX__Echo` was taken for `fx.echo`");
    let json = home
        .run(&["call", "FX.echo", "-o", "json", &server])
        .ends_with(0)
        .json();
    assert_eq!(json["repaired"], "`FX.echo` was taken for `fx.echo`");
    for name in ["fx.echo", "fx__echo", "mcp__fx__echo", "mcp_fx_echo", "echo"] {
        assert_eq!(home.run(&["call", name, &server]).ends_with(0).err, "", "{name}");
    }
}

/// Without a terminal the elicitation capability is not declared, and an elicitation sent all the same is refused at once.
#[test]
fn a_server_is_not_told_that_it_may_ask_when_nobody_sits_there() {
    let home = Home::new();
    let tool = Tool::new("t").answers_text("hi").asks(Ask::Elicitation);
    let ran = home.run(&["call", "fx.t", &home.server("fx", FakeServer::new("fx").tool(tool))]);
    ran.ends_with(0).prints("hi");
    let requests = home.log("fx").requests;
    let sent = |method: &str| requests.iter().find(|message| message.method == method).unwrap();
    assert_eq!(sent("initialize").params["capabilities"], json!({}));
    assert_eq!(sent("$response").params["error"]["code"], -32601);
}

#[test]
fn a_tool_of_a_server_without_tools_is_explained() {
    let home = Home::new();
    home.config(&home.entry("fx", FakeServer::new("fx"), ""));
    home.run(&["call", "fx.read"])
        .says("there is no tool `fx.read`: server `fx` offers no tools");
}
