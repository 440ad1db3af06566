//! Semantic tool search with embeddings.

use std::{future::Future, pin::Pin, time::Duration};

use pegboard::{Config, Pegboard, Toolset, View, toolset::Embedder};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An embedder that maps a text to the topics it is about, in whatever words.
#[derive(Clone, Copy)]
struct Topics {
    takes: Duration,
    fails: bool,
}

const TOPICS: [&[&str]; 3] = [
    &["invoice", "money", "owe"],
    &["weather", "umbrella", "forecast"],
    &["employee", "colleague", "staff"],
];

impl Embedder for Topics {
    fn embed(&self, texts: Vec<String>) -> Boxed<'_, Result<Vec<Vec<f32>>, String>> {
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            if self.fails {
                return Err("the model is away".to_owned());
            }
            let vector = |text: &String| {
                let text = text.to_lowercase();
                let about = |words: &&[&str]| words.iter().any(|word| text.contains(word));
                TOPICS
                    .iter()
                    .map(|words| if about(words) { 1.0 } else { 0.1 })
                    .collect()
            };
            Ok(texts.iter().map(vector).collect())
        })
    }
}

const TOPICAL: Topics = Topics {
    takes: Duration::ZERO,
    fails: false,
};

fn offers() -> FakeServer {
    let tool = |name: &str, words: &str| Tool::new(name).description(words);
    FakeServer::new("fx")
        .tool(tool("get_forecast", "Tells what the sky will do."))
        .tool(tool("list_invoices", "Bills that are open."))
        .tool(tool("find_employee", "Looks somebody up."))
}

async fn names(tools: &Toolset, question: &str) -> Vec<String> {
    tools.list(PATIENCE).await;
    let found = tools.search(question, 5).await;
    found.into_iter().map(|found| found.tool.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_shares_no_word_with_the_question_is_found_by_its_meaning() {
    let (board, _handle) = in_memory(&offers());
    let question = "shall I take an umbrella";
    assert!(names(&board.toolset(), question).await.is_empty());
    let tools = board.toolset_with(View::new().embedder(TOPICAL).tool_budget(1));
    assert_eq!(names(&tools, question).await[0], "fx__get_forecast");
    let found = call(&tools, "find_tools", json!({"query": question, "limit": 1})).await;
    assert_contains(&found.text(), &["fx__get_forecast: Tells what"]);
    assert_eq!(found.text().lines().count(), 1);
    // `find` searches the text only.
    assert!(tools.find(question, 5).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fits_in_words_and_in_meaning_comes_first() {
    let (board, _handle) = in_memory(&offers());
    let tools = board.toolset_with(View::new().embedder(TOPICAL));
    assert_eq!(
        names(&tools, "open bills, who does owe us money").await[0],
        "fx__list_invoices"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_fails_or_takes_too_long_leaves_the_words() {
    for (takes, fails, waited) in [(0, true, 0), (3600, false, 5)] {
        let (board, _handle) = in_memory(&offers());
        let embedder = Topics {
            takes: secs(takes),
            fails,
        };
        let tools = board.toolset_with(View::new().embedder(embedder));
        tools.list(PATIENCE).await;
        let started = Instant::now();
        assert_eq!(names(&tools, "forecast").await, ["fx__get_forecast"]);
        assert_eq!(started.elapsed(), secs(waited));
        // After a failure the embedder is not used for a while.
        assert_eq!(names(&tools, "forecast").await, ["fx__get_forecast"]);
        assert_eq!(started.elapsed(), secs(waited));
    }
}

#[tokio::test(start_paused = true)]
async fn the_boards_embedder_is_for_all_views() {
    let (_first, handle) = offers().connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer(&handle))
        .embedder(TOPICAL)
        .open();
    assert_eq!(names(&board.toolset(), "a colleague").await[0], "fx__find_employee");
}
