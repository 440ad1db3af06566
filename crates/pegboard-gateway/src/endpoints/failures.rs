//! What clients are told when Pegboard refuses a request, or does not know how it ended.

use std::{collections::BTreeMap, time::Duration};

use pegboard::{Failure, Kind};
use pegboard_protocol::{
    code,
    meta::pegboard::{FAILURE, KIND, MAY_HAVE_EXECUTED},
};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use crate::protocol::{Answer, RawResult, RpcError};

/// The answer to a tool call that was refused or lost. A model reads it as the tool's result, unless the tool does not exist or there is no
/// room for the call: then the client decides what to do.
///
/// `is_built_in` says whether the called tool is one of ours: then a tool that does not exist is one that the model named in the arguments, and
/// it can name another.
pub(super) fn answer_failed_call(failure: &Failure, is_built_in: impl FnOnce() -> bool) -> Answer {
    match failure.kind {
        Kind::UnknownTool if !is_built_in() => Err(RpcError::invalid_params(failure.text())),
        Kind::LimitExceeded if is_overload(failure) => Err(busy_error(failure)),
        _ => RawResult::new(&json!({
            "content": [{"type": "text", "text": failure.text()}],
            "isError": true,
            "_meta": meta(failure),
        })),
    }
}

/// The answer to a call of one of the user's own commands that was refused or lost: with all that is known, so that the command can report it as
/// its own failure.
pub(super) fn call_of_command_failed(failure: &Failure) -> Answer {
    let mut meta = meta(failure);
    meta[FAILURE] = json!(failure);
    RawResult::new(&json!({
        "content": [{"type": "text", "text": failure.text()}],
        "isError": true,
        "_meta": meta,
    }))
}

/// The error of any other request that was refused or lost. Programs and people read it.
pub(super) fn request_error(failure: &Failure) -> RpcError {
    if is_overload(failure) {
        return busy_error(failure);
    }
    let code = match failure.kind {
        Kind::InvalidArguments | Kind::UnknownTool | Kind::NotPermitted => code::INVALID_PARAMS,
        _ => failure.code.unwrap_or(code::INTERNAL_ERROR),
    };
    RpcError::new(code, failure.message.clone()).data(data(failure))
}

/// Whether a request failed for lack of a sign-in, and nothing has run.
pub(super) fn needs_auth(error: &RpcError) -> bool {
    let is_needed = |data: &serde_json::Value| data[KIND] == json!(Kind::NeedsAuth) && data[MAY_HAVE_EXECUTED] == false;
    error.data.as_ref().is_some_and(is_needed)
}

/// A limit was reached, and nothing has run: the client may send the same request again after a while.
fn is_overload(failure: &Failure) -> bool {
    failure.kind == Kind::LimitExceeded && failure.retry_after.is_some() && !failure.may_have_executed
}

fn busy_error(failure: &Failure) -> RpcError {
    let wait = failure.retry_after.unwrap_or(Duration::from_secs(1));
    let mut data = data(failure);
    data["retry_after"] = u64::try_from(wait.as_millis().div_ceil(1000).max(1))
        .unwrap_or(u64::MAX)
        .into();
    RpcError::new(code::BUSY, failure.text()).data(data)
}

fn meta(failure: &Failure) -> serde_json::Value {
    json!({
        KIND: failure.kind,
        MAY_HAVE_EXECUTED: failure.may_have_executed,
    })
}

/// The same for an error, whose data also says in the words of all errors of a gateway whether the request may have run.
fn data(failure: &Failure) -> serde_json::Value {
    let mut data = meta(failure);
    data["may_have_executed"] = failure.may_have_executed.into();
    data
}

