//! `pegboard tools`.

use pegboard_testkit::{Era, FakeServer, Fault, Tool};
use serde_json::json;

use super::home::Home;

fn two_tools() -> FakeServer {
    let add = Tool::new("add")
        .description("Adds numbers.\nSlowly.")
        .schema(json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "integer", "description": "the first"}, "b": {"type": ["integer", "null"]}},
        }))
        .read_only();
    FakeServer::new("fx").tool(Tool::new("echo").echoes()).tool(add)
}

#[test]
fn without_any_config_the_demo_server_is_listed() {
    let ran = Home::new().run(&["tools"]);
    ran.ends_with(0)
        .prints("demo (7 tools)\n  demo.calculate     Works out");
    assert_eq!(
        ran.err,
        "no config found, using the built-in demo server; `pegboard init` writes a config, `pegboard add` adds a server\n"
    );
    assert_eq!(Home::new().run(&["tools", "-q"]).err, "");
    assert_eq!(Home::new().run(&["tools", "-o", "json"]).err, "");
}

#[test]
fn tools_are_listed_by_server_with_the_first_line_of_their_description() {
    let home = Home::new();
    let (one, two) = (home.server("one", two_tools()), home.server("two", two_tools()));
    let ran = home.run(&[&one, &two, "tools"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r#"
    one (2 tools)
      one.add   Adds numbers.
      one.echo  A scripted tool.

    two (2 tools)
      two.add   Adds numbers.
      two.echo  A scripted tool.
    "#);
    let ran = home.run(&[&one, &two, "tools", "-v", "two*add"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r#"
    two (1 of 2 tools)
      two.add  Adds numbers.
          a  integer       required  the first
          b  integer|null  optional
    "#);
    home.assert_gone("one");
    home.assert_gone("two");
}

#[test]
fn what_is_wrong_with_a_listing_is_told_beside_it() {
    let home = Home::new();
    let twice = FakeServer::new("fx").tool(Tool::new("t")).fault(Fault::DuplicateTools);
    let fx = home.server("fx", twice);
    home.run(&["tools", &fx])
        .ends_with(0)
        .says("warning: fx: tool `t` is listed twice");
    let ran = home.run(&["tools", "-o", "json", &fx]);
    assert_eq!(
        (
            ran.ends_with(0).json()["warnings"].as_array().unwrap().len(),
            ran.err.as_str()
        ),
        (1, "")
    );
}

#[test]
fn json_has_the_promised_shape() {
    let home = Home::new();
    let ran = home.run(&["tools", "add", "-o", "json", &home.server("fx", two_tools())]);
    assert_eq!(
        ran.ends_with(0).json(),
        json!({
            "tools": [{
                "name": "fx__add", "server": "fx", "tool": "add", "title": null, "description": "Adds numbers.\nSlowly.",
                "input_schema": {
                    "type": "object", "required": ["a"],
                    "properties": {"a": {"type": "integer", "description": "the first"}, "b": {"type": ["integer", "null"]}},
                },
                "output_schema": null, "annotations": {"readOnlyHint": true},
                "kind": "mcp", "risk": "high",
            }],
            "unavailable": [], "warnings": [],
        })
    );
}

#[test]
fn the_form_of_mcp_is_the_plain_array_of_its_tools() {
    let home = Home::new();
    let ran = home.run(&[
        "tools",
        "echo",
        "-o",
        "json",
        "--provider",
        "mcp",
        &home.server("fx", two_tools()),
    ]);
    assert_eq!(
        ran.ends_with(0).json(),
        json!([{"name": "fx__echo", "description": "A scripted tool.", "inputSchema": {"type": "object"}}])
    );
}

#[test]
fn a_plain_server_name_picks_that_server_and_the_others_are_not_started() {
    let home = Home::new();
    let (one, two) = (home.server("one", two_tools()), home.server("two", two_tools()));
    let ran = home.run(&[&one, &two, "tools", "--server", "one"]);
    ran.ends_with(0).prints("one (2 tools)");
    assert!(!ran.out.contains("two"));
    assert!(home.log("two").spawned.is_empty());
    let ran = home.run(&[&one, "tools", "--server", "nobody"]);
    ran.ends_with(2)
        .says("error: there is no server `nobody`\nhint: the servers are one");
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_a_suggestion() {
    let home = Home::new();
    let files = home.server("files", two_tools());
    let ran = home.run(&["tools", "zzz", &files]);
    ran.ends_with(2)
        .says("error: no server or tool has such a name: `zzz`\nhint: `pegboard tools` lists all");
    assert_eq!(ran.out, "");
    for (wrong, meant) in [("filex", "files"), ("files.ecko", "files.echo"), ("ecko", "echo")] {
        home.run(&["tools", wrong, &files])
            .ends_with(2)
            .says(&format!("did you mean `{meant}`?"));
    }
    let ran = home.run(&["tools", "filex", "-o", "json", &files]);
    let warning = ran.ends_with(2).json()["warnings"][0].to_string();
    assert!(warning.contains("did you mean `files`?"), "{warning}");
    assert_eq!(ran.err, "");
    // A pattern and a search may find nothing.
    home.run(&["tools", "zzz*", &files])
        .ends_with(0)
        .says("no tool has such a name");
    home.run(&["tools", "--search", "zzz", &files]).ends_with(0);
}

#[test]
fn the_name_of_a_server_that_is_not_in_use_says_why_and_nothing_is_started() {
    let home = Home::new();
    let on = home.entry("on", two_tools(), "");
    home.config(&format!(
        "{on}\n[servers.off]\ncommand = 'x'\nenabled = false\n[servers.broken]\ncommand = '${{NOT_SET_HERE}}'\n"
    ));
    for name in ["off", "off.echo"] {
        home.run(&["tools", name])
            .ends_with(3)
            .says("error: server `off` is disabled\nhint: `pegboard enable off` switches it on");
    }
    home.run(&["tools", "broken"])
        .ends_with(2)
        .says("server `broken` cannot be used as it is configured");
    assert!(!home.path("on.log").exists(), "it was started");
}

#[test]
fn a_config_without_servers_is_said_so() {
    let home = Home::new();
    home.config("[servers.off]\ncommand = 'x'\nenabled = false\n");
    let ran = home.run(&["tools"]);
    ran.ends_with(0)
        .says("warning: no server that is switched on offers a tool");
    assert_eq!(ran.out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_reached_over_every_transport_in_both_eras() {
    let home = Home::new();
    for era in [Era::Legacy, Era::Modern] {
        let fake = two_tools().era(era);
        let http = fake.serve_http().await.unwrap();
        home.run(&["tools", &format!("--server=web={}", http.url())])
            .ends_with(0)
            .prints("web.add");
        home.run(&["tools", &home.server("pipe", fake)])
            .ends_with(0)
            .prints("pipe.add");
    }
    let sse = two_tools().serve_sse().await.unwrap();
    home.run(&["tools", &format!("--server=web={}", sse.url())])
        .ends_with(0)
        .prints("web.add");
    let ws = two_tools().serve_ws().await.unwrap();
    home.run(&["tools", &format!("--server=web={}", ws.url())])
        .ends_with(0)
        .prints("web.add");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let home = Home::new();
    let many = (0..2000).map(|n| Tool::new(format!("tool_{n}")).description(&"long ".repeat(20)));
    let mut command = home.pegboard(&["tools", &home.server("fx", FakeServer::new("fx").tools(many))]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe is closed before the command writes to it.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    home.assert_gone("fx");
}

#[test]
fn every_provider_gets_exactly_its_array_and_the_same_bytes_every_time() {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let fake = FakeServer::new("fx").tool(Tool::new("read").description("Reads.").schema(schema.clone()));
    let server = home.server("fx", fake);
    let strict = json!({"type": "object", "properties": {"path": {"type": ["string", "null"]}}, "required": ["path"],
                        "additionalProperties": false});
    let named = |key: &str| json!({"name": "fx__read", "description": "Reads.", key: schema});
    for (provider, expected) in [
        ("mcp", json!([named("inputSchema")])),
        ("openai", json!([{"type": "function", "function": named("parameters")}])),
        (
            "openai-responses",
            json!([{"type": "function", "name": "fx__read", "description": "Reads.", "parameters": schema, "strict": false}]),
        ),
        (
            "openai-strict",
            json!([{"type": "function", "function": {"name": "fx__read", "description": "Reads.", "parameters": strict, "strict": true}}]),
        ),
        ("anthropic", json!([named("input_schema")])),
        ("gemini", json!([{"functionDeclarations": [named("parameters")]}])),
        (
            "gemini-json",
            json!([{"functionDeclarations": [named("parametersJsonSchema")]}]),
        ),
        (
            "bedrock",
            json!([{"toolSpec": {"name": "fx__read", "description": "Reads.", "inputSchema": {"json": schema}}}]),
        ),
    ] {
        let args = ["tools", "-o", "json", "--provider", provider, &server];
        let first = home.run(&args);
        assert_eq!(first.ends_with(0).json(), expected, "{provider}");
        assert_eq!(first.err, "");
        assert_eq!(home.run(&args).out, first.out, "{provider}");
    }
}

#[test]
fn a_tool_that_a_provider_cannot_take_is_named_on_stderr() {
    let home = Home::new();
    let bad = json!({"type": "object", "properties": {"x": 7}});
    let fake = FakeServer::new("fx")
        .tool(Tool::new("bad").schema(bad))
        .tool(Tool::new("a/b"));
    let server = home.server("fx", fake);
    let ran = home.run(&["tools", "--provider", "openai", &server]);
    ran.ends_with(0).prints("fx__a_b_z6pdzws6fj").says(
        "warning: tool `fx.bad` is not offered to openai: its input schema cannot be used at `x`: 7 is no schema",
    );
    // The printed name can be called.
    home.run(&["call", "fx__a_b_z6pdzws6fj", &server]).ends_with(0);
}

#[test]
fn the_cost_of_all_tools_is_not_asked_for_together_with_a_part_of_them() {
    let home = Home::new();
    for other in [&["demo.*"][..], &["--search", "time"], &["--provider", "openai"]] {
        home.run(&[&["tools", "--cost"], other].concat())
            .ends_with(2)
            .says("cannot be used with");
    }
}

#[cfg(unix)]
#[test]
fn every_command_counts_the_same_tools() {
    let home = Home::new();
    let tools = ["a", "b", "c", "delete_a", "delete_b"];
    let fake = tools.iter().fold(FakeServer::new("fx"), |fake, tool| {
        fake.tool(Tool::new(*tool).answers_text("done"))
    });
    home.config(&home.entry("fx", fake, "deny = ['delete_*']"));
    let counts = |more: &[&str]| {
        home.run(&[&["tools"], more].concat())
            .ends_with(0)
            .prints("fx (3 tools)\n");
        let cost = home
            .run(&[&["tools", "--cost", "-o", "json"], more].concat())
            .ends_with(0)
            .json();
        assert_eq!(cost["servers"][0]["tools"], 3);
        let status = home.run(&[&["status"], more].concat());
        status.ends_with(0).prints("  3 of 5  ");
        let json = home
            .run(&[&["status", "-o", "json"], more].concat())
            .ends_with(0)
            .json();
        assert_eq!(
            (&json["servers"][0]["tools"], &json["servers"][0]["hidden"]),
            (&json!(3), &json!(2))
        );
        home.run(&[&["tools", "fx.b"], more].concat())
            .ends_with(0)
            .prints("fx.b\n");
        home.run(&[&["tools", "*.b"], more].concat())
            .ends_with(0)
            .prints("fx (1 of 3 tools)\n");
    };
    counts(&["--no-daemon"]);
    let served = super::gateway::Served::start(&home, &[]);
    served.has_tool("fx__a");
    counts(&[]);
}
