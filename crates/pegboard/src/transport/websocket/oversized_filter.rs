//! Takes messages that are too large out of the bytes of a WebSocket, so that each costs only the call that it answers.
//!
//! The parser behind it would end the connection over such a message, without a word about whose answer it was. A message that comes in
//! several frames is handed on as one frame once it is whole: only then is it known to be small enough.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};

use crate::transport::{Inbox, oversized::Oversized};

/// How much is read at once: as much as a TLS record holds.
const READ_CHUNK: usize = 16 << 10;
/// The longest header of a frame: two bytes, a length of eight and a mask of four.
const MAX_HEADER: usize = 14;
/// What ends the response to the opening handshake.
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

const CONTINUE: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// A message goes on after many times the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message has no end")]
pub(super) struct EndlessMessage;

/// The stream of a WebSocket without the messages that are too large.
pub(super) struct OversizedFilter<S> {
    stream: BufReader<S>,
    sorter: FrameScanner,
}

impl<S: AsyncRead> OversizedFilter<S> {
    /// Messages may have `limit` bytes. The inbox learns of each that has more.
    pub(super) fn new(stream: S, limit: usize, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            stream: BufReader::with_capacity(READ_CHUNK, stream),
            sorter: FrameScanner::new(limit, inbox),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OversizedFilter<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, sorter } = &mut *self;
        let before = out.filled().len();
        loop {
            sorter.hand_out(out);
            let has_some = out.filled().len() > before;
            // What has come is sorted as far as it goes; more is waited for only if nothing is left of it.
            if out.remaining() == 0 || has_some && stream.buffer().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut stream = Pin::new(&mut *stream);
            let chunk = ready!(stream.as_mut().poll_fill_buf(context))?;
            if chunk.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let taken = sorter.take(chunk, out)?;
            stream.consume(taken);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for OversizedFilter<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Follows the frames in the bytes.
struct FrameScanner {
    at: At,
    /// The message that is not whole yet, unless it is handed on as it comes.
    message: Option<Parts>,
    /// What is handed on next.
    ready: BytesMut,
    limit: usize,
    inbox: Arc<dyn Inbox>,
}

/// Where in the stream the next byte is.
enum At {
    /// In the response to the opening handshake, of whose end so many bytes have come.
    Handshake(usize),
    /// In the header of a frame.
    Header(BytesMut),
    /// In the payload of a frame.
    Payload { left: u64, to: To, is_last: bool },
}

/// Where the payload of a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Parser,
    Message,
}

/// A message that is kept back.
enum Parts {
    /// It comes in several frames.
    Kept { kind: u8, payload: BytesMut },
    /// It is too large.
    Oversized(Oversized),
}

impl FrameScanner {
    fn new(limit: usize, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            at: At::Handshake(0),
            message: None,
            ready: BytesMut::new(),
            limit,
            inbox,
        }
    }

    /// Hands out what is ready; `false` if there is nothing.
    fn hand_out(&mut self, out: &mut ReadBuf<'_>) -> bool {
        let part = self.ready.len().min(out.remaining());
        out.put_slice(&self.ready[..part]);
        self.ready.advance(part);
        if self.ready.is_empty() {
            // It may have been a large message.
            self.ready = BytesMut::new();
        }
        part > 0
    }

    /// Takes some of the bytes that came, and says how many. `chunk` is not empty, and `out` has room.
    fn take(&mut self, chunk: &[u8], out: &mut ReadBuf<'_>) -> io::Result<usize> {
        match &mut self.at {
            At::Handshake(matched) => {
                let chunk = &chunk[..chunk.len().min(out.remaining())];
                let taken = until_end_of_head(chunk, matched);
                out.put_slice(&chunk[..taken]);
                if *matched == END_OF_HEAD.len() {
                    self.at = At::Header(BytesMut::with_capacity(MAX_HEADER));
                }
                Ok(taken)
            }
            At::Header(header) => {
                let missing = length_of_header(header) - header.len();
                let part = missing.min(chunk.len());
                header.extend_from_slice(&chunk[..part]);
                if header.len() == length_of_header(header) {
                    let header = std::mem::take(header);
                    self.begin(&header)?;
                }
                Ok(part)
            }
            At::Payload { left, to, is_last } => {
                let mut part = chunk.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let (to, is_last) = (*to, *is_last);
                if to == To::Parser {
                    part = part.min(out.remaining());
                    out.put_slice(&chunk[..part]);
                }
                *left -= part as u64;
                let is_done = *left == 0;
                if to == To::Message {
                    self.keep(&chunk[..part])?;
                }
                if is_done {
                    self.end(to, is_last);
                }
                Ok(part)
            }
        }
    }

