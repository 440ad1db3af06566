//! What becomes of results: their size and their form.

use pegboard::{Kind, Outcome, Reply};
use pegboard_testkit::{Answer, Block, FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

async fn presented(settings: &str, tool: Tool) -> Reply {
    let stage = Stage::new(settings, &FakeServer::new("fx").tool(tool));
    let (tools, _folder) = stage.spilling(|view| view);
    call(&tools, "fx.t", json!({})).await
}

/// A hundred lines, 800 bytes together.
fn lines() -> Tool {
    Tool::new("t").answers_text((100..200).map(|n| format!("row {n}\n")).collect::<String>())
}

#[tokio::test(start_paused = true)]
async fn a_result_above_a_limit_is_truncated() {
    for (settings, is_truncated) in [
        ("", false),
        ("max_result = 700", true),
        ("max_result = 900", false),
        ("tools.t.max_result = 700", true),
        ("tools.other.max_result = 700", false),
        ("result = { max_bytes = 700 }", true),
        ("tools.t.result = { max_bytes = 700 }", true),
        ("result = { max_lines = 90 }", true),
        ("result = { max_lines = 110 }", false),
        ("result = { max_tokens = 180 }", true),
        ("result = { max_tokens = 220 }", false),
    ] {
        let reply = presented(settings, lines()).await;
        assert_eq!(reply.truncated, is_truncated, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_mode_says_what_becomes_of_a_long_result() {
    for (mode, has_handle, has_tail, kind) in [
        ("head", false, false, Kind::Ok),
        ("head_tail", false, true, Kind::Ok),
        ("spill", true, true, Kind::Ok),
        ("error", false, false, Kind::LimitExceeded),
    ] {
        let reply = presented(&format!("result = {{ max_bytes = 700, mode = '{mode}' }}"), lines()).await;
        let shown = (
            reply.handle.is_some(),
            reply.text().contains("row 199"),
            reply.outcome.kind(),
        );
        assert_eq!(shown, (has_handle, has_tail, kind), "{mode}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_raises_the_limit_up_to_the_ceiling() {
    let tool = lines().with("_meta", json!({"anthropic/maxResultSizeChars": 5000}));
    for (settings, is_truncated) in [
        ("result = { max_bytes = 700 }", true),
        ("result = { max_bytes = 700, ceiling = 750 }", true),
        ("result = { max_bytes = 700, ceiling = 2000 }", false),
    ] {
        assert_eq!(
            presented(settings, tool.clone()).await.truncated,
            is_truncated,
            "{settings}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_blocks_of_a_result_are_joined() {
    let tool = Tool::new("t").answers_blocks([Block::text("a"), Block::text("b")]);
    for (join, expected) in [
        ("newline", "a\nb"),
        ("empty_line", "a\n\nb"),
        ("nothing", "ab"),
        ("first", "a"),
    ] {
        let reply = presented(&format!("result = {{ join = '{join}' }}"), tool.clone()).await;
        assert_eq!(reply.text(), expected, "{join}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_form_of_a_result_that_is_its_text_is_chosen() {
    let result = json!({"content": [{"type": "text", "text": "plain"}], "structuredContent": {"n": 1}});
    let tool = Tool::new("t").answers(Answer::Result(result));
    for (settings, expected) in [
        ("", "plain"),
        ("structured = 'structured_first'", r#"{"n":1}"#),
        ("result = { structured = 'structured_first' }", r#"{"n":1}"#),
        ("tools.t.structured = 'structured_first'", r#"{"n":1}"#),
        ("tools.other.structured = 'structured_first'", "plain"),
        (
            "structured = 'structured_first'\ntools.t.structured = 'content_only'",
            "plain",
        ),
    ] {
        assert_eq!(presented(settings, tool.clone()).await.text(), expected, "{settings}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_is_fenced_and_cleaned() {
    let tool = Tool::new("t").answers_text("zero\u{200b}width");
    for (settings, is_fenced, is_clean) in [
        ("result = { fence = true, clean = false }", true, false),
        ("result = { fence = false, clean = true }", false, true),
        ("result = { clean = true }\ntrust = true", false, false),
    ] {
        let text = presented(settings, tool.clone()).await.text();
        assert_eq!(text.starts_with("<untrusted-"), is_fenced, "{settings}: {text}");
        assert_eq!(!text.contains('\u{200b}'), is_clean, "{settings}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn images_stay_blocks_or_are_spilled() {
    for (images, expected) in [("keep", 1), ("spill", 0)] {
        let tool = Tool::new("t").answers_blocks([Block::image()]);
        let reply = presented(&format!("result = {{ images = '{images}' }}"), tool).await;
        assert_eq!(image_blocks(&reply), expected, "images = {images}: {}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn images_in_a_text_are_searched() {
    let data = format!("iVBORw0KGgo{}", "QUFB".repeat(1000));
    let tool = Tool::new("t").answers_text(format!(r#"{{"screenshot": "{data}"}}"#));
    for (settings, expected) in [
        ("result = { find_images = true }", 1),
        ("result = { find_images = false }", 0),
    ] {
        assert_eq!(
            image_blocks(&presented(settings, tool.clone()).await),
            expected,
            "{settings}"
        );
    }
}

fn image_blocks(reply: &Reply) -> usize {
    let Outcome::Done(answer) = &reply.outcome else {
        panic!("{}", reply.text())
    };
    let is_image = |content: &&pegboard::Content| matches!(content, pegboard::Content::Image { .. });
    answer.content.iter().filter(is_image).count()
}
