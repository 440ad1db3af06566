//! Row `result join / limit`: what a model gets of a result.

use pegboard::{
    Outcome, View,
    summary::{Summariser, Summary, SummaryRequest},
};
use pegboard_testkit::{Block, FakeServer, Tool};
use serde_json::json;

use crate::{presets::fixtures::*, support::*};

/// Row `result join`: two text blocks and an image.
#[tokio::test(start_paused = true)]
async fn result_join() {
    let blocks = [Block::text("[1,"), Block::text("2]"), Block::image()];
    let fake = FakeServer::new("fx").tool(Tool::new("two").answers_blocks(blocks));
    for (preset, text) in row(["[1,\n2]", "[1,\n2]", "[1,2]", "[1,\n2]", "[1,\n2]", "[1,"]) {
        let stage = Stage::new(preset, "", &fake).await;
        let reply = stage.call("two").await;
        let got = reply.text();
        assert_eq!(got.starts_with("<untrusted-"), preset == "antwort", "{got}");
        let words = unfenced(&got).split("[image").next().unwrap().trim_end();
        assert_eq!(words, text, "{preset}");
        let Outcome::Done(answer) = reply.outcome else {
            panic!("{preset}: {got}")
        };
        // The blocks themselves are kept as well, for designs like goat's.
        assert_eq!(answer.content.len(), 3, "{preset}");
    }
}

/// Row `result limit`: which results are passed on whole, and which are spilled.
#[tokio::test(start_paused = true)]
async fn result_limit() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [12_288, 12_289, 48 << 10, (48 << 10) + 1];
    let fake = FakeServer::new("fx").tools(
        sizes
            .iter()
            .map(|size| Tool::new(size.to_string()).answers_text("x".repeat(*size))),
    );
    let (ours, small) = ([true, true, true, false], [true, false, false, false]);
    for (preset, whole) in row([ours, ours, small, ours, ours, ours]) {
        let stage = Stage::new(preset, "", &fake).await;
        let mut limits = pegboard::toolset::SpillLimits::default();
        limits.folder = Some(folder.path().to_owned());
        let tools = stage.board.toolset_with(View::new().spill(limits));
        for (size, whole) in sizes.iter().zip(whole) {
            let reply = call(&tools, &format!("fx.{size}"), json!({})).await;
            assert_eq!(reply.truncated, !whole, "{preset}: {size}");
            assert!(
                whole || reply.handle.is_some(),
                "{preset}: {size}: the rest can be read"
            );
        }
    }
}

struct Short;

impl Summariser for Short {
    fn summarise<'a>(&'a self, _: &'a SummaryRequest<'a>) -> Summary<'a> {
        Box::pin(async { Ok("in short".to_owned()) })
    }
}

/// Row `result limit`: tarsy summarises results over 5,000 tokens, if a summariser is configured.
#[tokio::test(start_paused = true)]
async fn result_summary() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("short").answers_text("x".repeat(4 * 4900)))
        .tool(Tool::new("long").answers_text("x".repeat(4 * 5100)));
    for (preset, summarises) in row([false, true, false, false, false, false]) {
        let stage = Stage::new(preset, "", &fake).await;
        let mut limits = pegboard::toolset::SpillLimits::default();
        limits.folder = Some(folder.path().to_owned());
        let tools = stage.board.toolset_with(View::new().spill(limits).summariser(Short));
        let short = call(&tools, "fx.short", json!({})).await;
        assert!(!short.text().contains("in short"), "{preset}");
        let long = call(&tools, "fx.long", json!({})).await;
        assert_eq!(long.text().contains("in short"), summarises, "{preset}");
        let threshold = policy(preset).summarise.map(|summarise| summarise.threshold_tokens);
        assert_eq!(threshold, summarises.then_some(5000), "{preset}");
    }
}
