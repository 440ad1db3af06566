//! A stream of bytes cut into lines, with a bound on every line and on what is no message.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use serde::de::IgnoredAny;

use super::read_buffer::ReadBuffer;
use crate::transport::{
    EndReason, Inbox,
    byte_budget::{Account, Growing, NoRoom},
    oversized::{KEPT_END, Oversized},
};

/// What a server may print before its first message, so that a program that is no MCP server is found out.
const MAX_NOISE_LINES: usize = 1000;
const MAX_NOISE_BYTES: usize = 64 << 10;

/// Cuts a stream of bytes into lines, with a bound on every line and on what is no message.
pub(super) struct Lines {
    pub(super) room: ReadBuffer,
    /// How much of what is held is known to have no newline.
    scanned: usize,
    limit: usize,
    skipping: Option<Skipping>,
    pub(super) noise: Noise,
    /// The share of the board's budget for the line that is being read.
    growing: Growing,
}

/// A line that is too long to keep, or for which there is no room.
struct Skipping {
    line: Oversized,
    no_room: Option<NoRoom>,
}

/// How much of the first line of noise is looked at.
pub(super) const MAX_FIRST: usize = 8 << 10;

/// What the server printed that is no message.
#[derive(Default)]
pub(super) struct Noise {
    lines: usize,
    bytes: usize,
    pub(super) first: String,
    /// After the first message noise is only counted.
    pub(super) harmless: bool,
}

impl Lines {
    pub(super) fn new(limit: usize, account: Account) -> Self {
        Self {
            room: ReadBuffer::new(),
            scanned: 0,
            limit,
            skipping: None,
            noise: Noise::default(),
            growing: Growing::new(account),
        }
    }

    /// Waits until there is room for more of a long line. A line for which there is none is skipped.
    pub(super) async fn make_room(&mut self) -> Result<(), EndReason> {
        let held = self.room.held.len();
        if self.skipping.is_none()
            && let Err(no_room) = self.growing.make_room(held, self.limit).await
        {
            self.skip(Some(no_room))?;
        }
        Ok(())
    }

    pub(super) fn has_share(&self) -> bool {
        self.growing.has_share()
    }

    /// Where the next bytes go.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        self.room.space(self.limit)
    }

    pub(super) fn drain(&mut self, inbox: &dyn Inbox) -> Result<(), EndReason> {
        let mut is_cut = false;
        while let Some(at) = memchr(b'\n', &self.room.held[self.scanned..]) {
            let end = self.scanned + at;
            let line = self.room.held.split_to(end).freeze();
            self.room.held.advance(1);
            self.scanned = 0;
            is_cut = true;
            let skipped = self.skipping.as_ref().map_or(0, |skipped| skipped.line.bytes);
            self.room.note(skipped + line.len());
            match self.skipping.take() {
                Some(skipped) => skipped.report(&line, inbox, self.limit),
                None if line.len() > self.limit => {
                    let kept = KEPT_END.min(line.len());
                    inbox.too_long(&line[..kept], &line[line.len() - kept..], self.limit);
                    self.growing.let_go();
                }
                None => {
                    let line = self.growing.complete(line);
                    self.line(&line, inbox)?;
                }
            }
        }
        self.scanned = self.room.held.len();
        if is_cut {
            self.room.settle();
        }
        if self.room.held.len() > self.limit || self.skipping.is_some() {
            self.skip(None)?;
        }
        Ok(())
    }

    /// Drops what was read of a line that cannot be kept, all but its ends.
    fn skip(&mut self, no_room: Option<NoRoom>) -> Result<(), EndReason> {
        self.growing.let_go();
        let part = self.room.held.split();
        self.scanned = 0;
        let skipping = self.skipping.get_or_insert_with(|| Skipping {
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

    fn line(&mut self, line: &Bytes, inbox: &dyn Inbox) -> Result<(), EndReason> {
        let line = trim(line);
        match line.first() {
            None => Ok(()),
            // Text never starts with a NUL, so this is a message that was spoilt; the call it answers should hear of it.
            Some(b'{' | b'[' | b'\0') => {
                self.noise.harmless = true;
                inbox.message(line);
                Ok(())
            }
            Some(_) => self.noise.count(&line, inbox),
        }
    }

    /// The stream has ended. A rest without newline is a message when it is whole; cut off, it is lost like all that did not come.
    pub(super) fn finish(&mut self, inbox: &dyn Inbox) {
        let rest = trim(&self.room.held.split().freeze());
        let is_message = matches!(rest.first(), Some(b'{' | b'['));
        if self.skipping.is_none() && is_message && serde_json::from_slice::<IgnoredAny>(&rest).is_ok() {
            inbox.message(rest);
        }
    }
}

impl Skipping {
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
            // Masked before it is cut: half a secret is one too.
            let shown = inbox.shown(&String::from_utf8_lossy(&line[..line.len().min(MAX_FIRST)]));
            self.first = shown[..shown.floor_char_boundary(200)].to_owned();
            tracing::warn!(server = inbox.server(), line = %self.first.escape_debug(), "the server prints text where messages belong");
        }
        if !self.harmless && (self.lines > MAX_NOISE_LINES || self.bytes > MAX_NOISE_BYTES) {
            return Err(EndReason::Protocol(format!(
                "it printed {} lines of text and no message; the first is {:?}",
                self.lines, self.first
            )));
        }
        Ok(())
    }
}

/// The line without a byte order mark, a carriage return and spaces around it.
fn trim(line: &Bytes) -> Bytes {
    let text = line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(line);
    let text = text.trim_ascii();
    line.slice_ref(text)
}
