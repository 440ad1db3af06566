//! Calls and answers as each provider documents them.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::outcome::{Answer, Content, Failure, Kind, Outcome};

/// A response of each provider that calls `fx__echo` with `{"a": 1}` under the id `c1`.
fn responses() -> Vec<(Provider, Value)> {
    let chat = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "fx__echo", "arguments": "{\"a\": 1}"}}]}}]});
    let gemini = json!({"candidates": [{"content": {"role": "model", "parts": [
        {"text": "Let me see."}, {"functionCall": {"id": "c1", "name": "fx__echo", "args": {"a": 1}}}]}}]});
    vec![
        (
            Provider::Mcp,
            json!({"jsonrpc": "2.0", "id": "c1", "method": "tools/call", "params": {"name": "fx__echo", "arguments": {"a": 1}}}),
        ),
        (Provider::OpenAi, chat.clone()),
        (Provider::OpenAiStrict, chat),
        (
            Provider::OpenAiResponses,
            json!({"output": [{"type": "reasoning", "id": "r"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "fx__echo", "arguments": "{\"a\": 1}"}]}),
        ),
        (
            Provider::Anthropic,
            json!({"role": "assistant", "stop_reason": "tool_use", "content": [{"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "c1", "name": "fx__echo", "input": {"a": 1}}]}),
        ),
        (Provider::Gemini, gemini.clone()),
        (Provider::GeminiJson, gemini),
        (
            Provider::Bedrock,
            json!({"output": {"message": {"role": "assistant", "content": [{"text": "Let me see."},
                {"toolUse": {"toolUseId": "c1", "name": "fx__echo", "input": {"a": 1}}}]}}, "stopReason": "tool_use"}),
        ),
    ]
}

#[test]
fn the_calls_are_found_in_the_response_of_every_provider() {
    for (provider, response) in responses() {
        let mut calls = provider.tool_calls(&response);
        assert_eq!(calls.len(), 1, "{provider}");
        let call = calls.remove(0);
        assert_eq!((call.id.as_str(), call.name.as_str()), ("c1", "fx__echo"), "{provider}");
        let arguments: Value = serde_json::from_str(call.arguments.as_raw().get()).unwrap();
        assert_eq!(arguments, json!({"a": 1}), "{provider}");
    }
}

#[test]
fn a_part_of_the_response_is_enough() {
    let part = json!({"id": "c1", "type": "function", "function": {"name": "fx__echo", "arguments": ""}});
    for response in [
        json!({"message": {"tool_calls": [part]}}),
        json!({"tool_calls": [part]}),
        json!([part]),
        part.clone(),
    ] {
        assert_eq!(Provider::OpenAi.tool_calls(&response).len(), 1, "{response}");
    }
    for answer in [
        json!({"choices": [{"message": {"content": "hi"}}]}),
        json!([]),
        json!(null),
    ] {
        assert!(Provider::OpenAi.tool_calls(&answer).is_empty(), "{answer}");
    }
}

#[test]
fn arguments_that_are_no_object_stay_text() {
    for (arguments, expected) in [
        (json!("{\"a\": "), "{\"a\": "),
        (json!("a: 1"), "a: 1"),
        (json!([1]), "[1]"),
    ] {
        let response = json!([{"id": "c1", "function": {"name": "fx__echo", "arguments": arguments}}]);
        let call = Provider::OpenAi.tool_calls(&response).remove(0);
        assert_eq!(call.text.as_deref(), Some(expected));
    }
}

fn reply(outcome: Outcome) -> Reply {
    Reply::unanswered("c1", "fx__echo", outcome, Duration::ZERO)
}

#[test]
fn an_answer_has_the_form_that_every_provider_expects() {
    let done = reply(Outcome::Done(Answer::from_text("one")));
    for (provider, expected) in [
        (
            Provider::Mcp,
            json!([{"content": [{"type": "text", "text": "one"}], "isError": false}]),
        ),
        (
            Provider::OpenAi,
            json!([{"role": "tool", "tool_call_id": "c1", "content": "one"}]),
        ),
        (
            Provider::OpenAiStrict,
            json!([{"role": "tool", "tool_call_id": "c1", "content": "one"}]),
        ),
        (
            Provider::OpenAiResponses,
            json!([{"type": "function_call_output", "call_id": "c1", "output": "one"}]),
        ),
        (
            Provider::Anthropic,
            json!([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "one"}]}]}]),
        ),
        (
            Provider::Gemini,
            json!([{"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "fx__echo", "response": {"output": "one"}}}]}]),
        ),
        (
            Provider::Bedrock,
            json!([{"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "one"}], "status": "success"}}]}]),
        ),
    ] {
        assert_eq!(
            Value::Array(provider.tool_messages(std::slice::from_ref(&done))),
            expected,
            "{provider}"
        );
        assert!(provider.tool_messages(&[]).is_empty());
    }
}

#[test]
fn a_failure_is_marked_as_one() {
    let failed = reply(Outcome::Refused(Failure::new(Kind::Timeout, "too late")));
    for (provider, expected) in [
        (
            Provider::Mcp,
            json!({"content": [{"type": "text", "text": "too late"}], "isError": true}),
        ),
        (
            Provider::OpenAi,
            json!({"role": "tool", "tool_call_id": "c1", "content": "too late"}),
        ),
        (
            Provider::Anthropic,
            json!({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "too late"}], "is_error": true}),
        ),
        (
            Provider::Gemini,
            json!({"functionResponse": {"id": "c1", "name": "fx__echo", "response": {"error": "too late"}}}),
        ),
        (
            Provider::Bedrock,
            json!({"toolResult": {"toolUseId": "c1", "content": [{"text": "too late"}], "status": "error"}}),
        ),
    ] {
        assert_eq!(provider.tool_result(&failed), expected, "{provider}");
    }
}

#[test]
fn images_stay_images_where_a_model_takes_them_and_nothing_is_empty() {
    let mut answer = Answer::from_text("");
    let picture = |kind: &str| {
        serde_json::from_value::<Content>(json!({"type": "image", "data": "AA==", "mimeType": kind})).unwrap()
    };
    answer.content.push(picture("image/png"));
    answer.content.push(picture("image/tiff"));
    let shown = reply(Outcome::Done(answer));
    assert_eq!(
        Provider::Anthropic.tool_result(&shown)["content"],
        json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
               {"type": "text", "text": "[image image/tiff, 1 bytes]"}])
    );
    assert_eq!(
        Provider::Bedrock.tool_result(&shown)["toolResult"]["content"],
        json!([{"image": {"format": "png", "source": {"bytes": "AA=="}}}, {"text": "[image image/tiff, 1 bytes]"}])
    );
    let empty = reply(Outcome::Done(Answer::from_text("")));
    assert_eq!(
        Provider::Anthropic.tool_result(&empty)["content"][0]["text"],
        "(no output)"
    );
    assert_eq!(Provider::OpenAi.tool_result(&empty)["content"], "(no output)");
}

