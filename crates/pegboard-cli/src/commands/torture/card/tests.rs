//! The score card on screens of two widths.

use pegboard_torture::{CaseResult, Era};
use serde_json::json;

use super::*;

fn result(id: &'static str, group: &'static str, era: Era, verdict: Verdict) -> CaseResult {
    CaseResult {
        id,
        group,
        era,
        title: "a response has the id of its request",
        verdict,
        why: None,
        sent: None,
        came: None,
        spec: "MCP 2025-11-25, basic#responses".to_owned(),
        mend: "copy the id of the request into the response as it is: a number stays a number, and a text stays a text",
        advice: Vec::new(),
        duration_ms: 12,
    }
}

/// A server with a failed case, two cases with advice and a skipped one.
fn card() -> Card {
    let mut failed = result("ids", "json-rpc", Era::Legacy, Verdict::Failed);
    failed.why = Some("the id \"a\" came back as 1, the id 0 came back as null, and the id -7 got no response within 10 s\nat \u{1b}[2Jserver.py:12".to_owned());
    failed.sent = Some(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":{"note":"a message that is wider than the screen stays whole"}}}"#.to_owned());
    failed.came = Some(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned());
    let mut advised = result("greeting", "handshake", Era::Legacy, Verdict::Passed);
    advised.advice = vec![
        "`serverInfo.title` is missing; hosts show it in place of the name, which is meant for programs".to_owned(),
    ];
    let mut again = result("greeting", "handshake", Era::Modern, Verdict::Passed);
    again.advice.clone_from(&advised.advice);
    let mut skipped = result("progress", "calls", Era::Legacy, Verdict::Skipped);
    skipped.why =
        Some("no tool may be called: none is declared read-only, and none was named with `--tool`".to_owned());
    let mut card = Card {
        server: "python /home/ada/projects/weather/server.py --verbose".to_owned(),
        server_info: json!({"name": "weather", "version": "0.3.1"}),
        transport: "stdio",
        eras: vec![Era::Legacy, Era::Modern],
        ..Card::default()
    };
    card.fill(vec![advised, again, failed, skipped]);
    card
}

/// The card on a screen, with escapes made visible.
fn screen(width: Option<usize>, colour: bool) -> String {
    text(&card(), true, width, Paint::forced(colour)).replace('\u{1b}', "␛")
}

#[test]
fn a_screen_of_80_columns() {
    insta::assert_snapshot!(screen(Some(80), false));
}

#[test]
fn a_screen_of_120_columns() {
    insta::assert_snapshot!(screen(Some(120), false));
}

#[test]
fn a_screen_of_80_columns_in_colour() {
    insta::assert_snapshot!(screen(Some(80), true));
}

#[test]
fn a_screen_of_120_columns_in_colour() {
    insta::assert_snapshot!(screen(Some(120), true));
}

#[test]
fn only_messages_are_wider_than_the_screen_and_colour_changes_no_text() {
    for width in [80, 120] {
        let plain = screen(Some(width), false);
        let wide = plain.lines().filter(|line| line.chars().count() > width);
        assert!(wide.into_iter().all(|line| line.starts_with("  sent ")), "{plain}");
        let colour = screen(Some(width), true);
        let codes = ["␛[1m", "␛[31m", "␛[0m"];
        assert_eq!(codes.iter().fold(colour, |text, code| text.replace(code, "")), plain);
    }
}

#[test]
fn a_pipe_gets_whole_lines() {
    let text = screen(None, false);
    assert!(
        text.contains("a number stays a number, and a text stays a text\n"),
        "{text}"
    );
}
