//! One subscriber's stream of a broadcast channel. Dropping a pending wait loses no value.

use std::{
    fmt,
    task::{Context, Poll, ready},
};

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::ReusableBoxFuture;

/// One subscriber's stream of a broadcast channel.
pub struct BroadcastStream<T>(ReusableBoxFuture<'static, (Result<T, RecvError>, Receiver<T>)>);

impl<T: Clone + Send + 'static> BroadcastStream<T> {
    /// Creates a stream of the values that `receiver` has not received yet.
    pub fn new(receiver: Receiver<T>) -> Self {
        Self(ReusableBoxFuture::new(next(receiver)))
    }

    /// Polls for the next value. Returns `Err` with the number of values that a slow subscriber has missed, and `None` when the channel is
    /// closed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, u64>>> {
        let (received, receiver) = ready!(self.0.poll(context));
        self.0.set(next(receiver));
        Poll::Ready(match received {
            Ok(value) => Some(Ok(value)),
            Err(RecvError::Lagged(missed)) => Some(Err(missed)),
            Err(RecvError::Closed) => None,
        })
    }
}

/// Waits for the next value. The future owns the receiver, so that it can be polled again after the caller dropped its own future.
async fn next<T: Clone>(mut receiver: Receiver<T>) -> (Result<T, RecvError>, Receiver<T>) {
    let received = receiver.recv().await;
    (received, receiver)
}

impl<T> fmt::Debug for BroadcastStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BroadcastStream")
    }
}
