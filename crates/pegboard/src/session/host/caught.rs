//! What a program's own code does wrong costs the one question that it was asked.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use super::Refusal;

/// The output of a future, or the error that a server gets when it panics.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Refusal> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // A future that panicked is never polled again, so nobody sees what it left undone.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => {
                tracing::error!("the host panicked at a question of the server");
                Poll::Ready(Err((-32603, "nobody could answer".to_owned())))
            }
        }
    })
    .await
}