#[test]
fn an_id_that_the_model_did_not_give_is_not_given_back() {
    let response =
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "fx__echo", "args": {}}}]}}]});
    let call = Provider::Gemini.tool_calls(&response).remove(0);
    let reply = call.unanswered(Outcome::Done(Answer::from_text("one")), Duration::ZERO);
    assert_eq!(
        Provider::Gemini.tool_result(&reply),
        json!({"functionResponse": {"name": "fx__echo", "response": {"output": "one"}}})
    );
}

#[test]
fn an_id_that_only_looks_like_ours_is_given_back() {
    let part = json!({"functionCall": {"id": "call-1", "name": "fx__echo", "args": {}}});
    let call = Provider::Gemini.tool_calls(&json!([part])).remove(0);
    let reply = call.unanswered(Outcome::Done(Answer::from_text("one")), Duration::ZERO);
    assert_eq!(Provider::Gemini.tool_result(&reply)["functionResponse"]["id"], "call-1");
    let mut set = ToolCall::new("fx__echo");
    assert!(
        !set.unanswered(Outcome::Done(Answer::from_text("one")), Duration::ZERO)
            .id_given
    );
    "call-0".clone_into(&mut set.id);
    assert!(
        set.unanswered(Outcome::Done(Answer::from_text("one")), Duration::ZERO)
            .id_given
    );
}
