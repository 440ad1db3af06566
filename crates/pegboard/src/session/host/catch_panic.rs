//! Turns a panic in the host's callback into an error response to that one request.

use super::Refusal;
use crate::sync;

/// The output of a future, or the error that a server gets when it panics.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Refusal> {
    sync::caught(future).await.map_err(|_| {
        tracing::error!("the host panicked at a question of the server");
        (-32603, "nobody could answer".to_owned())
    })
}
