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

/// Whose room the results of a client take that does not read.
pub(super) trait Buffers {
    /// Whether others need the room.
    fn are_short(&self) -> bool;

    /// Counts a connection that is closed because its client did not read.
    fn count_undelivered(&self);
}

impl Buffers for Site {
    fn are_short(&self) -> bool {
        self.endpoints.is_short_of_buffers()
    }

    fn count_undelivered(&self) {
        self.traffic.count_undelivered();
    }
}

/// A stream that notes when the client sends and when it does not read.
pub(super) struct WatchedStream<S, B> {
    stream: S,
    activity: Arc<Activity>,
    buffers: Arc<B>,
    /// Set while the client does not read.
    stalled: Option<Stalled>,
}

struct Stalled {
    since: Instant,
    check: Pin<Box<Sleep>>,
}

impl<S, B: Buffers> WatchedStream<S, B> {
    pub(super) fn new(stream: S, activity: Arc<Activity>, buffers: Arc<B>) -> Self {
        Self {
            stream,
            activity,
            buffers,
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
            if self.buffers.are_short() {
                let after_ms = u64::try_from(stalled.since.elapsed().as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(
                    after_ms,
                    "a client does not read its results, and others need the room: its connection is closed, the results are dropped"
                );
                self.buffers.count_undelivered();
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

impl<S: AsyncRead + Unpin, B> AsyncRead for WatchedStream<S, B> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.note_received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin, B: Buffers> AsyncWrite for WatchedStream<S, B> {
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
        // TLS takes what is written into a buffer of its own, and only a flush tells whether the client reads it.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.note(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.note(shut_down, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::{AtomicBool, AtomicU32, Ordering},
    };

    use tokio::{
        io::{AsyncWriteExt as _, BufWriter, DuplexStream, duplex},
        time::{advance, sleep_until},
    };

    use super::*;

    #[derive(Default)]
    struct Room {
        is_short: AtomicBool,
        undelivered: AtomicU32,
    }

    impl Buffers for Room {
        fn are_short(&self) -> bool {
            self.is_short.load(Ordering::Relaxed)
        }

        fn count_undelivered(&self) {
            self.undelivered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A stream that takes what is written into a buffer, as TLS does, and its client, which has read nothing of it.
    fn buffered(
        room: &Arc<Room>,
    ) -> (
        WatchedStream<BufWriter<DuplexStream>, Room>,
        Arc<Activity>,
        DuplexStream,
    ) {
        let (server, client) = duplex(16);
        let activity = Activity::new();
        let stream = WatchedStream::new(BufWriter::with_capacity(1000, server), activity.clone(), room.clone());
        (stream, activity, client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_what_was_buffered_expires() {
        let (mut stream, activity, client) = buffered(&Arc::default());
        let _busy = activity.begin();
        stream.write_all(&[0; 100]).await.unwrap();
        assert!(!activity.is_stalled(), "it is buffered");
        let mut expiry = pin!(sleep_until(Instant::now() + Duration::from_secs(1000)));
        tokio::select! {
            biased;
            flushed = stream.flush() => panic!("{flushed:?}"),
            () = std::future::poll_fn(|cx| activity.poll_expired(expiry.as_mut(), cx)) => assert!(activity.is_stalled()),
        }
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_fails_once_others_need_the_room() {
        let room = Arc::new(Room::default());
        let (mut stream, _, client) = buffered(&room);
        stream.write_all(&[0; 100]).await.unwrap();
        room.is_short.store(true, Ordering::Relaxed);
        stream.flush().await.unwrap_err();
        assert_eq!(room.undelivered.load(Ordering::Relaxed), 1);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_late_is_no_matter() {
        let (mut stream, activity, mut client) = buffered(&Arc::default());
        stream.write_all(&[0; 100]).await.unwrap();
        let reading = async {
            advance(UNREAD_TIME * 10).await;
            let mut read = [0; 100];
            tokio::io::AsyncReadExt::read_exact(&mut client, &mut read)
                .await
                .unwrap();
        };
        let (flushed, ()) = tokio::join!(stream.flush(), reading);
        flushed.unwrap();
        assert!(!activity.is_stalled());
    }
}
