//! Configured tools, for servers that cannot list theirs.

use pegboard::{Kind, ServerConfig, State};
use pegboard_testkit::{Era, FakeServer, Fault, Tool, When};
use serde_json::json;

use crate::support::*;

fn described() -> ServerConfig {
    set_to(|server| {
        let schema = json!({
            "description": "Adds.", "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
        });
        server.tool_schemas.insert("add".to_owned(), schema);
    })
}

fn adds() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("add").answers_text("3"))
}

fn refuses() -> Fault {
    Fault::AnswersError {
        code: -32601,
        message: "no listings here".into(),
        data: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_config_describes_is_listed_checked_and_called_without_a_listing() {
    for fault in [refuses(), Fault::NeverAnswers, Fault::RepeatedCursor] {
        let fake = adds().fault_on(When::method("tools/list"), fault);
        for era in [Era::Legacy, Era::Modern] {
            let (board, _handle) = in_memory_with(&fake.clone().era(era), described());
            let tools = board.toolset();
            let reply = call(&tools, "fx.add", json!({"a": "1"})).await;
            assert_eq!(reply.text(), "3", "{era:?}");
            let listing = tools.list(PATIENCE).await;
            assert_eq!(listing.tools.len(), 1);
            assert_eq!(listing.tools[0].tool.description.as_deref(), Some("Adds."));
            assert_eq!(listing.warnings.len(), 1, "{:?}", listing.warnings);
            let wrong = call(&tools, "fx.add", json!({"a": "x"})).await;
            assert_outcome(&wrong, Kind::InvalidArguments, false);
        }
    }
}

/// Without the capability the fake rejects calls, but it receives them.
#[tokio::test(start_paused = true)]
async fn a_server_without_the_capability_is_not_asked_for_a_listing_and_called_all_the_same() {
    let (board, handle) = in_memory_with(&adds().capabilities(json!({})), described());
    let tools = board.toolset();
    call(&tools, "fx.add", json!({"a": 1})).await;
    assert_eq!((handle.count("tools/list"), handle.count("tools/call")), (0, 1));
    let listing = tools.list(PATIENCE).await;
    assert_eq!((listing.tools.len(), listing.warnings.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_lists_wins_and_the_rest_is_added() {
    let fake = FakeServer::new("fx").tool(Tool::new("add").description("Listed."));
    let settings = set_to(|server| {
        for tool in ["add", "hidden"] {
            let said = json!({"description": "Described."});
            server.tool_schemas.insert(tool.to_owned(), said);
        }
    });
    let (board, _handle) = in_memory_with(&fake, settings);
    let listing = board.toolset().list(PATIENCE).await;
    let words: Vec<_> = listing
        .tools
        .iter()
        .map(|listed| (listed.name.as_str(), listed.tool.description.as_deref().unwrap()))
        .collect();
    assert_eq!(words, [("fx__add", "Listed."), ("fx__hidden", "Described.")]);
}

#[tokio::test(start_paused = true)]
async fn without_descriptions_a_server_that_cannot_list_is_down() {
    let (board, _handle) = in_memory_with(&adds().fault_on(When::method("tools/list"), refuses()), set_to(|_| {}));
    board.settle(PATIENCE).await;
    assert_eq!(board.status().servers[0].state, State::Down);
    // A server that dies during the listing is down in any case.
    let dies = adds().fault_on(When::method("tools/list"), Fault::DiesBeforeExecuting { code: 1 });
    let (board, _handle) = in_memory_with(&dies, described());
    board.settle(PATIENCE).await;
    assert_ne!(board.status().servers[0].state, State::Ready);
}
