use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::*;
use crate::outcome::Outcome;
use pegboard_base::secret::Secret;
use pegboard_mask::Masking;

const SECRET: &str = "hunter2hunter2";

fn masker() -> Masker {
    Masker::new(&Masking::default(), [Secret::new(SECRET)]).unwrap()
}

fn masked(json: &str, sanitizes: bool) -> (String, usize) {
    let mut result = ForwardedResult::from_json(json.to_owned(), false);
    if json.contains("input_required") {
        result.kind = ResultKind::InputRequired;
    }
    let mut counts = Counts::default();
    result.mask(&masker(), sanitizes, &mut counts).unwrap();
    (String::from_utf8(result.json.to_vec()).unwrap(), counts.total())
}

#[test]
fn a_result_without_secrets_stays_the_same_bytes() {
    for json in [
        r#"{"content":[{"type":"text","text":"a\nb"}],"isError":false}"#,
        // Keywords of patterns, without a secret.
        r#"{ "content" : [ { "text" : "the password is secret, the token too: \u0041", "type":"text"} ] , "new": 1.50 }"#,
        r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#,
        r#"{"contents":[{"uri":"file:///a","blob":"AAECAwQ="}],"resultType":"complete"}"#,
    ] {
        assert_eq!(masked(json, true), (json.to_owned(), 0), "{json}");
    }
}

