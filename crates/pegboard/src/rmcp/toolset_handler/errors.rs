//! Errors of a toolset as JSON-RPC errors.

use ::rmcp::{ErrorData, model::ErrorCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use pegboard_tools::outcome::{Failure, Kind};

/// The JSON-RPC error for a request that failed. Its data has the kind of failure, and the hint if there is one.
pub(super) fn error_of(failure: Failure) -> ErrorData {
    let code = match failure.kind {
        Kind::UnknownTool | Kind::InvalidArguments => ErrorCode::INVALID_PARAMS,
        Kind::NotPermitted => ErrorCode::INVALID_REQUEST,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut data = json!({ "kind": failure.kind });
    if let Some(hint) = failure.hint {
        data["hint"] = hint.into();
    }
    ErrorData::new(code, failure.message, Some(data))
}

/// Runs `work` until the client cancels the request. `work` is dropped then.
pub(super) async fn run_unless_cancelled<T>(
    cancelled: &CancellationToken,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::select! {
        biased;
        // rmcp drops the response to a cancelled request.
        () = cancelled.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        result = work => result,
    }
}
