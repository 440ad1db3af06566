//! Turns a panic in the embedding program's code into an error of the one call that ran it.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// The embedding program's code panicked. The message is not kept, because the panic hook has printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Runs a future and catches a panic in it. Wrap the call that creates the future as well: `catch(async { hook.before(call).await })`.
pub async fn catch<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // A future that panicked is never polled again, so its broken state is not observed.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

/// Calls a function and catches a panic in it.
pub fn catch_now<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}
