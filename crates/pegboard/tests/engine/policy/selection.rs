//! Selections: the servers and tools for one piece of work.

use std::sync::Arc;

use pegboard::{Arguments, Hint as _, Kind, Provider, Selection, ToolCall, View};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{
    policy::board::{Fake, board, fake, listed},
    support::*,
};

fn fakes() -> [Fake; 3] {
    let offers = |tools: &[&str]| FakeServer::new("fx").tools(tools.iter().map(|name| Tool::new(*name)));
    [
        fake("argocd", &offers(&["get_application_status", "sync"]))
            .with(|config| config.start = pegboard::config::Start::Lazy),
        fake("github", &offers(&["search", "sync"])).with(|config| config.start = pegboard::config::Start::Lazy),
        fake("k8s", &offers(&["get_pods", "delete_pod"])).with(|config| {
            config.start = pegboard::config::Start::Lazy;
            config.deny = vec!["delete_pod".into()];
        }),
    ]
}

fn tarsy() -> Selection {
    let json = r#"{"servers":[{"name":"k8s"},{"name":"argocd","tools":["get_application_status"]}],"native_tools":{"google_search":false}}"#;
    Selection::parse(json).expect("a selection")
}

#[tokio::test(start_paused = true)]
async fn a_selection_takes_the_place_of_all_servers_and_tools() {
    let (board, [_, github, _]) = board(fakes());
    board.check_selection(&tarsy()).unwrap();
    let tools = board.toolset_with(View::new().selection(tarsy()));
    // A tool that the config denies stays denied.
    assert_eq!(listed(&tools).await, ["argocd.get_application_status", "k8s.get_pods"]);
    assert_eq!(call(&tools, "k8s.get_pods", json!({})).await.text(), "ok");

    let reply = call(&tools, "argocd.sync", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_eq!(
        reply.text(),
        "tool `sync` of server `argocd` is not part of the selection. Available tools of server `argocd`: get_application_status."
    );
    assert_eq!(
        (reply.server, reply.tool.as_deref()),
        (Some(name("argocd")), Some("sync"))
    );

    let reply = call(&tools, "github.search", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_eq!(
        reply.text(),
        "server `github` is not part of the selection. Available servers: argocd, k8s."
    );
    assert_eq!(
        (reply.server, reply.tool.as_deref()),
        (Some(name("github")), Some("search"))
    );
    assert_eq!(
        github.count("initialize"),
        0,
        "a server that is not selected is not started"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_server_is_an_error_before_anything_starts_and_again_at_use() {
    let (board, handles) = board(fakes());
    let selection = Selection::new().server("k8s").server("jenkins").tools("grafana", ["x"]);
    let problem = board.check_selection(&selection).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "the selection names `jenkins`, `grafana`, and there is no such server"
    );
    assert_eq!(problem.hint().unwrap(), "the servers are argocd, github, k8s");

    let tools = board.toolset_with(View::new().selection(selection));
    let reply = call(&tools, "k8s.get_pods", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_contains(&reply.text(), &["`jenkins`, `grafana`"]);
    // A tool that cannot be called is not listed, and no server is started for it.
    let listing = tools.list(PATIENCE).await;
    assert!(listing.tools.is_empty() && listing.unavailable.is_empty());
    assert_contains(&listing.warnings.join("\n"), &["`jenkins`, `grafana`"]);
    assert!(tools.find("pods", 5).is_empty());
    assert!(handles.iter().all(|handle| handle.count("initialize") == 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_removed_after_the_check_is_noticed_at_use() {
    let (board, _handles) = board(fakes());
    board.check_selection(&tarsy()).unwrap();
    let tools = board.toolset_with(View::new().selection(tarsy()));
    assert_eq!(call(&tools, "k8s.get_pods", json!({})).await.text(), "ok");
    board.disconnect(&name("argocd")).await;
    assert_outcome(
        &call(&tools, "k8s.get_pods", json!({})).await,
        Kind::NotPermitted,
        false,
    );
    assert!(listed(&tools).await.is_empty());
}

/// A model reads results, not hints: the text lists the available tools, for every provider.
#[tokio::test(start_paused = true)]
async fn a_model_is_told_in_the_result_what_it_may_use_instead() {
    let many: Vec<Tool> = (0..30).map(|number| Tool::new(format!("t{number:02}"))).collect();
    let (board, _handles) = board([
        fake("many", &FakeServer::new("many").tools(many)).with(|config| config.deny = vec!["t01".into()]),
        fake("other", &FakeServer::new("other").tool(Tool::new("x"))),
    ]);
    let globs = (0..25).map(|number| format!("t{number:02}"));
    let tools = board.toolset_with(View::new().selection(Selection::new().tools("many", globs)));
    tools.list(PATIENCE).await;
    for (tool, words) in [
        ("many.t29", "Available tools of server `many`: t00, t02, "),
        ("many.t29", "t20 and 4 more."),
        (
            "many.t01",
            "the config hides it. Available tools of server `many`: t00, t02",
        ),
        ("other.x", "Available servers: many."),
        ("nobody.x", "Available servers: many."),
    ] {
        let reply = call(&tools, tool, json!({})).await;
        let result = Provider::Anthropic.tool_result(&reply).to_string();
        assert_contains(&result, &[words]);
        assert!(!result.contains("`deny`"), "{result}");
        assert!(reply.text().len() < 300, "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_brings_a_selection_of_its_own() {
    let (board, _handles) = board(fakes());
    let tools = board.toolset_with(View::new().selection(tarsy()));
    let call = |name: &str, selection: &Arc<Selection>| {
        let call = ToolCall::new(name)
            .arguments(Arguments::default())
            .selection(selection.clone());
        let tools = tools.clone();
        async move { tools.call(call).await }
    };
    let github = Arc::new(Selection::new().server("github"));
    assert_eq!(call("github.search", &github).await.text(), "ok");
    // A bare name resolves within the selection, where only one server has it.
    assert_eq!(call("sync", &github).await.name, "github.sync");
    assert_outcome(&call("k8s.get_pods", &github).await, Kind::NotPermitted, false);
    // The config's deny list overrides every selection.
    let k8s = Arc::new(Selection::new().tools("k8s", ["delete_pod"]));
    assert_outcome(&call("k8s.delete_pod", &k8s).await, Kind::NotPermitted, false);
    assert_outcome(
        &call("github.search", &Arc::new(Selection::new())).await,
        Kind::NotPermitted,
        false,
    );
    for number in 0..20 {
        let many = Arc::new(Selection::new().server("github").native_tool(number.to_string(), true));
        assert_eq!(call("github.search", &many).await.text(), "ok");
    }
    assert_outcome(
        &crate::support::call(&tools, "github.search", json!({})).await,
        Kind::NotPermitted,
        false,
    );
}

#[tokio::test(start_paused = true)]
async fn a_selected_tool_that_does_not_exist_is_warned_about() {
    let (board, _handles) = board(fakes());
    let selection = Selection::new().tools("argocd", ["get_*", "rollback"]);
    let tools = board.toolset_with(View::new().selection(selection));
    let listing = tools.list(PATIENCE).await;
    assert_eq!(
        listing.warnings,
        ["the selection names `argocd.rollback`, and the server has no such tool"]
    );
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_are_those_of_the_selected_and_granted_servers() {
    let server = FakeServer::new("fx").resource("file:///r", "text").prompt("p", "text");
    let (board, _handles) = board([fake("a", &server), fake("b", &server)]);
    let words = |word: &str| View::new().grants(pegboard::Grants::from_words([word]));
    for (view, a, b) in [
        (View::new(), true, true),
        (View::new().selection(Selection::new().server("a")), true, false),
        (words("mcp_b"), false, true),
        (words("mcp_integration"), true, true),
        (words("mcp_a_t"), false, false),
    ] {
        let tools = board.toolset_with(view.clone());
        for (server, expected) in [("a", a), ("b", b)] {
            let read = tools.read_resource(&name(server), "file:///r").await;
            assert_eq!(read.is_ok(), expected, "{server} under {view:?}: {read:?}");
            let got = tools.get_prompt(&name(server), "p", &serde_json::Map::new()).await;
            assert_eq!(
                got.err().map(|failure| failure.kind),
                (!expected).then_some(Kind::NotPermitted)
            );
        }
    }
}
