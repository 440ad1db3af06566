//! The tools of widely used servers, defined for every provider and checked against that provider's documentation. `scripts/peers` installs
//! the servers. They only list their tools here, which needs no network.

mod openai;
mod others;
mod servers;
mod walk;

use std::collections::BTreeSet;

use pegboard::{NameStyle, Pegboard, Provider, View, name::NameRules};
use serde_json::Value;

use servers::{PATIENCE, board};

/// The smallest number of tools that makes a useful corpus.
const ENOUGH: usize = 300;

/// The definitions of all tools for a provider, and their names.
async fn defined(board: &Pegboard, provider: Provider) -> (Vec<Value>, Vec<String>) {
    let listing = board.toolset_with(View::new().provider(provider)).list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    let quarantined: Vec<&String> = listing
        .warnings
        .iter()
        .filter(|text| text.contains("is not offered"))
        .collect();
    assert!(quarantined.is_empty(), "{quarantined:?}");
    let names = listing.tools.iter().map(|tool| tool.name.clone()).collect();
    (listing.definitions(), names)
}

/// Servers that many people use do not look like attacks.
#[tokio::test]
async fn the_scanner_flags_hardly_any_tool_of_honest_servers() {
    let board = board();
    let listing = board.toolset().list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    let found = listing
        .tools
        .iter()
        .map(|listed| (listed.tool.dotted_name(), listed.tool.findings()));
    let flagged: Vec<_> = found.filter(|(_, findings)| !findings.is_empty()).collect();
    let all = listing.tools.len();
    assert!(all >= ENOUGH, "{all}");
    assert!(flagged.len() * 100 < all, "{} of {all}: {flagged:#?}", flagged.len());
    board.shutdown().await;
}

/// Every schema and name keeps to the provider's rules. The servers are started twice, and the definitions are byte-identical.
#[tokio::test]
async fn every_tool_keeps_to_the_rules_of_every_provider_in_every_run() {
    let mut first: Vec<String> = Vec::new();
    for run in 0..2 {
        let board = board();
        for (at, provider) in Provider::ALL.into_iter().enumerate() {
            let (tools, names) = defined(&board, provider).await;
            let bytes = serde_json::to_string(&tools).unwrap();
            if run > 0 {
                assert!(first[at] == bytes, "{provider}: another list in another run");
                continue;
            }
            first.push(bytes);
            assert!(names.len() >= ENOUGH, "{}", names.len());
            let different: BTreeSet<&String> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{provider}: two tools share a name");
            check(provider, &tools, names.len());
        }
        if run == 0 {
            check_styles(&board).await;
        }
        board.shutdown().await;
    }
}

fn check(provider: Provider, tools: &[Value], count: usize) {
    match provider {
        Provider::Mcp => others::mcp(tools, count),
        Provider::OpenAi => openai::chat(tools, count),
        Provider::OpenAiStrict => openai::strict(tools, count),
        Provider::OpenAiResponses => openai::responses(tools, count),
        Provider::Anthropic => others::anthropic(tools, count),
        Provider::Gemini => others::gemini(tools, count),
        Provider::GeminiJson => others::gemini_json(tools, count),
        Provider::Bedrock => others::bedrock(tools, count),
    }
}

/// In every naming style, real names keep to the strictest rules and stay distinct.
async fn check_styles(board: &Pegboard) {
    for style in ["dot", "dunder", "mcp_dunder", "mcp_single", "bare"] {
        let view = View::new()
            .naming(NameStyle::parse(style).unwrap())
            .name_rules(NameRules::STRICT);
        let listing = board.toolset_with(view).list(PATIENCE).await;
        let names: BTreeSet<&String> = listing.tools.iter().map(|tool| &tool.name).collect();
        assert_eq!(names.len(), listing.tools.len(), "{style}");
        for name in names {
            assert!(walk::is_name(name, 60, "_-", "_"), "{style}: {name}");
        }
    }
}
