//! Removes messages over the size limit from the bytes of a WebSocket, so that each fails only the request that it answers.
//!
//! The WebSocket parser behind it would close the connection on such a message, and its error does not name the request that the message answers. A
//! fragmented message is passed on as one frame once it is complete: only then is it known to be within the limit.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, BufReader, ReadBuf};

use crate::transport::{oversized::Oversized, wire::Inbox};

/// How much is read at once: the size of a TLS record.
const READ_CHUNK: usize = 16 << 10;
/// The longest frame header: two bytes, a length of eight and a mask of four.
const MAX_HEADER: usize = 14;
/// The end of the HTTP response to the opening handshake.
const END_OF_HANDSHAKE: &[u8] = b"\r\n\r\n";

/// Opcodes of frames.
const CONTINUE: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// A message exceeds the limit many times over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message has no end")]
pub(super) struct EndlessMessage;

/// The byte stream of a WebSocket without messages over the size limit.
pub(super) struct OversizedFilter<S> {
    stream: BufReader<S>,
    scanner: FrameScanner,
}

impl<S: AsyncRead> OversizedFilter<S> {
    /// Removes messages of more than `limit` bytes, and reports each to the inbox.
    pub(super) fn new(stream: S, limit: usize, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            stream: BufReader::with_capacity(READ_CHUNK, stream),
            scanner: FrameScanner::new(limit, inbox),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OversizedFilter<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, scanner } = &mut *self;
        let before = out.filled().len();
        loop {
            scanner.emit(out);
            let has_some = out.filled().len() > before;
            // Scans everything that is buffered; reads more only if nothing was emitted.
            if out.remaining() == 0 || has_some && stream.buffer().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let mut stream = Pin::new(&mut *stream);
            let chunk = ready!(stream.as_mut().poll_fill_buf(context))?;
            if chunk.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let consumed = scanner.scan(chunk, out)?;
            stream.consume(consumed);
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

/// Follows frame boundaries in the byte stream and decides which payloads to pass on.
struct FrameScanner {
    state: ScanState,
    /// The incomplete message whose payload is not passed through.
    message: Option<HeldMessage>,
    /// Bytes to emit next.
    ready: BytesMut,
    limit: usize,
    inbox: Arc<dyn Inbox>,
}

/// What the next byte of the stream belongs to.
enum ScanState {
    /// The response to the opening handshake.
    Handshake {
        /// How many bytes of [`END_OF_HANDSHAKE`] the last bytes match.
        matched: usize,
    },
    /// The header of a frame, of which these bytes have come.
    Header(BytesMut),
    /// The payload of a frame.
    Payload {
        left: u64,
        destination: Destination,
        is_final: bool,
    },
}

/// Where the payload of a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// Passed through to the WebSocket parser.
    Parser,
    /// Added to the held message.
    HeldMessage,
}

/// A message whose payload is not passed through.
enum HeldMessage {
    /// A fragmented message within the limit so far.
    Fragmented { opcode: u8, payload: BytesMut },
    /// A message over the limit.
    Oversized(Oversized),
}

impl FrameScanner {
    fn new(limit: usize, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            state: ScanState::Handshake { matched: 0 },
            message: None,
            ready: BytesMut::new(),
            limit,
            inbox,
        }
    }

    /// Emits bytes that are ready. Returns `false` if there are none.
    fn emit(&mut self, out: &mut ReadBuf<'_>) -> bool {
        let part = self.ready.len().min(out.remaining());
        out.put_slice(&self.ready[..part]);
        self.ready.advance(part);
        if self.ready.is_empty() {
            // Frees the memory: it may have held a large message.
            self.ready = BytesMut::new();
        }
        part > 0
    }

    /// Scans the beginning of `chunk` and returns how many bytes it consumed. `chunk` is not empty, and `out` has room.
    fn scan(&mut self, chunk: &[u8], out: &mut ReadBuf<'_>) -> io::Result<usize> {
        match &mut self.state {
            ScanState::Handshake { matched } => {
                let chunk = &chunk[..chunk.len().min(out.remaining())];
                let consumed = until_end_of_handshake(chunk, matched);
                out.put_slice(&chunk[..consumed]);
                if *matched == END_OF_HANDSHAKE.len() {
                    self.state = ScanState::Header(BytesMut::with_capacity(MAX_HEADER));
                }
                Ok(consumed)
            }
            ScanState::Header(header) => {
                let missing = header_length(header) - header.len();
                let part = missing.min(chunk.len());
                header.extend_from_slice(&chunk[..part]);
                if header.len() == header_length(header) {
                    let header = std::mem::take(header);
                    self.begin_frame(&header)?;
                }
                Ok(part)
            }
            ScanState::Payload {
                left,
                destination,
                is_final,
            } => {
                let mut part = chunk.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let (destination, is_final) = (*destination, *is_final);
                if destination == Destination::Parser {
                    part = part.min(out.remaining());
                    out.put_slice(&chunk[..part]);
                }
                *left -= part as u64;
                let is_done = *left == 0;
                if destination == Destination::HeldMessage {
                    self.hold(&chunk[..part])?;
                }
                if is_done {
                    self.end_frame(destination, is_final);
                }
                Ok(part)
            }
        }
    }

