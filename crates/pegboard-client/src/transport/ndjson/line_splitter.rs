//! Splits a byte stream into lines, with bounds on the length of a line and on text that is no message.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use serde::de::IgnoredAny;

use super::read_buffer::ReadBuffer;
use crate::transport::{
    byte_budget::{NoRoom, Quota, ReadPermit},
    oversized::{KEPT_BYTES, Oversized},
    wire::Inbox,
    wire_end::EndReason,
};

/// How much text a program may print before its first message. A program that prints more is no MCP server.
const MAX_NOISE_LINES: usize = 1000;
const MAX_NOISE_BYTES: usize = 64 << 10;

/// How many bytes of a line of text are inspected.
pub(super) const MAX_INSPECTED: usize = 8 << 10;

/// Splits a byte stream into lines and hands the messages among them to an inbox.
pub(super) struct LineSplitter {
    pub(super) buffer: ReadBuffer,
    /// How many unread bytes are known to contain no newline.
    scanned: usize,
    limit: usize,
    skipping: Option<SkippedLine>,
    pub(super) noise: Noise,
    /// The permit of the byte budget for the line that is being read.
    permit: ReadPermit,
}

/// A line that is not kept, because it is too long or got no permit.
struct SkippedLine {
    line: Oversized,
    no_room: Option<NoRoom>,
}

/// Counts lines that are no messages.
#[derive(Default)]
pub(super) struct Noise {
    lines: usize,
    bytes: usize,
    /// The first line of text, masked and truncated.
    pub(super) first_line: String,
    /// Whether a message has come. After that, noise never ends the connection.
    pub(super) has_messages: bool,
}

impl LineSplitter {
    pub(super) fn new(limit: usize, quota: Quota) -> Self {
        Self {
            buffer: ReadBuffer::new(),
            scanned: 0,
            limit,
            skipping: None,
            noise: Noise::default(),
            permit: ReadPermit::new(quota),
        }
    }

    /// Waits for a permit before more of a long line is read. A line that gets none is skipped.
    pub(super) async fn reserve(&mut self) -> Result<(), EndReason> {
        let held = self.buffer.unread.len();
        if self.skipping.is_none()
            && let Err(no_room) = self.permit.reserve(held, self.limit).await
        {
            self.skip(Some(no_room))?;
        }
        Ok(())
    }

    pub(super) fn has_permit(&self) -> bool {
        self.permit.has_permit()
    }

    /// The buffer for the next read.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        self.buffer.space(self.limit)
    }

    /// Handles every complete line that was read.
    pub(super) fn drain(&mut self, inbox: &dyn Inbox) -> Result<(), EndReason> {
        let mut has_split = false;
        while let Some(at) = memchr(b'\n', &self.buffer.unread[self.scanned..]) {
            let end = self.scanned + at;
            let line = self.buffer.unread.split_to(end).freeze();
            self.buffer.unread.advance(1);
            self.scanned = 0;
            has_split = true;
            let skipped = self.skipping.as_ref().map_or(0, |skipped| skipped.line.bytes);
            self.buffer.record_line(skipped + line.len());
            match self.skipping.take() {
                Some(skipped) => skipped.report(&line, inbox, self.limit),
                None if line.len() > self.limit => {
                    let kept = KEPT_BYTES.min(line.len());
                    inbox.too_long(&line[..kept], &line[line.len() - kept..], self.limit);
                    self.permit.release();
                }
                None => {
                    let line = self.permit.complete(line);
                    self.handle_line(&line, inbox)?;
                }
            }
        }
        self.scanned = self.buffer.unread.len();
        if has_split {
            self.buffer.return_to_chunk();
        }
        if self.buffer.unread.len() > self.limit || self.skipping.is_some() {
            self.skip(None)?;
        }
        Ok(())
    }

    /// Drops what was read of a line that is not kept, except for its first and last bytes.
    fn skip(&mut self, no_room: Option<NoRoom>) -> Result<(), EndReason> {
        self.permit.release();
        let part = self.buffer.unread.split();
        self.scanned = 0;
        let skipping = self.skipping.get_or_insert_with(|| SkippedLine {
            line: Oversized::default(),
            no_room,
        });
        skipping.line.add(&part);
        if skipping.line.is_endless(self.limit) {
            return Err(EndReason::Protocol(format!(
                "a line has no end after {} bytes",
                skipping.line.bytes
            )));
        }
        Ok(())
    }

    fn handle_line(&mut self, line: &Bytes, inbox: &dyn Inbox) -> Result<(), EndReason> {
        let line = trim(line);
        match line.first() {
            None => Ok(()),
            // Text never starts with a NUL, so this is a corrupted message. The inbox fails the request that it answers.
            Some(b'{' | b'[' | b'\0') => {
                self.noise.has_messages = true;
                inbox.message(line);
                Ok(())
            }
            Some(_) => self.noise.count(&line, inbox),
        }
    }

    /// Handles the end of the stream. An unterminated last line counts as a message if it is complete JSON.
    pub(super) fn finish(&mut self, inbox: &dyn Inbox) {
        let rest = trim(&self.buffer.unread.split().freeze());
        let is_message = matches!(rest.first(), Some(b'{' | b'['));
        if self.skipping.is_none() && is_message && serde_json::from_slice::<IgnoredAny>(&rest).is_ok() {
            inbox.message(rest);
        }
    }
}

impl SkippedLine {
    fn report(mut self, last: &[u8], inbox: &dyn Inbox, limit: usize) {
        self.line.add(last);
        let Oversized { head, tail, .. } = &self.line;
        match self.no_room {
            Some(no_room) => inbox.no_room(head, tail, no_room),
            None => inbox.too_long(head, tail, limit),
        }
    }
}

impl Noise {
    fn count(&mut self, line: &[u8], inbox: &dyn Inbox) -> Result<(), EndReason> {
        self.lines += 1;
        self.bytes += line.len();
        if self.lines == 1 {
            // Masked before it is truncated: half a secret would not be recognised.
            let shown = inbox.mask_output(&String::from_utf8_lossy(&line[..line.len().min(MAX_INSPECTED)]));
            self.first_line = shown[..shown.floor_char_boundary(200)].to_owned();
            tracing::warn!(target: "pegboard::stdout_noise", server = inbox.server(), line = %self.first_line.escape_debug(), "the server prints text where messages belong");
        }
        if !self.has_messages && (self.lines > MAX_NOISE_LINES || self.bytes > MAX_NOISE_BYTES) {
            return Err(EndReason::Flood {
                lines: self.lines,
                first_line: self.first_line.clone(),
            });
        }
        Ok(())
    }
}

/// Removes a byte order mark, and whitespace at both ends.
fn trim(line: &Bytes) -> Bytes {
    let text = line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(line);
    let text = text.trim_ascii();
    line.slice_ref(text)
}
