//! Conversions between the types of both crates.

use pegboard::{Answer, Content, Failure, Kind, Outcome, ServerName, Tool};
use proptest::prelude::*;
use rmcp::model::{self, CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::{rmcp::kit::object, support::name};

fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-zé漢\"\\\\\n/:]{0,12}").unwrap()
}

/// The fields that every block may have.
fn hints() -> impl Strategy<Value = Value> {
    let annotations = (0_u8..=10, any::<bool>()).prop_map(|(tenths, is_user)| {
        let audience = if is_user { "user" } else { "assistant" };
        json!({"audience": [audience], "priority": f64::from(tenths) / 10.0, "lastModified": "2025-01-12"})
    });
    let meta = text().prop_map(|text| json!({"dev.example/a": text, "n": [1, null]}));
    (proptest::option::of(annotations), proptest::option::of(meta)).prop_map(|(annotations, meta)| {
        let mut hints = json!({});
        if let Some(annotations) = annotations {
            hints["annotations"] = annotations;
        }
        if let Some(meta) = meta {
            hints["_meta"] = meta;
        }
        hints
    })
}

/// Every type of block that the protocol defines, as JSON.
fn block() -> impl Strategy<Value = Value> {
    let kinds = (0..7_u8, text(), text()).prop_map(|(kind, one, two)| match kind {
        0 => json!({"type": "text", "text": one}),
        1 => json!({"type": "image", "data": one, "mimeType": two}),
        2 => json!({"type": "audio", "data": one, "mimeType": two}),
        3 => json!({"type": "resource", "resource": {"uri": one, "text": two, "mimeType": "a/b", "_meta": {"k": 1}}}),
        4 => json!({"type": "resource", "resource": {"uri": one, "blob": two}}),
        5 => json!({"type": "resource_link", "uri": one, "name": two}),
        _ => json!({"type": "resource_link", "uri": one, "name": two, "title": "t", "description": "d", "size": 7,
                    "mimeType": "a/b", "icons": [{"src": "https://example.com/i.png", "sizes": ["48x48"]}]}),
    });
    (kinds, hints()).prop_map(|(mut block, hints)| {
        for (key, value) in object(hints) {
            block[key] = value;
        }
        block
    })
}

proptest! {
    #[test]
    fn every_block_of_the_protocol_survives_both_ways(json in block()) {
        let ours: Content = serde_json::from_value(json.clone()).unwrap();
        let theirs = ContentBlock::try_from(ours.clone()).unwrap();
        prop_assert_eq!(&theirs, &serde_json::from_value::<ContentBlock>(json.clone()).unwrap());
        let back = Content::from(theirs);
        prop_assert_eq!(&back, &ours);
        prop_assert_eq!(serde_json::to_value(back).unwrap(), json);
    }

    #[test]
    fn a_result_survives_both_ways(
        blocks in proptest::collection::vec(block(), 0..4),
        structured in proptest::option::of(text()),
        is_error in any::<bool>(),
    ) {
        let mut json = json!({"content": blocks, "isError": is_error, "resultType": "complete", "_meta": {"a": 1}});
        if let Some(structured) = structured {
            json["structuredContent"] = json!({"text": structured});
        }
        // An error result without content gets a text, so that a client shows something.
        prop_assume!(!is_error || !blocks.is_empty() || json.get("structuredContent").is_some());
        let theirs: CallToolResult = serde_json::from_value(json).unwrap();
        let ours = Outcome::from(theirs.clone());
        prop_assert_eq!(ours.is_error(), is_error);
        prop_assert_eq!(CallToolResult::from(ours), theirs);
    }
}

#[test]
fn a_block_without_a_type_in_rmcp_is_an_error_alone_and_a_text_in_a_result() {
    for block in [
        json!({"type": "hologram", "depth": 3}),
        json!({"type": "resource", "resource": {"uri": "a:b"}}),
        json!({"type": "resource", "resource": {"text": "t"}}),
    ] {
        let ours: Content = serde_json::from_value(block.clone()).unwrap();
        let problem = ContentBlock::try_from(ours.clone()).unwrap_err();
        assert!(problem.to_string().contains("cannot be converted"), "{problem}");
        let result = CallToolResult::from(Answer::from_content([ours.clone()]));
        assert_eq!(result.content, [ContentBlock::text(ours.to_text())]);
    }
}

#[test]
fn invalid_annotations_are_dropped_and_a_link_without_a_name_is_named_by_its_uri() {
    let odd = json!({"type": "text", "text": "t", "annotations": {"priority": "high"}, "extra": 1});
    let ours: Content = serde_json::from_value(odd).unwrap();
    assert_eq!(ContentBlock::try_from(ours).unwrap(), ContentBlock::text("t"));
    let link: Content = serde_json::from_value(json!({"type": "resource_link", "uri": "a:b"})).unwrap();
    let ContentBlock::ResourceLink(link) = ContentBlock::try_from(link).unwrap() else {
        panic!("no link")
    };
    assert_eq!((link.uri, link.name), ("a:b".to_owned(), "a:b".to_owned()));
}

#[test]
fn a_call_without_an_answer_is_an_error_result_that_says_whether_the_tool_may_have_run() {
    let refused = Outcome::Refused(Failure::new(Kind::NotPermitted, "not yours"));
    let lost = Outcome::Lost(Failure::new(Kind::Timeout, "no answer").after_sending());
    for (outcome, text, kind, may_have_executed) in [
        (refused, "not yours", "not_permitted", false),
        (lost, "no answer", "timeout", true),
    ] {
        let result = CallToolResult::from(outcome);
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.content, [ContentBlock::text(text)]);
        let fate = &result.meta.unwrap().0["dev.pegboard/outcome"];
        assert_eq!(fate, &json!({"kind": kind, "may_have_executed": may_have_executed}));
    }
}

#[test]
fn a_silent_failure_gets_a_text() {
    let silent = Outcome::ToolFailed(Answer::from_content([]));
    let text = silent.text();
    assert_eq!(CallToolResult::from(silent).content, [ContentBlock::text(text)]);
}

#[test]
fn a_tool_survives_both_ways() {
    let full = json!({
        "name": "read", "title": "Read", "description": "Reads.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": true, "title": "R", "openWorldHint": false},
        "icons": [{"src": "https://example.com/i.png"}],
        "_meta": {"dev.example/a": [1, 2]},
    });
    let bare = json!({"name": "x", "inputSchema": {"type": "object"}});
    for json in [full, bare] {
        let theirs: model::Tool = serde_json::from_value(json.clone()).unwrap();
        let ours = Tool::try_from((name("files"), theirs.clone())).unwrap();
        assert_eq!(ours.dotted_name(), format!("files.{}", theirs.name));
        assert_eq!(model::Tool::from(&ours), theirs);
        assert_eq!(serde_json::to_value(model::Tool::from(&ours)).unwrap(), json);
    }
}

#[test]
fn a_tool_that_the_board_would_leave_out_is_an_error() {
    let server: ServerName = name("files");
    for (json, word) in [
        (json!({"name": "", "inputSchema": {}}), "empty name"),
        (
            json!({"name": "x", "inputSchema": {"type": "string"}}),
            "always an object",
        ),
    ] {
        let theirs: model::Tool = serde_json::from_value(json).unwrap();
        let problem = Tool::try_from((server.clone(), theirs)).unwrap_err();
        assert!(problem.to_string().contains(word), "{problem}");
    }
}
