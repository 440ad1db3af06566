//! When long results are summarised, and by which model.

use pegboard::{
    Reply,
    summary::{Summariser, Summary, SummaryRequest},
};
use pegboard_testkit::{FakeServer, ScriptedModel, Tool};
use serde_json::json;
use tokio::time::Instant;

use crate::{settings::fixtures::*, support::*};

/// A summariser that takes half a minute.
struct Slow;

impl Summariser for Slow {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest<'a>) -> Summary<'a> {
        Box::pin(async {
            tokio::time::sleep(secs(30)).await;
            Ok(format!("in short, up to {} tokens", request.max_tokens))
        })
    }
}

/// About 1000 tokens.
fn long() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("long").answers_text("word ".repeat(800)))
}

async fn presented(settings: &str) -> Reply {
    let stage = Stage::new(settings, &long());
    let (tools, _folder) = stage.spilling(|view| view.summariser(Slow));
    call(&tools, "fx.long", json!({})).await
}

#[tokio::test(start_paused = true)]
async fn a_result_from_the_threshold_on_is_summarised() {
    for (settings, is_summarised) in [
        ("", false),
        ("summarise = true", false),
        ("summarise = { threshold_tokens = 500 }", true),
        ("summarise = { threshold_tokens = 2000 }", false),
        ("summarise = { threshold_tokens = 500, enabled = false }", false),
    ] {
        let text = presented(settings).await.text();
        assert_eq!(text.contains("in short"), is_summarised, "{settings}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_is_told_the_size_of_the_summary() {
    let reply = presented("summarise = { threshold_tokens = 500, max_tokens = 77 }").await;
    assert_contains(&reply.text(), &["up to 77 tokens"]);
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_waited_for_until_its_timeout() {
    for (timeout, is_summarised, seconds) in [("7s", false, 7), ("40s", true, 30)] {
        let began = Instant::now();
        let reply = presented(&format!(
            "summarise = {{ threshold_tokens = 500, timeout = '{timeout}' }}"
        ))
        .await;
        assert_eq!(
            reply.text().contains("in short"),
            is_summarised,
            "timeout = {timeout}: {}",
            reply.text()
        );
        assert_eq!(began.elapsed().as_secs(), seconds, "timeout = {timeout}");
    }
}

#[tokio::test]
async fn summaries_are_written_by_the_model_of_the_config() {
    let model = ScriptedModel::new().says("in short").serve().await.unwrap();
    let settings = format!(
        "summarise = {{ threshold_tokens = 500, url = '{}', model = 'small', api_key = 's3cr3t-k3y' }}",
        model.url()
    );
    let text = format!("[servers.fx]\ncommand = 'in-process'\n{settings}\n");
    let loaded = pegboard::Config::from_text(&text, pegboard::Format::Toml, &pegboard::Env::new(|_| None));
    assert_eq!(loaded.errors().count(), 0, "{text}");
    let stage = Stage::of_config(loaded.config, &long());
    let (tools, _folder) = stage.spilling(|view| view);
    let reply = call(&tools, "fx.long", json!({})).await;
    assert_contains(&reply.text(), &["in short"]);
    let request = &model.requests()[0];
    assert_eq!(
        (&request["model"], &request["authorization"]),
        (&json!("small"), &json!("Bearer s3cr3t-k3y"))
    );
}
