//! Capabilities that are granted to an agent, on a real board.

use pegboard::{Grants, Kind, View};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{
    policy::board::{Fake, board, fake, listed},
    support::*,
};

fn fakes() -> [Fake; 3] {
    let offers = |tools: &[&str]| FakeServer::new("fx").tools(tools.iter().map(|name| Tool::new(*name)));
    [
        fake("git", &offers(&["log"])),
        fake("git_hub", &offers(&["create_issue", "list_issues"])),
        fake("slack", &offers(&["post"])).with(|config| config.deny = vec!["post".into()]),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_agent_lists_and_calls_what_is_granted_and_nothing_else() {
    let all = ["git.log", "git_hub.create_issue", "git_hub.list_issues"];
    let granted = |words: &[&str]| Grants::from_words(words.iter().copied());
    for (grants, expected) in [
        (granted(&[]), &[][..]),
        (granted(&["mcp_integration"]), &all),
        (granted(&["mcp_git"]), &all[..1]),
        (granted(&["mcp_git_hub"]), &all[1..]),
        (granted(&["mcp_git_hub_list_issues"]), &all[2..]),
        (granted(&["mcp_git_log", "mcp_slack"]), &all[..1]),
        (Grants::new().everything(), &all),
        (Grants::new().server(name("git_hub")), &all[1..]),
        (Grants::new().tool(name("git_hub"), "create_*"), &all[1..2]),
    ] {
        let (board, _handles) = board(fakes());
        board.settle(PATIENCE).await;
        let tools = board.toolset_with(View::new().grants(grants.clone()));
        assert_eq!(listed(&tools).await, expected, "{grants:?}");
        for tool in all {
            let reply = call(&tools, tool, json!({})).await;
            let kind = if expected.contains(&tool) {
                Kind::Ok
            } else {
                Kind::NotPermitted
            };
            assert_eq!(reply.outcome.kind(), kind, "{tool} under {grants:?}: {}", reply.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_grants_that_would_do() {
    let (board, _handles) = board(fakes());
    board.settle(PATIENCE).await;
    let tools = board.toolset_with(View::new().grants(Grants::new()));
    let reply = call(&tools, "git.log", json!({})).await;
    assert_eq!(
        reply.text(),
        "tool `git.log` may not be used: it is not granted. Available servers: none."
    );
    assert_eq!((reply.server, reply.tool.as_deref()), (Some(name("git")), Some("log")));
    let some = board.toolset_with(View::new().grants(Grants::from_words(["mcp_git_hub_list_issues"])));
    let reply = call(&some, "git.log", json!({})).await;
    assert_contains(&reply.text(), &["it is not granted. Available servers: git_hub."]);
    assert_contains(
        reply.outcome.hint().unwrap(),
        &["`mcp_integration`, `mcp_git` and `mcp_git_log`"],
    );
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_could_mean_two_tools_is_warned_about_and_grants_neither() {
    let (board, _handles) = board([
        fake("git", &FakeServer::new("git").tool(Tool::new("hub_x"))),
        fake("git_hub", &FakeServer::new("git_hub").tool(Tool::new("x"))),
    ]);
    let tools = board.toolset_with(View::new().grants(Grants::from_words(["mcp_git_hub_x"])));
    let listing = tools.list(PATIENCE).await;
    assert!(listing.tools.is_empty());
    assert_contains(
        &listing.warnings.join("\n"),
        &["`mcp_git_hub_x` could mean `git.hub_x` or `git_hub.x`"],
    );
}
