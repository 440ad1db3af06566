//! Runs a callback of the host: a panic or a timeout becomes an error response to that one request.

use std::time::Duration;

use pegboard_base::sync;
use pegboard_protocol::code;

/// How long a user or a model may take to answer. The server may cancel long before.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The code and message of an error response to the server.
pub(in crate::session) type ErrorResponse = (i64, String);

/// Turns a panic in `future` into an error response.
pub(super) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, ErrorResponse> {
    sync::catch(future).await.map_err(|_| {
        tracing::error!("the host panicked at a question of the server");
        (code::INTERNAL_ERROR, "nobody could answer".to_owned())
    })
}

/// Turns a `future` that takes longer than [`ANSWER_TIMEOUT`] into an error response.
pub(super) async fn with_timeout<T>(
    future: impl Future<Output = Result<T, ErrorResponse>>,
) -> Result<T, ErrorResponse> {
    let answered = tokio::time::timeout(ANSWER_TIMEOUT, future).await;
    answered.unwrap_or_else(|_| Err((code::INTERNAL_ERROR, "nobody answered in time".to_owned())))
}
