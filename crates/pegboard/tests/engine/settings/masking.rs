//! What is masked in results.

use serde_json::json;

use pegboard_testkit::{FakeServer, Tool};

use crate::settings::fixtures::*;

/// The text of a result under these settings, at the top of the file or in the server's table.
async fn shown(top: &str, settings: &str, text: &str) -> String {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text(text));
    Stage::of_file(top, settings, &fake).call("t").await.text()
}

/// Masked by default, by the group `basic`, and by the pattern `email`.
const TEXTS: [&str; 3] = ["postgres://u:p4ssw0rd@h/x", "compass: northeast", "jane@example.org"];

#[tokio::test(start_paused = true)]
async fn settings_choose_the_patterns() {
    for (masking, expected) in [
        ("{}", [true, false, false]),
        ("false", [false, false, false]),
        ("{ enabled = false }", [false, false, false]),
        ("{ defaults = false }", [false, false, false]),
        ("{ groups = ['basic'] }", [true, true, false]),
        ("{ patterns = ['email'] }", [true, false, true]),
        ("{ defaults = false, patterns = ['email'] }", [false, false, true]),
        ("{ except = ['p4ss.*'] }", [false, false, false]),
    ] {
        let setting = format!("masking = {masking}");
        for (text, is_masked) in TEXTS.into_iter().zip(expected) {
            for shown in [shown(&setting, "", text).await, shown("", &setting, text).await] {
                assert_eq!(shown.contains("[MASKED"), is_masked, "{setting}: {shown}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_style_says_whether_the_name_is_masked_too() {
    let text = "password: hunter2";
    let value = shown("", "masking = { groups = ['basic'], style = 'value' }", text).await;
    let whole = shown("", "masking = { groups = ['basic'], style = 'whole' }", text).await;
    assert!(
        value.starts_with("password: ") && value.contains("[MASKED_PASSWORD]"),
        "{value}"
    );
    assert_eq!(whole, "[MASKED_PASSWORD]");
}

#[tokio::test(start_paused = true)]
async fn a_custom_pattern_has_a_replacement_and_a_description() {
    let fake = FakeServer::new("fx").tool(Tool::new("t").answers_text("ticket T-4711"));
    for (custom, text, counted) in [
        ("pattern = 'T-\\d+'", "ticket [MASKED]", "custom:0"),
        ("pattern = 'T-\\d+', replacement = 'T-x'", "ticket T-x", "custom:0"),
        (
            "pattern = 'T-\\d+', description = 'ticket'",
            "ticket [MASKED]",
            "custom:ticket",
        ),
    ] {
        let stage = Stage::new(&format!("masking = {{ custom = [{{ {custom} }}] }}"), &fake);
        let reply = stage.call("t").await;
        assert_eq!(reply.text(), text, "{custom}");
        let reply = serde_json::to_value(&reply).unwrap();
        assert_eq!(reply["outcome"]["masked_by"], json!({counted: 1}), "{custom}");
    }
}
