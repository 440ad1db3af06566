//! Which definitions are held, and that nothing of them reaches an agent.

use pegboard::{Event, Kind, pin::PinState};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::{pins::fixtures::*, support::*};

/// A definition with all fields, and one change of each.
fn definition() -> Tool {
    tool("t")
        .with("title", "T")
        .schema(json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}))
        .output_schema(json!({"type": "object", "properties": {"r": {"type": "string"}}}))
        .with("annotations", json!({"readOnlyHint": true}))
        .with("icons", json!([{"src": "https://x.example/a.png"}]))
        .with("_meta", json!({"k": "v"}))
}

fn changes() -> Vec<(&'static str, Value)> {
    let input = |property: Value| json!({"type": "object", "properties": {"a": property, "b": {"type": "integer"}}});
    vec![
        ("title", json!(CANARY)),
        ("description", json!(CANARY)),
        ("inputSchema", input(json!({"type": "string", "description": CANARY}))),
        ("inputSchema", input(json!({"type": "string", "default": CANARY}))),
        ("inputSchema", input(json!({"type": "string", "enum": [CANARY]}))),
        ("outputSchema", json!({"type": "object", "description": CANARY})),
        ("annotations", json!({"readOnlyHint": false, "title": CANARY})),
        ("annotations", json!({"readOnlyHint": true, "idempotentHint": true})),
        ("icons", json!([{"src": "https://x.example/b.png"}])),
        ("_meta", json!({"k": CANARY})),
        ("execution", json!({"taskSupport": "optional"})),
        ("unheard_of", json!(CANARY)),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_change_of_any_field_holds_the_tool_and_only_that_tool() {
    for (field, value) in changes() {
        let folder = tempfile::tempdir().unwrap();
        let (names, warnings) = run("pins = 'block'", &server([definition(), tool("u")]), folder.path()).await;
        assert_eq!(
            (names, warnings),
            (vec!["t".into(), "u".into()], vec![]),
            "the first listing is recorded"
        );

        let changed = server([definition().with(field, value.clone()), tool("u")]);
        let (board, _handle) = open(fx("pins = 'block'"), &changed, folder.path());
        let (names, warnings) = list(&board.toolset()).await;
        assert_eq!(names, ["u"], "{field}: {value}");
        assert_contains(
            &warnings.join("\n"),
            &["fx: definitions are held until they are accepted: `t`"],
        );
        assert!(!all_text(&board).await.contains(CANARY), "{field}: {value}");

        let reply = call(&board.toolset(), "fx.t", json!({})).await;
        assert_outcome(&reply, Kind::NotPermitted, false);
        assert_contains(
            &reply.text(),
            &["tool `fx.t` is held: its definition changed since it was pinned"],
        );
        assert!(!reply.text().contains(CANARY));
        let hint = reply.outcome.hint().unwrap().to_owned();
        assert_contains(&hint, &["`pegboard pins accept fx.t` accepts it"]);
        for spelling in ["fx__t", "mcp__fx__t", "t"] {
            let reply = call(&board.toolset(), spelling, json!({})).await;
            assert_outcome(&reply, Kind::NotPermitted, false);
        }
        assert_outcome(&call(&board.toolset(), "fx.u", json!({})).await, Kind::Ok, true);
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_order_of_tools_and_keys_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let schema = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let one = schema(
        r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","description":"d"},"b":{}}}"#,
    );
    let two = schema(
        r#"{"properties":{"b":{},"a":{"description":"d","type":"string"}},"required":["b","a"],"type":"object"}"#,
    );
    let first = server([tool("t").schema(one), tool("u")]);
    let second = server([tool("u"), tool("t").schema(two)]);
    run("pins = 'block'", &first, folder.path()).await;
    let (names, warnings) = run("pins = 'block'", &second, folder.path()).await;
    assert_eq!((names, warnings), (vec!["t".into(), "u".into()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_new_tool_of_a_known_server_is_held_also_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (board, fake) = open(fx("pins = 'block'"), &server([tool("t")]), folder.path());
    let tools = board.toolset();
    assert_eq!(list(&tools).await.0, ["t"]);
    let mut events = board.events();
    fake.change(|script| script.tools.push(tool("renamed").description(CANARY)));
    fake.tools_changed().await;
    // The event comes when the new listing is compared, which the next use of the tools does.
    while board.pin_changes().is_empty() {
        tokio::time::sleep(secs(1)).await;
    }
    let changes = board.pin_changes();
    assert_eq!(
        (changes.len(), changes[0].state, changes[0].held),
        (1, PinState::New, true)
    );
    assert_eq!(list(&tools).await.0, ["t"]);
    assert!(!all_text(&board).await.contains(CANARY));
    assert_outcome(&call(&tools, "fx.renamed", json!({})).await, Kind::NotPermitted, false);
    let flagged = loop {
        if let Event::DefinitionsFlagged {
            changed,
            held,
            suspicious,
            ..
        } = events.next().await.unwrap()
        {
            break (changed, held, suspicious);
        }
    };
    assert_eq!(flagged, (1, 1, 0));
    let status = board.status();
    assert_eq!((status.servers[0].tools, status.servers[0].held), (1, 1));
    assert!(
        status.warnings.iter().any(|warning| warning.category == "definitions"),
        "{:?}",
        status.warnings
    );
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn changed_instructions_are_held_like_tools() {
    let folder = tempfile::tempdir().unwrap();
    let words = |text: &str| FakeServer::new("fx").tool(tool("t")).instructions(text);
    run("pins = 'block'", &words("Be brief."), folder.path()).await;
    for (text, is_shown) in [("Be brief.", true), (CANARY, false)] {
        let (board, _handle) = open(fx("pins = 'block'"), &words(text), folder.path());
        assert_eq!(all_text(&board).await.contains(text), is_shown, "{text}");
        assert_eq!(board.status().servers[0].instructions.is_some(), is_shown);
        board.shutdown().await;
    }
    // Instructions where there were none.
    let other = tempfile::tempdir().unwrap();
    run("pins = 'block'", &server([tool("t")]), other.path()).await;
    let (board, _handle) = open(fx("pins = 'block'"), &words(CANARY), other.path());
    assert!(!all_text(&board).await.contains(CANARY));
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_mode_of_pins_decides_what_is_reported_and_what_is_held() {
    // The mode, the tools of the first run, those of a run in which `t` changed and `v` is new, and whether that run warns.
    for (settings, first, second, warns) in [
        ("pins = 'off'", &["t", "u"][..], &["t", "u", "v"][..], false),
        ("pins = 'warn'", &["t", "u"], &["t", "u", "v"], true),
        ("", &["t", "u"], &["t", "u", "v"], true),
        ("pins = 'block'", &["t", "u"], &["u"], true),
        ("pins = 'approve'", &[], &[], true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (names, _) = run(settings, &server([tool("t"), tool("u")]), folder.path()).await;
        assert_eq!(names, first, "{settings}");
        let later = server([tool("t").description("Does another."), tool("u"), tool("v")]);
        let (names, warnings) = run(settings, &later, folder.path()).await;
        assert_eq!(names, second, "{settings}");
        assert_eq!(!warnings.is_empty(), warns, "{settings}: {warnings:?}");
        // A setting at the top of the file is that of every server.
        let top = load(&format!(
            "{settings}\n[servers.fx]\ncommand = 'srv'\nargs = ['--fast']\n"
        ));
        let (board, _handle) = open(top, &later, folder.path());
        assert_eq!(list(&board.toolset()).await.0, second, "{settings}");
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_is_reported_by_default_until_it_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    run("", &server([tool("t")]), folder.path()).await;
    let changed = server([tool("t").description("Does another.")]);
    for _ in 0..2 {
        let (names, warnings) = run("", &changed, folder.path()).await;
        assert_eq!(names, ["t"]);
        let told = "fx: definitions changed since they were pinned: `t`; `pegboard pins diff fx` shows what they say, \
                    `pegboard pins accept fx` accepts it";
        assert_eq!(warnings, [told]);
    }
    let (board, _handle) = open(fx(""), &changed, folder.path());
    list(&board.toolset()).await;
    assert_eq!(board.accept_pins(&board.pin_changes()).unwrap(), 1);
    assert_eq!(list(&board.toolset()).await.1, Vec::<String>::new());
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_held_tool_is_no_command() {
    let folder = tempfile::tempdir().unwrap();
    run("pins = 'block'", &server([tool("t")]), folder.path()).await;
    let name = "x;$(touch y)";
    let (board, _handle) = open(fx("pins = 'block'"), &server([tool("t"), tool(name)]), folder.path());
    let tools = board.toolset();
    list(&tools).await;
    let reply = call(&tools, &format!("fx.{name}"), json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    let hint = reply.outcome.hint().unwrap().to_owned();
    assert!(!hint.contains("touch") && hint.contains("pins accept fx`"), "{hint}");
    board.shutdown().await;
}
