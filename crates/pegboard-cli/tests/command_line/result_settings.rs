//! The settings of `result` at every door: the library, `/mcp`, `/mcp/SERVER`, a view, the HTTP API, `pegboard mcp` and `pegboard call`, with a daemon
//! and without.

use pegboard::{Config, Env, Pegboard, ToolCall, config::Source};
use pegboard_testkit::{Answer, Block, FakeServer, Tool};
use serde_json::{Value, json};

use super::{gateway::Served, home::Home, mcp::Mcp};

/// A setting, and how its effect is seen in the text of a result.
struct Row {
    /// The name of the server that has it.
    server: &'static str,
    settings: &'static str,
    tool: Tool,
    is_in_effect: fn(&str) -> bool,
    /// Whether `pegboard call` leaves it out, because it prints whole results for people and their scripts.
    is_for_models: bool,
}

fn rows() -> Vec<Row> {
    let row = |server, settings, tool, is_in_effect| Row {
        server,
        settings,
        tool,
        is_in_effect,
        is_for_models: false,
    };
    let for_models = |server, settings, tool, is_in_effect| Row {
        is_for_models: true,
        ..row(server, settings, tool, is_in_effect)
    };
    let tool = || Tool::new("t");
    let two = || tool().answers_blocks([Block::text("one"), Block::text("two")]);
    let both = json!({"content": [{"type": "text", "text": "plain"}], "structuredContent": {"n": 1}});
    let structured = || tool().answers(Answer::Result(both.clone()));
    let rows = || tool().answers_text((100..300).map(|row| format!("row {row}\n")).collect::<String>());
    let picture = format!("{{\"shot\": \"iVBORw0KGgo{}\"}}", "QUFB".repeat(1000));
    vec![
        row("plain", "", two(), |text| text == "one\ntwo"),
        row("fence", "result = { fence = true }", two(), |text| {
            text.starts_with("<untrusted-") && text.contains("one\ntwo\n</untrusted-")
        }),
        row(
            "fenced_data",
            "result = { fence = true }",
            tool().answers_structured(json!({"n": 1})),
            |text| text.starts_with("<untrusted-") && text.contains("\"n\":1"),
        ),
        row(
            "clean",
            "result = { clean = true }",
            tool().answers_text("zero\u{200b}width"),
            |text| text == "zerowidth",
        ),
        row("nothing", "result = { join = 'nothing' }", two(), |text| {
            text == "onetwo"
        }),
        row("empty_line", "result = { join = 'empty_line' }", two(), |text| {
            text == "one\n\ntwo"
        }),
        row("first", "result = { join = 'first' }", two(), |text| text == "one"),
        row("structured", "structured = 'structured_first'", structured(), |text| {
            text == "{\"n\":1}"
        }),
        row(
            "dedup",
            "result = { structured = 'both_dedup' }",
            structured(),
            |text| text == "plain\n{\"n\":1}",
        ),
        row("of_tool", "tools.t.result = { join = 'first' }", two(), |text| {
            text == "one"
        }),
        for_models("head", "result = { max_bytes = 600, mode = 'head' }", rows(), |text| {
            text.len() < 700 && text.contains("row 100") && text.contains("[truncated")
        }),
        for_models("spill", "max_result = 600", rows(), |text| text.contains("read_output")),
        for_models("lines", "result = { max_lines = 9, mode = 'head' }", rows(), |text| {
            text.contains("[truncated")
        }),
        for_models(
            "tokens",
            "result = { max_tokens = 130, mode = 'head' }",
            rows(),
            |text| text.contains("[truncated"),
        ),
        for_models(
            "error",
            "result = { max_bytes = 600, mode = 'error' }",
            rows(),
            |text| text.contains("is too long"),
        ),
        for_models(
            "images",
            "result = { images = 'spill' }",
            tool().answers_blocks([Block::text("look:"), Block::image()]),
            |text| text.contains("handle out_"),
        ),
        for_models(
            "find",
            "result = { find_images = true }",
            tool().answers_text(picture),
            |text| text.contains("[picture 1, image/png]"),
        ),
    ]
}

