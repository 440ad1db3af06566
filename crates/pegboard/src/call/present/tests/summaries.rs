//! When a summary replaces a result, and when it does not.

use super::*;

#[tokio::test]
async fn a_result_above_the_threshold_is_summarised_and_kept() {
    let fixture = fixture(|_| {}).summarise();
    let long = lines(1200);
    let presented = fixture.shape(done(long.clone())).await;
    let handle = presented.notes.handle.unwrap();
    assert_eq!(fixture.kept(&handle).await, long);
    insta::assert_snapshot!(presented.outcome.text().replace(&handle, "out_1"), @r#"
    [NOTE: this is a summary of the output of k8s.get_pods, which has about 5124 tokens. All of it is kept as out_1: read parts with read_output (handle, and range, grep or jsonpath), or hand it to another tool as {"$handle": "out_1"}.]

    all is well
    "#);
    let requests = &fixture.requests()[0];
    assert_eq!(
        (requests.server.as_str(), requests.tool.as_str(), requests.max_tokens),
        ("k8s", "get_pods", 1000)
    );
    assert_eq!(requests.context.as_deref(), Some("user: which pods crash?"));
    assert_eq!((requests.call.as_str(), &requests.text), ("call-1", &long));
    assert!(presented.notes.truncated);
}

#[tokio::test]
async fn a_result_up_to_the_threshold_is_not_summarised() {
    let fixture = fixture(|_| {}).summarise();
    let presented = fixture.shape(done("x".repeat(20_000))).await;
    assert_eq!((fixture.requests().len(), presented.notes.truncated), (0, false));
    fixture.shape(done("x".repeat(20_001))).await;
    assert_eq!(fixture.requests().len(), 1);
}

#[tokio::test]
async fn an_error_is_never_summarised() {
    let fixture = fixture(|_| {}).summarise();
    let presented = fixture.shape(Outcome::ToolFailed(Answer::from_text(lines(5000)))).await;
    assert_eq!(fixture.requests(), []);
    assert!(presented.outcome.text().starts_with("pod-1 is ready"));
}

/// Empty, failed and late summaries: the agent gets the truncated text, which says where the rest is.
#[tokio::test(start_paused = true)]
async fn without_a_summary_the_bounded_text_is_given() {
    for (behaviour, problem) in [
        (Behaviour::Text("  \n "), "the result was not summarised: it is empty"),
        (Behaviour::Failure, "the result was not summarised: the model is away"),
        (
            Behaviour::NeverEnds,
            "the result was not summarised: it did not come within 60s",
        ),
    ] {
        let fixture = summarising(behaviour, |_| {}).summarise();
        let presented = fixture.shape(done(lines(50_000))).await;
        assert_eq!(presented.notes.warnings, [problem]);
        let text = presented.outcome.text();
        assert!(
            text.len() <= 4096 && text.starts_with("pod-1 is ready") && text.contains("[truncated: "),
            "{text}"
        );
        assert!(presented.notes.truncated && presented.notes.handle.is_some());
        // Within the limit the whole result is returned.
        let presented = fixture.shape(done(lines(1200))).await;
        assert_eq!(
            (presented.outcome.text(), presented.notes.truncated),
            (lines(1200), false)
        );
    }
}

#[tokio::test]
async fn a_summariser_is_given_no_more_than_its_input_cap() {
    let fixture = fixture(|_| {}).summarise();
    fixture.shape(done(lines(50_000))).await;
    let requests = &fixture.requests()[0];
    assert!(requests.text.len() <= 400_000 && requests.text.len() > 390_000);
    assert!(
        requests.text.ends_with("of 938894 bytes are shown]"),
        "{}",
        &requests.text[requests.text.len() - 100..]
    );
}

#[tokio::test]
async fn a_summary_without_end_is_bounded() {
    let fixture = summarising(Behaviour::TooMuch, |_| {}).summarise();
    let text = fixture.shape(done(lines(50_000))).await.outcome.text();
    assert!(text.starts_with("[NOTE: ") && text.len() <= 48 << 10, "{}", text.len());
}

#[tokio::test]
async fn summarising_may_be_the_way_to_bound_a_result() {
    let fixture = fixture(|results| (results.max_bytes, results.mode) = (1000, TooLong::Summarise));
    let presented = fixture.shape(done(lines(500))).await;
    assert!(presented.outcome.text().ends_with("\n\nall is well"));
    let mut alone = fixture;
    alone.options = View::new().result_options.prepare();
    let presented = alone.shape(done(lines(500))).await;
    assert_eq!(
        presented.notes.warnings,
        ["the result was not summarised: no summariser is set"]
    );
    assert!(presented.outcome.text().len() <= 1000);
}
