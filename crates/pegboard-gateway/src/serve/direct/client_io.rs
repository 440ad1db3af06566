//! [`ClientIo`]: what a client has sent and what it is sent, in buffers that are used again.

use std::{
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The room for what is read at once. Most requests fit.
const READ: usize = 4 * 1024;

/// How much of further requests is read while one is handled. A client that has sent more and leaves is noticed when the response is sent.
const MAX_AHEAD: usize = 8 * 1024;

/// Up to this length what is sent is copied into one buffer: one write of one buffer costs less than one of several.
const COPIED: usize = 16 * 1024;

/// The client is gone, or is not served any longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone;

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        tracing::debug!(%error, "connection ended badly");
        Self
    }
}

/// The stream of a connection with its buffers.
pub(super) struct ClientIo<S> {
    stream: S,
    /// What was read and belongs to no request that was begun.
    read: BytesMut,
    /// What is to be sent next.
    unsent: Vec<u8>,
    /// Whether the stream has failed, so that nothing more can be said to the client.
    has_failed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientIo<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            unsent: Vec::new(),
            has_failed: false,
        }
    }

    /// The stream, and what was read from it.
    pub(super) fn into_rest(self) -> (S, Bytes) {
        (self.stream, self.read.freeze())
    }

    /// What was read of the next requests.
    pub(super) fn read(&self) -> &[u8] {
        &self.read
    }

    pub(super) fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// Reads something, unless `is_over` when there is nothing to read. Returns whether something was read.
    pub(super) async fn read_unless(&mut self, is_over: impl Fn() -> bool) -> Result<bool, Gone> {
        std::future::poll_fn(|cx| match self.poll_read(cx) {
            Poll::Pending if is_over() => Poll::Ready(Ok(false)),
            read => read.map_ok(|()| true),
        })
        .await
    }

    /// Reads until this many bytes are there, without waiting. Returns whether they are there.
    pub(super) async fn read_what_is_there(&mut self, length: usize) -> Result<bool, Gone> {
        std::future::poll_fn(|cx| {
            while self.read.len() < length {
                match self.poll_read(cx) {
                    Poll::Pending => return Poll::Ready(Ok(false)),
                    Poll::Ready(read) => read?,
                }
            }
            Poll::Ready(Ok(true))
        })
        .await
    }

    /// Reads until this many bytes are there, unless `is_over`. Returns whether they are there.
    pub(super) async fn read_up_to(&mut self, length: usize, is_over: impl Fn() -> bool) -> Result<bool, Gone> {
        while self.read.len() < length {
            if !self.read_unless(&is_over).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads this many bytes, which are of no use, unless `is_over` before they have come. Returns whether they have come; what has not is left in
    /// `length`.
    pub(super) async fn discard(&mut self, length: &mut usize, is_over: impl Fn() -> bool) -> Result<bool, Gone> {
        loop {
            let read = self.read.len().min(*length);
            self.read.advance(read);
            *length -= read;
            if *length == 0 {
                return Ok(true);
            }
            if !self.read_unless(&is_over).await? {
                return Ok(false);
            }
        }
    }

    /// Takes the head and the body of a request that was read, and returns the body.
    pub(super) fn take_body(&mut self, head: usize, body: usize) -> Bytes {
        self.read.advance(head);
        self.read.split_to(body).freeze()
    }

    /// Waits for `work`, unless the client closes the connection before.
    pub(super) async fn until_gone<T>(&mut self, mut work: impl Future<Output = T> + Unpin) -> Result<T, Gone> {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
                return Poll::Ready(Ok(done));
            }
            while self.read.len() < MAX_AHEAD {
                ready!(self.poll_read(cx))?;
            }
            Poll::Pending
        })
        .await
    }

    /// Where the head of a response is written.
    pub(super) fn unsent(&mut self) -> &mut Vec<u8> {
        &mut self.unsent
    }

    /// Sends a part of a body, perhaps with what follows.
    pub(super) async fn push(&mut self, part: Bytes) -> Result<(), Gone> {
        if self.unsent.len() + part.len() <= COPIED {
            self.unsent.extend_from_slice(&part);
            return Ok(());
        }
        self.send_with(part).await
    }

    /// Sends a part of a body whose length is not known.
    pub(super) async fn push_chunk(&mut self, part: Bytes) -> Result<(), Gone> {
        self.unsent
            .extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        self.push(part).await?;
        self.unsent.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Ends such a body.
    pub(super) fn push_last_chunk(&mut self) {
        self.unsent.extend_from_slice(b"0\r\n\r\n");
    }

    /// Sends all that was pushed.
    pub(super) async fn send_all(&mut self) -> Result<(), Gone> {
        if !self.unsent.is_empty() {
            self.send_with(Bytes::new()).await?;
        }
        Ok(())
    }

    /// Closes the client's end as well.
    pub(super) async fn shut_down(&mut self) {
        if !self.has_failed {
            // A client that is gone needs to be told nothing.
            let _ = self.stream.shutdown().await;
        }
    }

    /// Sends what was pushed, then these bytes.
    async fn send_with(&mut self, bytes: Bytes) -> Result<(), Gone> {
        let sent = self.write(bytes).await;
        self.has_failed |= sent.is_err();
        Ok(sent?)
    }

    async fn write(&mut self, mut bytes: Bytes) -> io::Result<()> {
        let mut sent = 0;
        loop {
            let written = {
                let parts = [IoSlice::new(&self.unsent[sent..]), IoSlice::new(&bytes)];
                let (parts, first) = match (sent < self.unsent.len(), bytes.is_empty()) {
                    (false, true) => break,
                    (true, false) => (&parts[..], &parts[0]),
                    (true, true) => (&parts[..1], &parts[0]),
                    (false, false) => (&parts[1..], &parts[1]),
                };
                std::future::poll_fn(|cx| match parts.len() {
                    1 => Pin::new(&mut self.stream).poll_write(cx, first),
                    _ => Pin::new(&mut self.stream).poll_write_vectored(cx, parts),
                })
                .await?
            };
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let of_unsent = written.min(self.unsent.len() - sent);
            sent += of_unsent;
            bytes.advance(written - of_unsent);
        }
        self.unsent.clear();
        self.unsent.shrink_to(READ);
        self.stream.flush().await
    }

    /// Reads once. The end of the stream is an error, because it comes after the last request only.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        if self.read.capacity() - self.read.len() < READ / 8 {
            self.read.reserve(READ);
        }
        match ready!(pin!(self.stream.read_buf(&mut self.read)).poll(cx)) {
            Ok(0) => Poll::Ready(Err(Gone)),
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => {
                self.has_failed = true;
                Poll::Ready(Err(error.into()))
            }
        }
    }
}
