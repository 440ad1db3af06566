//! Output handles: spilled results, the tool that reads them, and handles as arguments.

use pegboard::{Kind, Outcome, ToolCall, config::Reading};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use crate::{results::fixtures::*, support::*};

fn fake() -> FakeServer {
    let items: Vec<Value> = (0..5000)
        .map(|n| json!({"id": n, "name": format!("item {n}")}))
        .collect();
    FakeServer::new("fx")
        .tool(Tool::new("log").answers_text(lines(10_000)))
        .tool(Tool::new("items").answers_structured(json!({ "items": items })))
        .tool(Tool::new("save").echoes())
}

#[tokio::test]
async fn a_model_reads_on_in_what_was_too_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = of_fakes([("fx", fake(), plain())]);
    let tools = board.toolset_with(view(folder.path()));
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 3);
    let reply = call(&tools, "fx.log", json!({})).await;
    assert!(reply.truncated && reply.original_bytes == lines(10_000).len());
    let handle = reply.handle.clone().expect("a handle");
    assert_contains(
        &reply.text(),
        &["line 1\n", "line 10000\n", &handle, "pegboard__read_output"],
    );

    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.tools.last().expect("tools").name, "pegboard__read_output");
    let range = call(
        &tools,
        "pegboard__read_output",
        json!({"handle": handle, "range": "5000-5001"}),
    )
    .await;
    assert_eq!(
        range.text(),
        "[lines 5000-5001 of 10000; go on with range \"5002-\"]\nline 5000\nline 5001\n"
    );
    let grep = call(
        &tools,
        "pegboard.read_output",
        json!({"handle": handle, "grep": "^line 77.7$"}),
    )
    .await;
    assert!(
        grep.text()
            .starts_with("[10 of 10 matching lines, of 10000 lines]\n7707: line 7707\n"),
        "{}",
        grep.text()
    );
    let all = call(&tools, "read_output", json!({"handle": handle, "range": "1-10000"})).await;
    assert!(all.text().len() <= 16 << 10, "a page is bounded");

    let handle = call(&tools, "fx.items", json!({})).await.handle.expect("a handle");
    let path = json!({"handle": handle, "jsonpath": "$.items[-1].name"});
    assert_eq!(
        call(&tools, "mcp__pegboard__read_output", path).await.text(),
        "[1 values]\n\"item 4999\"\n"
    );
}

/// Arguments that are not JSON are parsed for this tool too, and a typo in its name is corrected.
#[tokio::test]
async fn the_reader_takes_text_and_repaired_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = of_fakes([("fx", fake(), plain())]);
    let tools = board.toolset_with(view(folder.path()));
    let handle = call(&tools, "fx.log", json!({})).await.handle.expect("a handle");
    for (name, is_repaired) in [
        ("pegboard__read_output", false),
        ("read_output", false),
        ("functions.pegboard__read_output", true),
        ("Read-Output", true),
    ] {
        let text = format!("handle: {handle}, range: 5-5");
        let call = ToolCall::new(name).text(text).reading(Reading::Cascade);
        let reply = tools.call(call).await;
        assert_contains(&reply.text(), &["[lines 5-5 of 10000", "line 5\n"]);
        assert_eq!(reply.repaired.is_some(), is_repaired, "{name}");
    }
    let guided = tools.call(ToolCall::new("read_output").text(handle.as_str())).await;
    assert_contains(&guided.text(), &["line 1\n"]);
}

#[tokio::test]
async fn wrong_questions_are_answered_with_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = of_fakes([("fx", fake(), plain())]);
    let tools = board.toolset_with(view(folder.path()).always_list_read_output());
    assert_eq!(
        tools.list(PATIENCE).await.tools.len(),
        4,
        "it is listed from the start if that is wanted"
    );
    for (arguments, kind, words) in [
        (json!({}), Kind::InvalidArguments, "`handle` is missing"),
        (
            json!({"handle": "out_1"}),
            Kind::ToolError,
            "there is no output `out_1`",
        ),
        (
            json!({"handle": "out_1", "range": "1-2", "grep": "x"}),
            Kind::InvalidArguments,
            "only one of",
        ),
        (
            json!({"handle": "out_1", "range": "x"}),
            Kind::InvalidArguments,
            "not a range",
        ),
    ] {
        let reply = call(&tools, "pegboard__read_output", arguments).await;
        assert_eq!(reply.outcome.kind(), kind, "{}", reply.text());
        assert_contains(&reply.text(), &[words]);
    }
}

