//! The byte streams between the board and a task that serves one connection. The task is stopped when the board drops its end.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, DuplexStream, ReadBuf, ReadHalf};
use tokio_util::sync::{CancellationToken, DropGuard};

use pegboard_client::transport::{ByteSink, ByteSource};

/// The bytes that a stream holds before its writer waits.
const BUFFER: usize = 64 << 10;

/// Runs `serve` in a task over one end of a stream and returns the other end. The token that `serve` gets is cancelled when the board drops
/// its end.
pub(super) fn serve_in_task<F>(serve: impl FnOnce(DuplexStream, CancellationToken) -> F) -> (ByteSource, ByteSink)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let stop = CancellationToken::new();
    tokio::spawn(serve(theirs, stop.clone()));
    let (read, write) = tokio::io::split(ours);
    let source = TaskOutput {
        read,
        _stop: stop.drop_guard(),
    };
    (Box::new(source), Box::new(write))
}

/// The output of the task. Dropping it stops the task.
struct TaskOutput {
    read: ReadHalf<DuplexStream>,
    _stop: DropGuard,
}

impl AsyncRead for TaskOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}
