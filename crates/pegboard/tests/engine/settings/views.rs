//! Named views: what each of their settings does to a toolset that is opened with the view.

use pegboard::{
    Kind, Toolset,
    approval::{Decision, Question},
    config::{Rate, TokenDigest},
};
use pegboard_testkit::{Answer, FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

fn three() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read_a").read_only().answers_text("a"))
        .tool(Tool::new("read_b").answers_text("b"))
        .tool(Tool::new("write").destructive().answers_text("w"))
}

/// A board whose view `v` has these settings, and a toolset of that view.
fn of_view(settings: &str, fake: &FakeServer) -> (Stage, Toolset) {
    let stage = Stage::of_file(&format!("[views.v]\n{settings}\n"), "", fake);
    let tools = stage.board.toolset_with(stage.board.configured_view("v").unwrap());
    (stage, tools)
}

async fn names(tools: &Toolset) -> Vec<String> {
    let listing = tools.list(PATIENCE).await;
    listing.tools.iter().map(|listed| listed.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_view_shows_some_servers_and_some_of_their_tools() {
    for (settings, expected) in [
        ("", &["fx__read_a", "fx__read_b", "fx__write"][..]),
        ("servers = ['fx']", &["fx__read_a", "fx__read_b", "fx__write"]),
        ("servers = ['o*', 'f?']", &["fx__read_a", "fx__read_b", "fx__write"]),
        ("servers = ['o*']", &[]),
        ("tools = ['read_*']", &["fx__read_a", "fx__read_b"]),
        ("tools = ['fx.write']", &["fx__write"]),
        ("servers = ['o*']\ntools = ['fx.write']", &[]),
        ("deny = ['write']", &["fx__read_a", "fx__read_b"]),
        ("tools = ['read_*']\ndeny = ['fx.*_b']", &["fx__read_a"]),
    ] {
        let (_stage, tools) = of_view(settings, &three());
        assert_eq!(names(&tools).await, expected, "{settings}");
        for tool in ["read_a", "read_b", "write"] {
            let reply = call(&tools, &format!("fx.{tool}"), json!({})).await;
            let is_shown = expected.contains(&format!("fx__{tool}").as_str());
            assert_eq!(reply.is_error(), !is_shown, "{settings}: {tool}: {}", reply.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_has_names_of_its_own() {
    let (stage, tools) = of_view("naming = 'bare'", &three());
    assert_eq!(names(&tools).await, ["read_a", "read_b", "write"]);
    assert_eq!(names(&stage.tools).await, ["fx__read_a", "fx__read_b", "fx__write"]);
}

#[tokio::test(start_paused = true)]
async fn a_view_with_a_small_budget_lists_the_tools_that_find_others() {
    for (settings, expected) in [
        (
            "budget = 1",
            &["pegboard__find_tools", "pegboard__describe_tool", "pegboard__call_tool"][..],
        ),
        ("budget = 100000", &["fx__read_a", "fx__read_b", "fx__write"]),
    ] {
        let (_stage, tools) = of_view(settings, &three());
        assert_eq!(names(&tools).await, expected, "{settings}");
    }
    let (_stage, tools) = of_view("budget = 1", &three());
    let reply = call(
        &tools,
        "pegboard__call_tool",
        json!({"name": "fx__read_a", "arguments": {}}),
    )
    .await;
    assert_eq!(reply.text(), "a");
}

/// The stricter of the view and the server decides.
#[tokio::test(start_paused = true)]
async fn a_view_asks_a_person_where_it_is_stricter_than_the_server() {
    for (of_view, of_server, expected) in [
        ("auto", "trust = true", [false, false, false]),
        ("writes", "trust = true", [false, true, true]),
        ("always", "trust = true", [true, true, true]),
        ("never", "trust = true", [true, true, true]),
        ("auto", "trust = true\napproval = 'writes'", [false, true, true]),
        ("writes", "trust = true\napproval = 'always'", [true, true, true]),
        ("writes", "trust = true\napproval_exempt = ['*']", [false, true, true]),
    ] {
        let top = format!("[views.v]\napproval = '{of_view}'\n");
        let stage = Stage::of_file(&top, of_server, &three());
        let refuse = |_: &Question<'_>| Decision::Refused("not today".into());
        let view = stage.board.configured_view("v").unwrap().approver(refuse);
        let tools = stage.board.toolset_with(view);
        let mut refused = [false; 3];
        for (tool, refused) in ["fx.read_a", "fx.read_b", "fx.write"].into_iter().zip(&mut refused) {
            *refused = call(&tools, tool, json!({})).await.outcome.kind() == Kind::NotPermitted;
        }
        assert_eq!(refused, expected, "{of_view}, {of_server}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_limits_results_as_it_says_or_as_their_server_says() {
    let fake = FakeServer::new("fx").tool(Tool::new("big").answers(Answer::Bytes(200_000)));
    let limit = "result = { max_bytes = 1000, mode = 'head' }";
    for (settings, server, most) in [
        // The default is for models that a program gives the results to.
        ("", "", None),
        ("", limit, Some(1100)),
        ("result = { max_bytes = 5000, mode = 'head' }", limit, Some(6000)),
        ("result = { max_bytes = '100KiB', mode = 'head' }", limit, Some(110_000)),
    ] {
        let stage = Stage::of_file(&format!("[views.v]\n{settings}\n"), server, &fake);
        let tools = stage.board.toolset_with(stage.board.configured_view("v").unwrap());
        let length = call(&tools, "fx.big", json!({})).await.text().len();
        match most {
            None => assert_eq!(length, 200_000, "{settings}"),
            Some(most) => assert!(length < most && length > most / 2, "{settings}: {length}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_grants_capabilities_and_offers_resources_to_its_clients() {
    let fake = three().resource("file:///a", "text of a");
    let server = "tools.write.requires = ['operator']";
    for (settings, shown) in [
        ("", &["fx__read_a", "fx__read_b"][..]),
        ("grants = ['operator']", &[]),
        (
            "grants = ['mcp_fx', 'operator']",
            &["fx__read_a", "fx__read_b", "fx__write"],
        ),
        ("grants = ['mcp_fx_read_a']", &["fx__read_a"]),
        ("grants = []", &[]),
    ] {
        let stage = Stage::of_file(&format!("[views.v]\n{settings}\n"), server, &fake);
        let tools = stage.board.toolset_with(stage.board.configured_view("v").unwrap());
        assert_eq!(names(&tools).await, shown, "{settings}");
    }
    for (settings, has_tools) in [("resource_tools = true", true), ("resource_tools = false", false)] {
        let (_stage, tools) = of_view(settings, &fake);
        let is_listed = names(&tools).await.contains(&"pegboard__read_resource".to_owned());
        assert_eq!(is_listed, has_tools, "{settings}");
        let reply = call(
            &tools,
            "pegboard__read_resource",
            json!({"server": "fx", "uri": "file:///a"}),
        )
        .await;
        assert_eq!(reply.text() == "text of a", has_tools, "{settings}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_spills_lists_the_tool_that_reads_the_rest() {
    let fake = FakeServer::new("fx").tool(Tool::new("big").answers(Answer::Bytes(20_000)));
    let (_stage, tools) = of_view("result = { max_bytes = 1000, mode = 'spill' }", &fake);
    assert!(names(&tools).await.contains(&"pegboard__read_output".to_owned()));
    let reply = call(&tools, "fx.big", json!({})).await;
    assert!(reply.text().len() < 5000, "{}", reply.text().len());
    assert!(reply.text().contains("read_output"), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn a_reload_brings_new_views_and_tokens_and_takes_old_ones_away() {
    let digest = TokenDigest::compute("pgb_t");
    let before = "[views.old]\ntools = ['read_*']\n";
    let after = format!(
        "[views.new]\ntools = ['write']\n[serve.tokens.ci]\nsha256 = '{digest}'\nview = 'new'\nrate = '5/s'\nconcurrent = 3\n\
         expires = '2900-01-01T00:00:00Z'\n"
    );
    let stage = Stage::of_file(before, "", &three());
    let snapshot = stage.board.gateway_settings();
    assert!(!snapshot.serve.requires_token());
    stage.board.apply(load(&after)).await;
    assert!(stage.board.configured_view("old").is_none());
    let tools = stage.board.toolset_with(stage.board.configured_view("new").unwrap());
    assert_eq!(names(&tools).await, ["fx__write"]);
    assert!(snapshot.views.contains_key("old"), "a snapshot does not change");
    let settings = stage.board.gateway_settings();
    let (name, token) = settings.serve.token("pgb_t").unwrap();
    assert_eq!((name, token.view.as_deref()), ("ci", Some("new")));
    assert_eq!(
        (token.rate, token.concurrent),
        (Some(Rate::parse("5/s").unwrap()), Some(3))
    );
}
