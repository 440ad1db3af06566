//! From an outcome to the caller's result: sizes, handles, summaries, and what is never shown.

mod fake_summariser;
mod summaries;

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    call::{View, result_options::ResultOptions},
    spill::SpillLimits,
};
use fake_summariser::{Behaviour, Fake, Seen};
use pegboard_base::sync::Mutex;
use pegboard_base::{caller::Caller, deadline::Deadline, secret::Secret};
use pegboard_config::{Images, Join, TooLong};
use pegboard_mask::{Masker, Masking};
use pegboard_tools::{catalog::MAX_RESULT_SIZE, outcome::Kind};

/// The settings under which results are presented, and the folder of their spilled outputs.
struct Fixture {
    options: ResultOptions,
    folder: tempfile::TempDir,
    results: Results,
    summarise: Option<Summarise>,
    requests: Arc<Mutex<Vec<Seen>>>,
    hint: Option<usize>,
}

fn fixture(change: impl FnOnce(&mut Results)) -> Fixture {
    summarising(Behaviour::Text("all is well"), change)
}

fn summarising(behaviour: Behaviour, change: impl FnOnce(&mut Results)) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let limits = SpillLimits {
        folder: Some(folder.path().to_owned()),
        ..SpillLimits::default()
    };
    let requests = Arc::new(Mutex::default());
    let fake = Fake {
        behaviour,
        requests: requests.clone(),
    };
    let mut results = Results::default();
    change(&mut results);
    Fixture {
        options: View::new().summariser(fake).spill(limits).result_options.prepare(),
        folder,
        results,
        summarise: None,
        requests,
        hint: None,
    }
}

impl Fixture {
    fn summarise(mut self) -> Self {
        self.summarise = Some(Summarise::default());
        self
    }

    async fn shape(&self, outcome: Outcome) -> Presented {
        self.shape_masked(outcome, |_| Counts::default()).await
    }

    async fn shape_masked(&self, mut outcome: Outcome, mask: impl FnOnce(&mut Outcome) -> Counts) -> Presented {
        let meta = Map::new();
        let rules = ResultRules {
            caller: Caller::new("call-1", "view", &meta),
            server: "k8s",
            tool: "get_pods",
            listed: None,
            context: Some("user: which pods crash?"),
            results: self.results,
            hint: self.hint,
            summarise: self.summarise.as_ref(),
            options: &self.options,
            deadline: Deadline::within(Duration::from_secs(600)),
        };
        let original_bytes = payload(&outcome);
        let masked = mask(&mut outcome);
        rules.shape(outcome, original_bytes, masked).await
    }

    fn requests(&self) -> Vec<Seen> {
        self.requests.lock().clone()
    }

    async fn kept(&self, handle: &str) -> String {
        self.options.spill.fetch(handle).await.unwrap().text.as_ref().clone()
    }
}

fn done(text: impl Into<String>) -> Outcome {
    Outcome::Done(Answer::from_text(text))
}

fn structured(text: Option<String>, value: Value) -> Outcome {
    let mut answer = Answer::from_text("");
    answer.content = text.into_iter().map(Content::text).collect();
    answer.structured = Some(value);
    Outcome::Done(answer)
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("pod-{n} is ready\n")).collect()
}

fn blocks(of: Value) -> Outcome {
    let mut answer = Answer::from_text("");
    answer.content = serde_json::from_value(of).unwrap();
    Outcome::Done(answer)
}