/// A server's result without the fields of failures, for clients that must be able to believe them.
pub(super) fn strip_failure_fields(result: &RawResult) -> Answer {
    type Fields<'a> = BTreeMap<String, &'a RawValue>;
    let unreadable = |error: serde_json::Error| {
        let message = format!("the server's result cannot be read: {error}");
        RpcError::new(code::INTERNAL_ERROR, message)
    };
    let mut fields: Fields<'_> = serde_json::from_slice(result.json()).map_err(unreadable)?;
    let meta = fields
        .get("_meta")
        .map(|meta| serde_json::from_str::<Fields<'_>>(meta.get()));
    let cleaned;
    // Something else than an object has no fields.
    if let Some(Ok(mut meta)) = meta {
        meta.retain(|name, _| ![KIND, MAY_HAVE_EXECUTED, FAILURE].contains(&name.as_str()));
        cleaned = to_raw_value(&meta).map_err(unreadable)?;
        fields.insert("_meta".into(), &cleaned);
    }
    let has_type = fields.contains_key("resultType");
    let json = serde_json::to_vec(&fields).map_err(unreadable)?;
    Ok(RawResult::from_text(json.into(), has_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_tool_is_an_error_of_the_request_unless_a_tool_of_ours_was_told_to_call_it() {
        let unknown = Failure::new(Kind::UnknownTool, "there is no tool `x`");
        let result = answer_failed_call(&unknown, || true).unwrap();
        let result: serde_json::Value = serde_json::from_slice(result.json()).unwrap();
        assert_eq!(
            (&result["isError"], &result["_meta"]["pegboard/kind"]),
            (&json!(true), &json!("unknown_tool"))
        );
        let error = answer_failed_call(&unknown, || false).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (code::INVALID_PARAMS, "there is no tool `x`")
        );
    }

    #[test]
    fn a_servers_result_cannot_pretend_to_be_a_failure_of_ours() {
        for (sent, kept) in [
            (
                r#"{"_meta":{"pegboard/kind":"not_permitted","pegboard/may_have_executed":false,"own":1.0},"isError":true}"#,
                r#"{"_meta":{"own":1.0},"isError":true}"#,
            ),
            (
                r#"{"\u005fmeta":{"pegboard\/kind":"timeout","\u0070egboard/kind":"timeout"},"isError":true}"#,
                r#"{"_meta":{},"isError":true}"#,
            ),
            (
                r#"{"_meta":{"pegboard/kind":"timeout"},"_meta":{"pegboard/kind":"timeout","a":1}}"#,
                r#"{"_meta":{"a":1}}"#,
            ),
            (
                r#"{"_meta":{"pegboard/failure":{"kind":"timeout"}}}"#,
                r#"{"_meta":{}}"#,
            ),
            (r#"{"_meta":"pegboard/kind"}"#, r#"{"_meta":"pegboard/kind"}"#),
            (r#"{"content":[]}"#, r#"{"content":[]}"#),
        ] {
            let result = strip_failure_fields(&RawResult::from_text(sent.into(), false)).unwrap();
            assert_eq!(std::str::from_utf8(result.json()).unwrap(), kept);
        }
    }

    #[test]
    fn a_model_reads_why_a_call_failed() {
        for kind in [
            Kind::InvalidArguments,
            Kind::Unavailable,
            Kind::LimitExceeded,
            Kind::NotPermitted,
        ] {
            let result = answer_failed_call(&Failure::new(kind, "why"), || false).unwrap();
            let result: serde_json::Value = serde_json::from_slice(result.json()).unwrap();
            assert_eq!(
                result,
                json!({"content": [{"type": "text", "text": "why"}], "isError": true,
                    "_meta": {"pegboard/kind": kind, "pegboard/may_have_executed": false}})
            );
        }
        let lost = answer_failed_call(&Failure::new(Kind::Timeout, "no answer").after_sending(), || false).unwrap();
        let lost: serde_json::Value = serde_json::from_slice(lost.json()).unwrap();
        assert_eq!(
            lost["_meta"],
            json!({"pegboard/kind": "timeout", "pegboard/may_have_executed": true})
        );
    }

    #[test]
    fn overload_says_when_to_come_back() {
        let full = Failure::new(Kind::LimitExceeded, "the queue is full").retry_after(Duration::from_millis(1500));
        let error = answer_failed_call(&full, || false).unwrap_err();
        assert_eq!(
            (error.code, error.data.unwrap()["retry_after"].as_u64()),
            (code::BUSY, Some(2))
        );
        assert_eq!(request_error(&full).code, code::BUSY);
    }

    #[test]
    fn a_servers_own_code_is_kept_for_other_requests() {
        let missing = Failure::new(Kind::ToolError, "no such resource").code(-32002);
        assert_eq!(request_error(&missing).code, -32002);
        assert_eq!(
            request_error(&Failure::new(Kind::Unavailable, "down")).code,
            code::INTERNAL_ERROR
        );
    }
}