#[test]
fn a_secret_is_masked_in_every_field_and_escape() {
    let encoded = STANDARD.encode(format!("it is {SECRET}."));
    for json in [
        format!(r#"{{"content":[{{"type":"text","text":"it is {SECRET}"}}]}}"#),
        r#"{"content":[{"type":"text","text":"it is \u0068unter2\u0068unter2"}]}"#.to_owned(),
        format!(r#"{{"content":[{{"type":"text","text":"{{\"a\":\"{SECRET}\"}}"}}]}}"#),
        r#"{"content":[{"type":"text","text":"{\"a\":\"\\u0068unter2hunter2\"}"}]}"#.to_owned(),
        format!(r#"{{"content":[{{"type":"resource","resource":{{"uri":"a:b","blob":"{encoded}"}}}}]}}"#),
        format!(r#"{{"contents":[{{"uri":"a:b","blob":" {encoded} "}}]}}"#),
        format!(r#"{{"structuredContent":{{"{SECRET}":["{SECRET}"]}}}}"#),
        format!(r#"{{"_meta":{{"x":"{SECRET}"}},"extension":{{"y":"{SECRET}"}}}}"#),
        format!(r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"{SECRET}"}}}}]}}"#),
        format!(r#"{{"inputRequests":{{"q":{{"method":"elicitation/create","params":{{"message":"{SECRET}"}}}}}}}}"#),
        format!(r#"{{"inputRequests":{{"q":{{"params":{{"url":"https://x/?a={SECRET}"}}}}}}}}"#),
        r#"{"structuredContent":{"password":"correct horse battery"}}"#.to_owned(),
    ] {
        let (masked, count) = masked(&json, true);
        assert!(count > 0, "{json}");
        for leak in ["hunter2", "u0068", &encoded, "correct horse"] {
            assert!(!masked.contains(leak), "{masked}");
        }
        assert!(serde_json::from_str::<Value>(&masked).is_ok(), "{masked}");
    }
}

#[test]
fn a_secret_is_masked_in_bytes_of_any_form() {
    let mut latin_1 = format!("\u{e9} {SECRET} and a little more of the text").into_bytes();
    latin_1.splice(0..2, [0xe9]);
    let padded = STANDARD.encode(format!("it is {SECRET}"));
    for blob in [
        STANDARD.encode(latin_1),
        padded.trim_end_matches('=').to_owned(),
        format!("{}\\n{}", &padded[..8], &padded[8..]),
    ] {
        let json = format!(r#"{{"contents":[{{"uri":"a:b","blob":"{blob}"}}]}}"#);
        let (masked, count) = masked(&json, true);
        assert!(count > 0 && !masked.contains(&blob), "{masked}");
    }
}

#[test]
fn a_key_that_stands_twice_hides_no_secret() {
    for json in [
        format!(r#"{{"content":[{{"type":"text","text":"{SECRET}","text":"clean"}}]}}"#),
        format!(r#"{{"structuredContent":{{"a":"{SECRET}","a":"clean"}}}}"#),
        format!(r#"{{"_meta":{{"a":"{SECRET}"}},"_meta":{{}}}}"#),
    ] {
        let (masked, _) = masked(&json, true);
        assert!(!masked.contains(SECRET), "{masked}");
    }
}

#[test]
fn only_a_request_for_input_has_a_state() {
    let (masked, count) = masked(&format!(r#"{{"content":[],"requestState":"{SECRET}"}}"#), true);
    assert!(count == 1 && !masked.contains(SECRET), "{masked}");
}

#[test]
fn the_state_of_a_server_and_the_urls_of_its_pages_stay_usable() {
    let state = format!("{SECRET}-password=abcdefgh12345678");
    let url = "https://example.org/?token=ghabcdefgh12345678abcdefgh12345678";
    let json = json!({
        "resultType": "input_required",
        "requestState": state,
        "inputRequests": {"a": {"method": "elicitation/create", "params": {"url": url, "message": SECRET}}},
    });
    let (masked, count) = masked(&json.to_string(), true);
    let masked: Value = serde_json::from_str(&masked).unwrap();
    assert_eq!(masked["requestState"], state.as_str());
    assert_eq!(masked["inputRequests"]["a"]["params"]["url"], url);
    assert_eq!(masked["inputRequests"]["a"]["params"]["message"], "[MASKED_SECRET]");
    assert_eq!(count, 1);
}

#[test]
fn invisible_characters_are_removed_unless_the_server_is_trusted() {
    let json = r#"{"content":[{"type":"text","text":"a\u200bb\u001bc"}],"requestState":"x\u200b","resultType":"input_required"}"#;
    assert_eq!(masked(json, false).0, json);
    let (clean, count) = masked(json, true);
    let clean: Value = serde_json::from_str(&clean).unwrap();
    assert_eq!((clean["content"][0]["text"].as_str(), count), (Some("abc"), 0));
    assert_eq!(clean["requestState"], "x\u{200b}");
    let hidden = format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
        SECRET.replace("er2", "e\u{200b}r2")
    );
    assert!(!masked(&hidden, true).0.contains("hunt"), "{hidden}");
}

#[test]
fn a_result_that_cannot_be_parsed_is_not_passed_on_unmasked() {
    for json in [r#"{"a":"\ud800"}"#, r#"{"password""#] {
        let mut result = ForwardedResult::from_json(json.to_owned(), false);
        let masked = result.mask(&masker(), true, &mut Counts::default());
        assert_eq!(masked, Err(Unmasked), "{json}");
    }
}

/// Masks content blocks as the reply to a call, which parses the result.
fn typed(content: &Value, structured: Option<Value>) -> (Value, usize) {
    let blocks: Vec<Content> = serde_json::from_value(content.clone()).unwrap();
    let mut answer = crate::outcome::Answer::from_content(blocks);
    answer.structured = structured;
    let mut outcome = Outcome::Done(answer);
    let mut counts = Counts::default();
    outcome.sanitize();
    outcome.mask(&masker(), &mut counts);
    let Outcome::Done(answer) = outcome else {
        unreachable!("it stays what it is")
    };
    (
        json!({"content": answer.content, "structuredContent": answer.structured}),
        counts.total(),
    )
}

#[test]
fn results_are_masked_as_the_replies_to_calls_are() {
    for (_, parts, harmless) in pegboard_mask::corpus::CORPUS {
        for text in [parts.concat(), harmless.concat()] {
            let content = json!([{"type": "text", "text": text}, {"type": "new", "x": [text]}]);
            let structured = json!({"a": text, "b": [{"name": "x", "value": text}]});
            let json = json!({"content": content, "structuredContent": structured}).to_string();
            let (expected, expected_count) = typed(&content, Some(structured));
            let (found, count) = masked(&json, true);
            assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), expected, "{text}");
            assert_eq!(count, expected_count, "{text}");
        }
    }
}
