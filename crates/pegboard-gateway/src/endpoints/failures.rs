//! What clients are told when Pegboard refuses a request, or does not know how it ended.

use std::time::Duration;

use pegboard::{Failure, Kind};
use serde_json::json;

use crate::protocol::{Answer, RawResult, RpcError};

/// The answer to a tool call that was refused or lost. A model reads it as the tool's result, unless the tool does not exist or there is no
/// room for the call: then the client decides what to do.
///
/// `is_built_in` says whether the called tool is one of ours: then a tool that does not exist is one that the model named in the arguments, and
/// it can name another.
pub(super) fn call_failed(failure: &Failure, is_built_in: impl FnOnce() -> bool) -> Answer {
    match failure.kind {
        Kind::UnknownTool if !is_built_in() => Err(RpcError::invalid_params(failure.message.clone())),
        Kind::LimitExceeded if is_overload(failure) => Err(busy(failure)),
        _ => RawResult::new(&json!({
            "content": [{"type": "text", "text": failure.message}],
            "isError": true,
            "_meta": meta(failure),
        })),
    }
}

/// The error of any other request that was refused or lost.
pub(super) fn request_failed(failure: &Failure) -> RpcError {
    if is_overload(failure) {
        return busy(failure);
    }
    let code = match failure.kind {
        Kind::InvalidArguments | Kind::UnknownTool | Kind::NotPermitted => RpcError::INVALID_PARAMS,
        _ => failure.code.unwrap_or(RpcError::INTERNAL),
    };
    RpcError::new(code, failure.message.clone()).data(meta(failure))
}

/// A limit was reached, and nothing has run: the client may send the same request again after a while.
fn is_overload(failure: &Failure) -> bool {
    failure.kind == Kind::LimitExceeded && failure.retry_after.is_some() && !failure.may_have_executed
}

fn busy(failure: &Failure) -> RpcError {
    let wait = failure.retry_after.unwrap_or(Duration::from_secs(1));
    let mut data = meta(failure);
    data["retry_after"] = u64::try_from(wait.as_millis().div_ceil(1000).max(1))
        .unwrap_or(u64::MAX)
        .into();
    RpcError::new(RpcError::BUSY, failure.message.clone()).data(data)
}

/// What programs can tell failures apart by.
fn meta(failure: &Failure) -> serde_json::Value {
    json!({
        "pegboard/kind": failure.kind,
        "pegboard/may_have_executed": failure.may_have_executed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_tool_is_an_error_of_the_request_unless_a_tool_of_ours_was_told_to_call_it() {
        let unknown = Failure::new(Kind::UnknownTool, "there is no tool `x`");
        let result = call_failed(&unknown, || true).unwrap();
        let result: serde_json::Value = serde_json::from_slice(result.json()).unwrap();
        assert_eq!(
            (&result["isError"], &result["_meta"]["pegboard/kind"]),
            (&json!(true), &json!("unknown_tool"))
        );
        let error = call_failed(&unknown, || false).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (RpcError::INVALID_PARAMS, "there is no tool `x`")
        );
    }

    #[test]
    fn a_model_reads_why_a_call_failed() {
        for kind in [
            Kind::InvalidArguments,
            Kind::Unavailable,
            Kind::LimitExceeded,
            Kind::NotPermitted,
        ] {
            let result = call_failed(&Failure::new(kind, "why"), || false).unwrap();
            let result: serde_json::Value = serde_json::from_slice(result.json()).unwrap();
            assert_eq!(
                result,
                json!({"content": [{"type": "text", "text": "why"}], "isError": true,
                    "_meta": {"pegboard/kind": kind, "pegboard/may_have_executed": false}})
            );
        }
        let lost = call_failed(&Failure::new(Kind::Timeout, "no answer").after_sending(), || false).unwrap();
        let lost: serde_json::Value = serde_json::from_slice(lost.json()).unwrap();
        assert_eq!(
            lost["_meta"],
            json!({"pegboard/kind": "timeout", "pegboard/may_have_executed": true})
        );
    }

    #[test]
    fn overload_says_when_to_come_back() {
        let full = Failure::new(Kind::LimitExceeded, "the queue is full").retry_after(Duration::from_millis(1500));
        let error = call_failed(&full, || false).unwrap_err();
        assert_eq!(
            (error.code, error.data.unwrap()["retry_after"].as_u64()),
            (RpcError::BUSY, Some(2))
        );
        assert_eq!(request_failed(&full).code, RpcError::BUSY);
    }

    #[test]
    fn a_servers_own_code_is_kept_for_other_requests() {
        let missing = Failure::new(Kind::ToolError, "no such resource").code(-32002);
        assert_eq!(request_failed(&missing).code, -32002);
        assert_eq!(
            request_failed(&Failure::new(Kind::Unavailable, "down")).code,
            RpcError::INTERNAL
        );
    }
}
