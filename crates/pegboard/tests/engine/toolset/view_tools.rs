//! Tools that a view adds, and which tool gets a name that several have.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pegboard::{
    Answer, Config, Grants, Kind, Listing, NameStyle, NativeTool, NativeTools, Pegboard, Provider, Secret, Selection,
    ServerConfig, ToolCall, Toolset, View,
    config::{Command, Transport},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::*;

/// A tool that answers with its owner.
fn says_whose(name: &str, whose: &'static str) -> NativeTool {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    NativeTool::new(name, "", schema, move |_| async move { Ok(Answer::from_text(whose)) })
}

fn brings<const N: usize>(names: [&str; N]) -> View {
    View::new().tools(NativeTools::new(names.map(|name| says_whose(name, "the view's"))))
}

fn server() -> FakeServer {
    let tool = |name: &str| Tool::new(name).answers_text("the server's");
    FakeServer::new("fx").tool(tool("read")).tool(tool("search"))
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn answers(tools: &Toolset, expected: &[(&str, &str)]) {
    for (name, whose) in expected {
        assert_eq!(call(tools, name, json!({})).await.text(), *whose, "{name}");
    }
}

/// A server of the config, a tool of the program, and one of the view: each takes precedence over those before it.
#[tokio::test]
async fn the_views_tool_comes_before_the_programs_and_that_before_the_servers() {
    let mut config = Config::default();
    config.servers.insert(name("fx"), process(&server()));
    let local = NativeTools::new([says_whose("search", "the program's")]);
    let board = Pegboard::builder(config).in_process(name("local"), local).open();

    let tools = board.toolset_with(View::new().naming(NameStyle::Bare));
    assert_eq!(names(&tools.list(PATIENCE).await), ["read", "fx__search", "search"]);
    answers(
        &tools,
        &[
            ("search", "the program's"),
            ("fx__search", "the server's"),
            ("fx.search", "the server's"),
        ],
    )
    .await;
    // A name that models do not see resolves in the same way.
    answers(&board.toolset(), &[("search", "the program's")]).await;

    let tools = board.toolset_with(brings(["search", "read"]).naming(NameStyle::Bare));
    assert_eq!(names(&tools.list(PATIENCE).await), ["read", "search", "fx__search"]);
    answers(
        &tools,
        &[
            ("search", "the view's"),
            ("local.search", "the view's"),
            ("fx.search", "the server's"),
            ("read", "the view's"),
            ("fx.read", "the view's"),
            ("mcp__fx__read", "the view's"),
        ],
    )
    .await;
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_view_tool_replaces_the_tool_that_a_model_sees_under_its_name() {
    let (board, handle) = in_memory(&server());
    let tools = board.toolset_with(brings(["fx__read", "basket"]));
    // The precedence holds before anything was listed.
    answers(&tools, &[("fx__read", "the view's"), ("fx.read", "the view's")]).await;
    let listing = tools.list(PATIENCE).await;
    assert_eq!(names(&listing), ["basket", "fx__read", "fx__search"]);
    assert_eq!(listing.definitions().len(), 3);
    answers(
        &tools,
        &[
            ("basket", "the view's"),
            ("request.basket", "the view's"),
            ("read", "the view's"),
            ("search", "the server's"),
        ],
    )
    .await;
    assert_eq!(handle.count("tools/call"), 1);
    // Other views do not have the tool.
    let others = board.toolset();
    assert_eq!(names(&others.list(PATIENCE).await), ["fx__read", "fx__search"]);
    answers(&others, &[("fx__read", "the server's")]).await;
    assert_outcome(&call(&others, "basket", json!({})).await, Kind::UnknownTool, false);
    assert_eq!(board.status().servers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_server_that_has_the_name_for_such_tools_keeps_it() {
    let (first, handle) = server().connect();
    drop(first);
    let board = Pegboard::builder(Config::default())
        .in_process(name("request"), dialer(&handle))
        .open();
    let tools = board.toolset_with(brings(["read"]));
    answers(
        &tools,
        &[
            ("read", "the view's"),
            ("request.read", "the server's"),
            ("request-2.read", "the view's"),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn native_tools_of_the_board_are_named_and_granted_like_those_of_a_server() {
    let local = NativeTools::new([says_whose("search", "the program's")]);
    let board = Pegboard::builder(Config::default())
        .in_process(name("local"), local)
        .open();
    for (grants, expected) in [
        (Grants::new(), &[][..]),
        (Grants::from_words(["mcp_local"]), &["mcp_local_search"]),
        (Grants::from_words(["mcp_integration"]), &["mcp_local_search"]),
    ] {
        let tools = board.toolset_with(View::new().grants(grants).naming(NameStyle::McpSingle));
        assert_eq!(names(&tools.list(PATIENCE).await), expected);
        let kind = call(&tools, "local.search", json!({})).await.outcome.kind();
        assert_eq!(kind == Kind::Ok, !expected.is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn filters_are_about_servers_but_what_is_denied_stays_denied() {
    let (board, _handle) = in_memory(&server());
    let selection = Selection::new().tools("fx", ["search"]);
    for (view, expected) in [
        (brings(["mine"]).allow(["fx.search"]), &["mine", "fx__search"][..]),
        (brings(["mine"]).selection(selection), &["mine", "fx__search"]),
        (
            brings(["mine", "other"]).deny(["mine", "read"]),
            &["other", "fx__search"],
        ),
        // They need no capability, and keep their names in every style.
        (brings(["mine"]).grants(Grants::new()), &["mine"]),
        (
            brings(["mine"]).grants(Grants::new()).naming(NameStyle::McpSingle),
            &["mine"],
        ),
    ] {
        let tools = board.toolset_with(view);
        assert_eq!(names(&tools.list(PATIENCE).await), expected);
        let mine = call(&tools, "mine", json!({})).await;
        let is_listed = expected.contains(&"mine");
        assert_eq!(
            mine.outcome.kind(),
            if is_listed { Kind::Ok } else { Kind::NotPermitted }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_results_and_checks_are_those_of_every_tool() {
    let (board, _handle) = in_memory(&server());
    board.hide([Secret::new("hunter2hunter2")]);
    let leaks = NativeTool::new("leaks", "", json!({"type": "object"}), |_| async {
        Ok(Answer::from_text(format!("hunter2hunter2 {}", "x".repeat(100_000))))
    });
    let view = brings(["n"])
        .tools(NativeTools::new([leaks]))
        .check(|proposed| match proposed.arguments.get("n") {
            Some(n) if n == 13 => Err("unlucky".to_owned()),
            _ => Ok(()),
        });
    let tools = board.toolset_with(view);
    assert_outcome(
        &call(&tools, "n", json!({"n": "many"})).await,
        Kind::InvalidArguments,
        false,
    );
    assert_outcome(&call(&tools, "n", json!({"n": 13})).await, Kind::NotPermitted, false);
    let reply = call(&tools, "leaks", json!({})).await;
    assert!(reply.truncated && reply.handle.is_some());
    assert_eq!(reply.masked, 1);
    assert!(!reply.text().contains("hunter2hunter2"));
    assert_eq!(
        (reply.name.as_str(), reply.server.clone().unwrap()),
        ("request.leaks", name("request"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_later_tool_of_one_name_counts_and_a_budget_hides_none() {
    let (board, _handle) = in_memory(&server());
    let view = brings(["a", "b"]).tools(NativeTools::new([says_whose("b", "the later")]));
    let tools = board.toolset_with(view.tool_budget(400).provider(Provider::OpenAi));
    let listing = tools.list(PATIENCE).await;
    assert!(
        names(&listing).starts_with(&["a", "b"]) || names(&listing).ends_with(&["a", "b"]),
        "{:?}",
        names(&listing)
    );
    answers(&tools, &[("a", "the view's"), ("b", "the later")]).await;
}

/// Notifies when it is dropped.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_it_is_given_up_and_when_the_view_ends() {
    let (board, _handle) = in_memory(&server());
    let (began, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    let slow = {
        let (began, ended, calls) = (began.clone(), ended.clone(), calls.clone());
        NativeTool::new("slow", "", json!({}), move |_| {
            calls.fetch_add(1, Ordering::SeqCst);
            let (began, tell) = (began.clone(), NotifyOnDrop(ended.clone()));
            async move {
                let _tell = tell;
                began.notify_one();
                std::future::pending::<Result<Answer, _>>().await
            }
        })
    };
    let tools = board.toolset_with(View::new().tools(NativeTools::new([slow])));
    tokio::select! {
        _ = tools.call(ToolCall::new("slow")) => unreachable!("it never ends"),
        () = began.notified() => {}
    }
    tokio::time::timeout(PATIENCE, ended.notified()).await.unwrap();

    let closing = async {
        began.notified().await;
        tools.close().await;
    };
    let (reply, ()) = tokio::join!(tools.call(ToolCall::new("slow")), closing);
    assert!(reply.is_error(), "{}", reply.text());
    tokio::time::timeout(PATIENCE, ended.notified()).await.unwrap();
    assert_outcome(&call(&tools, "slow", json!({})).await, Kind::Unavailable, false);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// A view whose last clone is dropped drops its tools too.
#[tokio::test(start_paused = true)]
async fn what_a_view_brought_goes_with_it() {
    let kept = Arc::new(());
    let held = kept.clone();
    let tool = NativeTool::new("t", "", json!({}), move |_| {
        let _held = held.clone();
        async { Ok(Answer::from_text("")) }
    });
    let mut off = ServerConfig::new(Transport::Stdio(Command::new("nobody")));
    off.enabled = false;
    let board = boards([("off", off)]);
    let tools = board.toolset_with(View::new().tools(NativeTools::new([tool])));
    call(&tools, "t", json!({})).await;
    assert!(Arc::strong_count(&kept) > 1);
    drop(tools);
    let gone = async {
        while Arc::strong_count(&kept) > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("nobody holds the tool");
}