#[tokio::test]
async fn a_small_result_is_handed_on_as_it_came() {
    let fixture = fixture(|_| {}).summarise();
    let presented = fixture.shape(structured(Some("21".into()), json!({"t": 21}))).await;
    assert_eq!(presented.outcome, structured(Some("21".into()), json!({"t": 21})));
    assert!(!presented.notes.truncated && presented.notes.handle.is_none() && presented.notes.warnings.is_empty());
    assert_eq!(presented.original_bytes, 2);
    assert_eq!(std::fs::read_dir(fixture.folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_result_of_exactly_the_limit_fits_whatever_stands_between_its_blocks() {
    for (join, bytes) in [(Join::Newline, 999), (Join::EmptyLine, 998), (Join::Nothing, 1000)] {
        let fixture = fixture(|results| (results.max_bytes, results.join) = (1000, join));
        for (more, truncated) in [(0, false), (1, true)] {
            let second = "x".repeat(bytes - 500 + more);
            let outcome = blocks(json!([{"type": "text", "text": "x".repeat(500)}, {"type": "text", "text": second}]));
            let presented = fixture.shape(outcome).await;
            assert_eq!(presented.notes.truncated, truncated, "{join:?} {more}");
            assert!(presented.outcome.text().len() <= 1000);
        }
    }
}

#[tokio::test]
async fn a_long_result_is_spilled_and_a_marker_says_how_to_read_it() {
    let fixture = fixture(|_| {});
    fixture.options.set_reader(&"pegboard__read_output".into());
    let long = lines(4000);
    let presented = fixture.shape(done(long.clone())).await;
    let handle = presented.notes.handle.unwrap();
    assert_eq!(fixture.kept(&handle).await, long);
    assert!(presented.notes.truncated);
    assert_eq!(presented.original_bytes, long.len());
    let text = presented.outcome.text();
    let marker = text.lines().find(|line| line.starts_with('[')).unwrap();
    insta::assert_snapshot!(marker.replace(&handle, "out_1"), @r#"[truncated: the first and last 3753 of 70893 bytes (4000 lines, about 17724 tokens) are shown. All of it is kept as out_1: read parts with pegboard__read_output (handle, and range, grep or jsonpath), or hand it to another tool as {"$handle": "out_1"}.]"#);
    assert!(
        text.starts_with("pod-1 is ready\n") && text.ends_with("pod-4000 is ready\n"),
        "{text}"
    );
    assert!(text.len() <= 4096);
}

#[tokio::test]
async fn each_way_of_cutting_keeps_to_its_limit_and_tells_what_is_missing() {
    for (too_long, marker) in [
        (TooLong::Head, "[truncated: the first 903 of "),
        (TooLong::HeadTail, "[truncated: the first and last "),
    ] {
        let fixture = fixture(|results| (results.max_bytes, results.mode) = (1000, too_long));
        let presented = fixture.shape(done(lines(1000))).await;
        let text = presented.outcome.text();
        assert!(text.len() <= 1000 && text.contains(marker), "{text}");
        assert!(
            text.contains(" of 16893 bytes are shown; ask for less to see all of it]"),
            "{text}"
        );
        assert_eq!(text.ends_with("pod-1000 is ready\n"), too_long == TooLong::HeadTail);
        assert_eq!((presented.notes.truncated, presented.notes.handle), (true, None));
    }
}

#[tokio::test]
async fn a_limit_may_be_an_error_but_an_error_is_always_told() {
    let fixture = fixture(|results| (results.max_bytes, results.mode) = (1000, TooLong::Error));
    let presented = fixture.shape(done(lines(1000))).await;
    let Outcome::Lost(failure) = &presented.outcome else {
        panic!("{presented:?}")
    };
    assert_eq!((failure.kind, failure.may_have_executed), (Kind::LimitExceeded, true));
    assert_eq!(
        failure.message,
        "the result of k8s.get_pods is too long: it has 16893 bytes, and 1000 are allowed. The tool has run; ask it for less."
    );
    let failed = fixture.shape(Outcome::ToolFailed(Answer::from_text(lines(1000)))).await;
    assert!(matches!(failed.outcome, Outcome::ToolFailed(_)));
    assert!(failed.outcome.text().len() <= 1000 && failed.notes.truncated);
}

#[tokio::test]
async fn every_text_of_an_outcome_is_bounded() {
    let fixture = fixture(|results| results.max_bytes = 1000);
    let resource = json!([{"type": "resource", "resource": {"uri": "a://b", "text": lines(500)}}, {"type": "text", "text": "end"}]);
    let link = json!({"type": "resource_link", "uri": format!("a://{}", "x".repeat(100))});
    for outcome in [
        done(lines(500)),
        Outcome::ToolFailed(Answer::from_text(lines(500))),
        Outcome::Lost(Failure::new(Kind::Transport, lines(500))),
        Outcome::Refused(Failure::new(Kind::Unavailable, lines(500))),
        structured(None, json!({ "pods": lines(500) })),
        structured(Some("short".into()), json!({ "pods": lines(500) })),
        structured(Some(lines(500)), json!({"n": 1})),
        blocks(resource),
        blocks(json!(vec![link; 100])),
        blocks(json!(vec![json!({"type": "text", "text": "many"}); 500])),
    ] {
        let presented = fixture.shape(outcome.clone()).await;
        assert!(presented.notes.truncated, "{outcome:?}");
        assert!(presented.outcome.text().len() <= 1000, "{}", presented.outcome.text());
        if let Outcome::Done(answer) = &presented.outcome {
            let all: usize = answer.content.iter().map(|block| block.to_text().len()).sum();
            assert!(all <= 1000, "{answer:?}");
            assert!(
                answer
                    .structured
                    .as_ref()
                    .is_none_or(|value| value.to_string().len() <= 1000)
            );
        }
    }
}

#[tokio::test]
async fn blocks_that_are_not_text_take_up_to_half_of_the_limit_and_the_text_gets_the_rest() {
    let fixture = fixture(|results| results.max_bytes = 1000);
    // A line of 18 bytes each, and two for what stands between them.
    let mut content = vec![json!({"type": "resource_link", "uri": "a://1234567"}); 40];
    content.push(json!({"type": "text", "text": lines(500)}));
    let presented = fixture.shape(blocks(json!(content))).await;
    let Outcome::Done(answer) = &presented.outcome else {
        panic!("{:?}", presented.outcome)
    };
    let is_link = |block: &&Content| matches!(block, Content::Link { .. });
    assert_eq!(answer.content.iter().filter(is_link).count(), 25);
    assert_eq!(presented.notes.warnings, ["15 blocks of the result were left out"]);
    let text = presented.outcome.text();
    assert!(text.len() <= 1000 && text.contains("pod-1 is ready"), "{text}");
}

#[tokio::test]
async fn lines_and_tokens_are_limits_too() {
    let by_lines = fixture(|results| (results.max_lines, results.mode) = (Some(20), TooLong::HeadTail));
    let text = by_lines.shape(done(lines(100))).await.outcome.text();
    assert_eq!(text.lines().count(), 20);
    let by_tokens = fixture(|results| (results.max_tokens, results.mode) = (Some(100), TooLong::Head));
    let text = by_tokens.shape(done(lines(100))).await.outcome.text();
    assert!(text.len() <= 400 && text.len() > 300, "{text}");
}

#[tokio::test]
async fn a_server_may_raise_the_limit_up_to_the_ceiling() {
    let mut fixture = fixture(|results| (results.max_bytes, results.ceiling) = (1000, 5000));
    for (said, bytes, truncated) in [
        (None, 2000, true),
        (Some(3000), 2000, false),
        (Some(9000), 4900, false),
        (Some(9000), 5100, true),
    ] {
        fixture.hint = said;
        assert_eq!(
            fixture.shape(done("x".repeat(bytes))).await.notes.truncated,
            truncated,
            "{said:?} {bytes}"
        );
        fixture.hint = None;
        let mut answer = Answer::from_text("x".repeat(bytes));
        answer.meta = said.map(|chars| json!({ MAX_RESULT_SIZE: chars }).as_object().unwrap().clone());
        assert_eq!(
            fixture.shape(Outcome::Done(answer)).await.notes.truncated,
            truncated,
            "{said:?} {bytes}"
        );
    }
}

#[tokio::test]
async fn structured_content_is_kept_as_json_once_or_apart() {
    let fixture = fixture(|results| results.max_bytes = 1000);
    let value = json!({ "pods": lines(500) });
    // The text has the same content: one handle for both.
    let same = fixture.shape(structured(Some(value.to_string()), value.clone())).await;
    assert_eq!(
        same.notes.warnings,
        [format!(
            "the structured content has {} bytes and was left out",
            value.to_string().len()
        )]
    );
    // They differ: each has its own.
    let differs = fixture.shape(structured(Some(lines(400)), value.clone())).await;
    let other = differs.notes.warnings[0].rsplit(' ').next().unwrap();
    assert_eq!(fixture.kept(differs.notes.handle.as_ref().unwrap()).await, lines(400));
    assert_eq!(
        serde_json::from_str::<Value>(&fixture.kept(other).await).unwrap(),
        value
    );
    // There is no text.
    let only = fixture.shape(structured(None, value.clone())).await;
    assert_eq!(
        serde_json::from_str::<Value>(&fixture.kept(&only.notes.handle.unwrap()).await).unwrap(),
        value
    );
}

#[tokio::test]
async fn when_spilling_fails_the_result_is_truncated_with_a_warning() {
    let mut fixture = fixture(|_| {});
    std::fs::write(fixture.folder.path().join("file"), "").unwrap();
    let limits = SpillLimits {
        folder: Some(fixture.folder.path().join("file/no-folder")),
        ..SpillLimits::default()
    };
    fixture.options = View::new().spill(limits).result_options.prepare();
    let presented = fixture.shape(done(lines(5000))).await;
    assert_eq!((presented.notes.truncated, presented.notes.handle), (true, None));
    assert!(
        presented.notes.warnings[0].contains("was not put aside"),
        "{:?}",
        presented.notes.warnings
    );
    let text = presented.outcome.text();
    assert!(text.len() <= 48 << 10 && text.contains("[truncated: "), "{text}");
}

#[tokio::test]
async fn a_view_may_want_whole_results_or_shorter_ones() {
    let results = Results {
        max_lines: Some(3),
        ..Results::default()
    };
    let long = lines(5000);
    for (view, expected) in [
        (View::new().whole_results(), long.len()),
        (View::new().cut_results(2000), 2000),
    ] {
        let mut fixture = fixture(|own| *own = view.result_options.apply_size(results)).summarise();
        fixture.options = view.result_options.prepare();
        let presented = fixture.shape(done(long.clone())).await;
        let len = presented.outcome.text().len();
        assert!(len <= expected && len > expected - 50, "{len}");
        assert_eq!(
            (presented.notes.truncated, presented.notes.handle),
            (expected < long.len(), None)
        );
        assert!(presented.notes.warnings.is_empty());
    }
}

#[tokio::test]
async fn images_can_be_spilled_for_a_model_that_reads_only_text() {
    let fixture = fixture(|results| results.images = Images::Spill);
    let data = "QUFB".repeat(1000);
    let presented = fixture
        .shape(blocks(json!([
            {"type": "text", "text": "see"},
            {"type": "image", "data": data, "mimeType": "image/png"},
            {"type": "audio", "data": data, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "blob": data, "mimeType": "application/pdf"}},
        ])))
        .await;
    let text = presented.outcome.text();
    let handles: Vec<&str> = text.split("handle ").skip(1).map(|rest| &rest[..36]).collect();
    let mut shown = text.clone();
    for handle in &handles {
        assert_eq!(fixture.kept(handle).await, data);
        shown = shown.replace(handle, "H");
    }
    assert_eq!(
        shown,
        "see\n[image image/png, 3000 bytes, handle H]\n[audio audio/wav, 3000 bytes, handle H]\n[resource a://b, application/pdf, 3000 bytes, handle H]"
    );
    assert!(!text.contains("QUFBQUFB"));
}

#[tokio::test]
async fn a_picture_hidden_in_json_text_becomes_a_block() {
    let data = format!("iVBORw0KGgo{}", "QUFB".repeat(1000));
    let text = format!(r#"{{"screenshot": "{data}", "ok": true}}"#);
    let found = fixture(|results| results.find_images = true)
        .shape(done(text.clone()))
        .await;
    let Outcome::Done(answer) = &found.outcome else {
        panic!()
    };
    assert_eq!(
        answer.content[0].to_text(),
        r#"{"screenshot": "[picture 1, image/png]", "ok": true}"#
    );
    assert!(matches!(&answer.content[1], Content::Image { data: found, .. } if *found == data));
    let plain = fixture(|_| {}).shape(done(text.clone())).await;
    assert_eq!(plain.outcome.text(), text, "nobody asked for it");
}

#[tokio::test]
async fn the_text_is_joined_fenced_and_chosen_as_the_rules_say() {
    let fixture = fixture(|results| {
        (results.join, results.fence, results.structured) = (Join::Nothing, true, Structured::StructuredOnly);
    });
    let presented = fixture.shape(structured(Some("text".into()), json!({"a": 1}))).await;
    let text = presented.outcome.text();
    assert!(
        text.contains("from=\"k8s.get_pods\"") && text.contains("\n{\"a\":1}\n</untrusted-"),
        "{text}"
    );
    let failed = fixture
        .shape(Outcome::ToolFailed(Answer::from_text("no such pod")))
        .await;
    assert!(
        failed.outcome.text().contains("no such pod"),
        "an error is shown whatever the rules say"
    );
}

#[tokio::test]
async fn a_secret_reaches_neither_the_summariser_nor_a_file() {
    fn hide(outcome: &mut Outcome) -> Counts {
        let masker = Masker::new(&Masking::default(), [Secret::new("hunter2")]).unwrap();
        let mut counts = Counts::default();
        outcome.mask(&masker, &mut counts);
        counts
    }
    fn no_file_has(folder: &Path, secret: &str) -> usize {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        let mut seen = 0;
        for entry in files {
            if entry.path().is_dir() {
                seen += no_file_has(&entry.path(), secret);
            } else {
                assert!(!std::fs::read_to_string(entry.path()).unwrap().contains(secret));
                seen += 1;
            }
        }
        seen
    }
    let fixture = fixture(|results| results.images = Images::Spill).summarise();
    let text = format!("password hunter2\n{}", lines(5000));
    let presented = fixture
        .shape_masked(structured(Some(text), json!({"p": "hunter2"})), hide)
        .await;
    assert_eq!(presented.masked.total(), 2);
    assert!(!format!("{presented:?}").contains("hunter2"));
    assert!(fixture.requests()[0].text.starts_with("password [MASKED_SECRET]"));
    assert!(!format!("{:?}", fixture.requests()).contains("hunter2"));
    assert_eq!(no_file_has(fixture.folder.path(), "hunter2"), 1);
}

#[test]
fn a_tools_own_rules_come_first_by_name_then_by_glob() {
    let mut policy = Policy::default();
    let own = |bytes| Results {
        max_bytes: bytes,
        ..Results::default()
    };
    policy.tool_results = [("get_*".to_owned(), own(1)), ("get_pods".to_owned(), own(2))].into();
    for (tool, bytes) in [("get_pods", 2), ("get_nodes", 1), ("delete_pod", 48 << 10)] {
        assert_eq!(results_of_tool(&policy, tool).max_bytes, bytes, "{tool}");
    }
}
