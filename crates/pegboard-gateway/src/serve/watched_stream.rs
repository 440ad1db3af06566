//! [`WatchedStream`]: the stream of a connection, whatever is spoken on it. It notes what the client does, and fails when the client does not read
//! what others need the room of.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use super::{activity::Activity, site::Site};

/// How long a client may read nothing while others need the room that its results take. The time is short because messages of servers may wait
/// for as long, and long enough for a network that loses a packet.
const UNREAD_TIME: Duration = Duration::from_millis(500);

/// How often it is checked whether others need the room, while a client does not read.
const CHECK_TIME: Duration = Duration::from_millis(50);

/// A stream that notes when the client sends and when it does not read.
pub(super) struct WatchedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    site: Arc<Site>,
    /// Set while the client does not read.
    stalled: Option<Stalled>,
}

struct Stalled {
    since: Instant,
    check: Pin<Box<Sleep>>,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>, site: Arc<Site>) -> Self {
        Self {
            stream,
            activity,
            site,
            stalled: None,
        }
    }

    /// Notes whether the client reads. A write that waits fails once the client keeps room for too long.
    fn note<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            self.activity.clear_stall();
            return written;
        }
        self.activity.note_stalled();
        let now = Instant::now();
        let stalled = self.stalled.get_or_insert_with(|| Stalled {
            since: now,
            check: Box::pin(sleep_until(now + UNREAD_TIME)),
        });
        while stalled.check.as_mut().poll(cx).is_ready() {
            if self.site.endpoints.is_short_of_buffers() {
                let after_ms = u64::try_from(stalled.since.elapsed().as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(
                    after_ms,
                    "a client does not read its results, and others need the room: its connection is closed, the results are dropped"
                );
                self.site.traffic.count_undelivered();
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client does not read its results",
                )));
            }
            stalled.check.as_mut().reset(Instant::now() + CHECK_TIME);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.note_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.note(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