/// A page of 300 KB is passed from one tool to another without the model writing it.
#[tokio::test]
async fn a_handle_as_an_argument_becomes_what_it_stands_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = "0123456789 \"quoted\" é\n".repeat(15_000);
    let wiki = FakeServer::new("wiki").tool(Tool::new("get").answers_text(&page));
    let board = of_fakes([("wiki", wiki, plain()), ("fx", fake(), plain())]);
    let tools = board.toolset_with(view(folder.path()));
    let handle = call(&tools, "wiki.get", json!({})).await.handle.expect("a handle");
    let saved = call(&tools, "fx.save", json!({"title": "t", "body": {"$handle": handle}})).await;
    let saved = saved.handle.expect("it echoes all of it");
    let arguments = json!({"handle": saved, "jsonpath": "$.title"});
    assert_eq!(
        call(&tools, "read_output", arguments).await.text(),
        "[1 values]\n\"t\"\n"
    );
    // The echo is the page, byte for byte: a part of a spilled output can be passed on too.
    let again = call(&tools, "fx.save", json!({"n": {"$handle": saved, "path": "$.body"}})).await;
    let again = call(
        &tools,
        "read_output",
        json!({"handle": again.handle, "grep": "0123456789 \\\\\"quoted\\\\\" é"}),
    )
    .await;
    assert!(again.text().contains("quoted"), "{}", again.text());

    let wrong = call(&tools, "fx.save", json!({"body": {"$handle": "out_0"}})).await;
    assert_outcome(&wrong, Kind::InvalidArguments, false);
}

#[tokio::test]
async fn another_toolset_cannot_read_a_handle() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = of_fakes([("fx", fake(), plain())]);
    let (ours, theirs) = (
        board.toolset_with(view(folder.path())),
        board.toolset_with(view(folder.path())),
    );
    let handle = call(&ours, "fx.log", json!({})).await.handle.expect("a handle");
    call(&theirs, "fx.log", json!({})).await;
    let tried = call(&theirs, "read_output", json!({"handle": handle})).await;
    assert!(matches!(tried.outcome, Outcome::ToolFailed(_)), "{}", tried.text());
    let tried = call(&theirs, "fx.save", json!({"x": {"$handle": handle}})).await;
    assert_outcome(&tried, Kind::InvalidArguments, false);
    assert!(
        !call(&ours.clone(), "read_output", json!({"handle": handle}))
            .await
            .is_error()
    );
}

#[tokio::test]
async fn outputs_go_with_their_toolset() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = of_fakes([("fx", fake(), plain())]);
    let closed = board.toolset_with(view(folder.path()));
    call(&closed, "fx.log", json!({})).await;
    let dropped = board.toolset_with(view(folder.path()));
    call(&dropped, "fx.log", json!({})).await;
    assert_eq!(folders(folder.path()), 2);
    closed.close().await;
    assert_eq!(folders(folder.path()), 1);
    assert_outcome(&call(&closed, "fx.log", json!({})).await, Kind::Unavailable, false);
    drop(dropped);
    assert_eq!(folders(folder.path()), 0);
}

#[tokio::test]
async fn the_tool_takes_nobodys_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let theirs = FakeServer::new("pegboard").tool(Tool::new("read_output").answers_text("theirs"));
    let board = of_fakes([("pegboard", theirs, plain()), ("fx", fake(), plain())]);
    let tools = board.toolset_with(view(folder.path()));
    let reply = call(&tools, "fx.log", json!({})).await;
    assert_contains(&reply.text(), &["pegboard-2__read_output"]);
    let arguments = json!({"handle": reply.handle, "range": "3-3"});
    assert_contains(
        &call(&tools, "pegboard-2__read_output", arguments.clone()).await.text(),
        &["line 3"],
    );
    for name in ["pegboard__read_output", "pegboard.read_output", "read_output"] {
        assert_eq!(call(&tools, name, arguments.clone()).await.text(), "theirs", "{name}");
    }
}