    /// Decides where the payload of a frame goes.
    fn begin_frame(&mut self, header: &[u8]) -> io::Result<()> {
        let (is_final, opcode) = (header[0] & 0x80 != 0, header[0] & 0x0f);
        let left = payload_length(header);
        let fits = |known: usize| left <= (self.limit - known.min(self.limit)) as u64;
        // Invalid frames are passed through, so that the parser rejects them.
        let is_regular = header[0] & 0x70 == 0 && header[1] & 0x80 == 0;
        let destination = match (opcode, &mut self.message) {
            (CONTINUE, Some(held)) if is_regular => {
                if let HeldMessage::Fragmented { payload, .. } = held
                    && !fits(payload.len())
                {
                    let mut oversized = Oversized::default();
                    oversized.add(payload);
                    *held = HeldMessage::Oversized(oversized);
                }
                Destination::HeldMessage
            }
            (TEXT | BINARY, Some(_)) if is_regular => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the server begins a message within another",
                ));
            }
            (TEXT | BINARY, None) if is_regular && !fits(0) => {
                self.message = Some(HeldMessage::Oversized(Oversized::default()));
                Destination::HeldMessage
            }
            (TEXT | BINARY, None) if is_regular && !is_final => {
                let payload = BytesMut::new();
                self.message = Some(HeldMessage::Fragmented { opcode, payload });
                Destination::HeldMessage
            }
            _ => Destination::Parser,
        };
        if destination == Destination::Parser {
            self.ready.extend_from_slice(header);
        }
        self.state = ScanState::Payload {
            left,
            destination,
            is_final,
        };
        if left == 0 {
            self.end_frame(destination, is_final);
        }
        Ok(())
    }

    /// Adds a part of the payload to the held message.
    fn hold(&mut self, part: &[u8]) -> io::Result<()> {
        match &mut self.message {
            Some(HeldMessage::Fragmented { payload, .. }) => payload.extend_from_slice(part),
            Some(HeldMessage::Oversized(oversized)) => {
                oversized.add(part);
                if oversized.is_endless(self.limit) {
                    self.inbox.too_long(&oversized.head, &[], self.limit);
                    return Err(io::Error::other(EndlessMessage));
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Handles the end of a frame. The final frame of a held message releases or reports the message.
    fn end_frame(&mut self, destination: Destination, is_final: bool) {
        self.state = ScanState::Header(BytesMut::with_capacity(MAX_HEADER));
        if destination == Destination::Parser || !is_final {
            return;
        }
        match self.message.take() {
            Some(HeldMessage::Fragmented { opcode, payload }) => {
                push_header(&mut self.ready, opcode, payload.len());
                self.ready.unsplit(payload);
            }
            Some(HeldMessage::Oversized(oversized)) => {
                self.inbox.too_long(&oversized.head, &oversized.tail, self.limit)
            }
            None => {}
        }
    }
}

/// How many bytes of the chunk belong to the handshake response. `matched` carries a partial match of its end across chunks.
fn until_end_of_handshake(chunk: &[u8], matched: &mut usize) -> usize {
    for (at, byte) in chunk.iter().enumerate() {
        *matched = match (*byte == END_OF_HANDSHAKE[*matched], *byte) {
            (true, _) => *matched + 1,
            (false, b'\r') => 1,
            (false, _) => 0,
        };
        if *matched == END_OF_HANDSHAKE.len() {
            return at + 1;
        }
    }
    chunk.len()
}

/// The length of a frame header, as far as its first bytes determine it. Two bytes are needed to know the whole length.
fn header_length(header: &[u8]) -> usize {
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

/// Appends the header of an unfragmented message.
fn push_header(out: &mut BytesMut, opcode: u8, length: usize) {
    out.extend_from_slice(&[0x80 | opcode]);
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
