//! Which tools are listed and called, and what a model and a person are told about them.

use pegboard::{
    Grants, Kind, View,
    approval::{Decision, Question},
    catalog::Instructions,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

fn three() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read_a").read_only())
        .tool(Tool::new("read_b"))
        .tool(Tool::new("write").destructive())
}

#[tokio::test(start_paused = true)]
async fn tools_are_shown_and_hidden_by_globs_and_by_their_own_setting() {
    for (settings, expected) in [
        ("allow = ['read_*']", &["read_a", "read_b"][..]),
        ("deny = ['read_*']", &["write"]),
        ("allow = ['READ_*']", &[]),
        ("allow = ['READ_*']\ncase_insensitive = true", &["read_a", "read_b"]),
        ("tools.write.enabled = false", &["read_a", "read_b"]),
        ("tools.'read_*'.enabled = false", &["write"]),
    ] {
        let stage = Stage::new(settings, &three());
        assert_eq!(stage.listed().await, expected, "{settings}");
        for tool in ["read_a", "read_b", "write"] {
            assert_eq!(
                stage.call(tool).await.is_error(),
                !expected.contains(&tool),
                "{settings}: {tool}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_requires_capabilities_of_the_view() {
    let stage = Stage::new("tools.write.requires = ['deploy']", &three());
    for (words, expected) in [(&["fx", "deploy"][..], Kind::Ok), (&["fx"], Kind::NotPermitted)] {
        let grants = Grants::from_words(words.iter().copied().chain(["mcp_integration"]));
        let tools = stage.board.toolset_with(View::new().grants(grants));
        let reply = call(&tools, "fx.write", json!({})).await;
        assert_eq!(reply.outcome.kind(), expected, "{words:?}: {}", reply.text());
    }
}

/// Which of the three tools a person is asked about.
async fn asked(settings: &str) -> [bool; 3] {
    let stage = Stage::new(settings, &three());
    let refuse = |_: &Question<'_>| Decision::Refused("not today".into());
    let tools = stage.board.toolset_with(View::new().approver(refuse));
    let mut asked = [false; 3];
    for (tool, asked) in ["fx.read_a", "fx.read_b", "fx.write"].into_iter().zip(&mut asked) {
        *asked = call(&tools, tool, json!({})).await.outcome.kind() == Kind::NotPermitted;
    }
    asked
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_about_the_calls_that_need_approval() {
    for (settings, expected) in [
        ("", [false, false, false]),
        ("approval = 'always'", [true, true, true]),
        ("approval = 'writes'", [true, true, true]),
        ("approval = 'writes'\ntrust = true", [false, true, true]),
        ("approval = 'always'\napproval_exempt = ['read_b']", [true, false, true]),
        ("tools.write.approval = 'always'", [false, false, true]),
        (
            "approval = 'always'\ntools.'read_*'.approval = 'auto'",
            [false, false, true],
        ),
    ] {
        assert_eq!(asked(settings).await, expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_another_server_crosses_as_the_config_says() {
    let vault = "[servers.vault]\nurl = 'https://vault.invalid/mcp'\nauth = { bearer = 't0ken-of-the-vault' }\nenabled = false\n";
    let arguments = json!({"text": "it is t0ken-of-the-vault"});
    for (settings, kind, sent, warnings) in [
        ("", Kind::NotPermitted, None, 0),
        ("crossing = 'block'", Kind::NotPermitted, None, 0),
        ("crossing = 'mask'", Kind::Ok, Some("it is [MASKED_SECRET]"), 1),
        ("crossing = 'warn'", Kind::Ok, Some("it is t0ken-of-the-vault"), 1),
        ("crossing = 'allow'", Kind::Ok, Some("it is t0ken-of-the-vault"), 0),
    ] {
        let stage = Stage::of_file("", &format!("{settings}\n{vault}"), &three());
        let reply = stage.call_with("write", arguments.clone()).await;
        assert_eq!(reply.outcome.kind(), kind, "{settings}: {}", reply.text());
        assert_eq!(reply.warnings.len(), warnings, "{settings}: {:?}", reply.warnings);
        let calls = stage.handle.requests();
        let call = calls.iter().find(|request| request.method == "tools/call");
        let text = call.and_then(|call| call.params["arguments"]["text"].as_str());
        assert_eq!(text, sent, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_given_the_instructions_of_a_server_and_of_its_tools() {
    let settings = "instructions = 'For issues only.'\ntools.write.instructions = 'Ask first.'";
    let stage = Stage::new(settings, &three());
    stage.tools.list(PATIENCE).await;
    let text = stage.tools.instructions(&Instructions::default());
    assert_contains(&text, &["For issues only.", "`fx__write`: Ask first."]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_listed_can_be_described() {
    let settings =
        "tool_schemas.hidden = { description = 'Described.', inputSchema = { type = 'object', required = ['a'] } }";
    let stage = Stage::new(settings, &three());
    assert_eq!(
        stage.listed().await,
        ["hidden", "read_a", "read_b", "write"],
        "{settings}"
    );
    assert_eq!(stage.call("hidden").await.outcome.kind(), Kind::InvalidArguments);
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_always_loaded_are_listed_beside_the_search() {
    for (settings, expected) in [("", 0), ("always_load = ['read_*']", 2)] {
        let many = (0..500).map(|n| Tool::new(format!("other_{n}")));
        let stage = Stage::new(settings, &three().tools(many));
        let tools = stage.board.toolset_with(View::new().tool_budget(2000));
        let listing = tools.list(PATIENCE).await;
        let listed = listing.tools.iter().filter(|listed| listed.name.starts_with("fx__"));
        assert_eq!(listed.count(), expected, "{settings}");
    }
}
