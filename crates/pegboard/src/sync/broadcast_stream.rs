//! What is told to many, heard by one of them: as a stream, and without losing anything when a wait is given up.

use std::{
    fmt,
    task::{Context, Poll, ready},
};

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::ReusableBoxFuture;

/// One listener of a broadcast.
pub(crate) struct BroadcastStream<T>(ReusableBoxFuture<'static, (Result<T, RecvError>, Receiver<T>)>);

impl<T: Clone + Send + 'static> BroadcastStream<T> {
    pub(crate) fn new(receiver: Receiver<T>) -> Self {
        Self(ReusableBoxFuture::new(next(receiver)))
    }

    /// The next thing, or how many of them are lost because the listener was slow; `None` when nothing more will come.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, u64>>> {
        let (heard, receiver) = ready!(self.0.poll(context));
        self.0.set(next(receiver));
        Poll::Ready(match heard {
            Ok(told) => Some(Ok(told)),
            Err(RecvError::Lagged(lost)) => Some(Err(lost)),
            Err(RecvError::Closed) => None,
        })
    }
}

/// The wait owns the receiver, so that it can go on after whoever polled it has gone.
async fn next<T: Clone>(mut receiver: Receiver<T>) -> (Result<T, RecvError>, Receiver<T>) {
    let heard = receiver.recv().await;
    (heard, receiver)
}

impl<T> fmt::Debug for BroadcastStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BroadcastStream")
    }
}