    /// A frame begins.
    fn begin(&mut self, header: &[u8]) -> io::Result<()> {
        let (is_last, kind) = (header[0] & 0x80 != 0, header[0] & 0x0f);
        let left = payload_length(header);
        let fits = |known: usize| left <= (self.limit - known.min(self.limit)) as u64;
        // What the protocol does not allow is for the parser to refuse.
        let is_regular = header[0] & 0x70 == 0 && header[1] & 0x80 == 0;
        let to = match (kind, &mut self.message) {
            (CONTINUE, Some(parts)) if is_regular => {
                if let Parts::Kept { payload, .. } = parts
                    && !fits(payload.len())
                {
                    let mut skipped = Oversized::default();
                    skipped.add(payload);
                    *parts = Parts::Oversized(skipped);
                }
                To::Message
            }
            (TEXT | BINARY, Some(_)) if is_regular => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the server begins a message within another",
                ));
            }
            (TEXT | BINARY, None) if is_regular && !fits(0) => {
                self.message = Some(Parts::Oversized(Oversized::default()));
                To::Message
            }
            (TEXT | BINARY, None) if is_regular && !is_last => {
                let payload = BytesMut::new();
                self.message = Some(Parts::Kept { kind, payload });
                To::Message
            }
            _ => To::Parser,
        };
        if to == To::Parser {
            self.ready.extend_from_slice(header);
        }
        self.at = At::Payload { left, to, is_last };
        if left == 0 {
            self.end(to, is_last);
        }
        Ok(())
    }

    /// A part of a message that is kept back.
    fn keep(&mut self, part: &[u8]) -> io::Result<()> {
        match &mut self.message {
            Some(Parts::Kept { payload, .. }) => payload.extend_from_slice(part),
            Some(Parts::Oversized(skipped)) => {
                skipped.add(part);
                if skipped.is_endless(self.limit) {
                    self.inbox.too_long(&skipped.head, &[], self.limit);
                    return Err(io::Error::other(EndlessMessage));
                }
            }
            None => {}
        }
        Ok(())
    }

    /// A frame ends, and a message with it if it is the last.
    fn end(&mut self, to: To, is_last: bool) {
        self.at = At::Header(BytesMut::with_capacity(MAX_HEADER));
        if to == To::Parser || !is_last {
            return;
        }
        match self.message.take() {
            Some(Parts::Kept { kind, payload }) => {
                push_header(&mut self.ready, kind, payload.len());
                self.ready.unsplit(payload);
            }
            Some(Parts::Oversized(skipped)) => self.inbox.too_long(&skipped.head, &skipped.tail, self.limit),
            None => {}
        }
    }
}

/// How many bytes of the chunk belong to the response. `matched` counts the bytes of its end, also across chunks.
fn until_end_of_head(chunk: &[u8], matched: &mut usize) -> usize {
    for (at, byte) in chunk.iter().enumerate() {
        *matched = match (*byte == END_OF_HEAD[*matched], *byte) {
            (true, _) => *matched + 1,
            (false, b'\r') => 1,
            (false, _) => 0,
        };
        if *matched == END_OF_HEAD.len() {
            return at + 1;
        }
    }
    chunk.len()
}

/// The length of a header, as far as its first bytes tell: more may be needed once they have come.
fn length_of_header(header: &[u8]) -> usize {
    let Some(second) = header.get(1) else { return 2 };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    2 + length + mask
}

fn payload_length(header: &[u8]) -> u64 {
    let bytes = match header[1] & 0x7f {
        126 => &header[2..4],
        127 => &header[2..10],
        short => return u64::from(short),
    };
    bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte))
}

/// The header of a whole message in one frame.
fn push_header(out: &mut BytesMut, kind: u8, length: usize) {
    out.extend_from_slice(&[0x80 | kind]);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..126), _) => out.extend_from_slice(&[length]),
        (_, Ok(length)) => {
            out.extend_from_slice(&[126]);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.extend_from_slice(&[127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