/// The text that a client makes of a response: its text blocks, or the message of an error.
fn text_of(message: &Value) -> String {
    let blocks = message["result"]["content"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    match message["error"]["message"].as_str() {
        Some(error) => error.to_owned(),
        None => texts.join("\n"),
    }
}

/// Asserts the effect of each setting in what a door returns for its tool.
#[track_caller]
fn check(door: &str, rows: &[Row], mut text: impl FnMut(&Row) -> String) {
    let wrong = rows.iter().filter_map(|row| {
        let text = text(row);
        let is_meant = door != "call" || !row.is_for_models;
        ((row.is_in_effect)(text.trim_end()) != is_meant).then(|| format!("{}: {:?}", row.server, text))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{door}: {wrong:#?}");
}

#[test]
fn every_setting_of_results_holds_at_every_door() {
    let home = Home::new();
    let rows = rows();
    let servers = rows.iter().map(|row| {
        let fake = FakeServer::new(row.server).tool(row.tool.clone());
        home.entry(row.server, fake, &format!("stop_timeout = '200ms'\n{}", row.settings))
    });
    let servers: String = servers.collect();
    let file = home.config(&format!("[views.v]\ndescription = 'a view'\n{servers}"));

    let config = Config::load(&[Source::file(&file)], &Env::process());
    assert_eq!(config.problems, []);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (board, tools) = runtime.block_on(async {
        let board = Pegboard::open(config.config);
        let tools = board.toolset();
        (board, tools)
    });
    check("library", &rows, |row| {
        let called = tools.call(ToolCall::new(format!("{}.t", row.server)));
        runtime.block_on(called).text()
    });
    runtime.block_on(board.shutdown());

    check("call", &rows, |row| {
        home.run(&["--no-daemon", "call", &format!("{}.t", row.server)]).out
    });
    let (mut mcp, _) = Mcp::start(&home, &["--no-daemon"]);
    mcp.ready();
    check("pegboard mcp", &rows, |row| {
        text_of(&mcp.ask(
            "tools/call",
            &json!({"name": format!("{}__t", row.server), "arguments": {}}),
        ))
    });
    drop(mcp);

    let served = Served::start(&home, &[]);
    let at = |door: &str, path: &str| {
        let (session, _) = served.initialize(path, &[]);
        check(door, &rows, |row| {
            let params = json!({"name": format!("{}__t", row.server), "arguments": {}});
            text_of(&served.ask(path, &[], &session, "tools/call", &params))
        });
    };
    at("/mcp", "/mcp");
    at("/mcp/view/v", "/mcp/view/v");
    check("/mcp/SERVER", &rows, |row| {
        let path = format!("/mcp/{}", row.server);
        let (session, _) = served.initialize(&path, &[]);
        text_of(&served.ask(
            &path,
            &[],
            &session,
            "tools/call",
            &json!({"name": "t", "arguments": {}}),
        ))
    });
    check("the HTTP API", &rows, |row| {
        let body = json!({"name": format!("{}.t", row.server), "arguments": {}}).to_string();
        let reply = served.post("/api/v1/mcp/call", &[("Accept", "application/json")], &body);
        let reply: Value = serde_json::from_str(&reply.body).unwrap();
        reply["text"].as_str().unwrap_or_default().to_owned()
    });
    check("call", &rows, |row| {
        home.run(&["call", &format!("{}.t", row.server)]).out
    });
    let (mut mcp, _) = Mcp::start(&home, &[]);
    mcp.ready();
    check("pegboard mcp with a daemon", &rows, |row| {
        text_of(&mcp.ask(
            "tools/call",
            &json!({"name": format!("{}__t", row.server), "arguments": {}}),
        ))
    });
}
