//! Messages as lines over a pair of byte streams: a writer that batches, a reader that never keeps more than one message.

mod room;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, PoisonError},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use serde::de::IgnoredAny;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use room::Room;

use super::{
    Boxed, EndReason, FailureKind, Inbox, Outgoing, Sent, Wire, WireEnd, WireFailure,
    skipped::{KEPT_END, Skipped},
};
use crate::{
    config::Limits,
    sync::{Mutex, MutexGuard},
};

/// How many bytes may wait to be written. A server that reads nothing makes callers fail instead of filling memory.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// How much is read at once, and the capacity a buffer shrinks back to.
const READ_CHUNK: usize = 64 << 10;
/// A chunk is used until less than this is left of it.
const MIN_ROOM: usize = 4 << 10;
/// Buffers of long messages are used for the next ones as well, if they are not larger than this together and the next ones come soon.
const MAX_KEPT: usize = 4 << 20;
const KEEP: Duration = Duration::from_secs(1);
/// Writes are gathered up to this size before they are handed to the system.
const WRITE_BATCH: usize = 128 << 10;
/// What a server may print before its first message, so that a program that is no MCP server is found out.
const MAX_NOISE_LINES: usize = 1000;
const MAX_NOISE_BYTES: usize = 64 << 10;

/// The messages that wait for the writer.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Outgoing>,
    bytes: usize,
    closed: bool,
}

impl Outbox {
    /// Takes a message in program order. One for which there is no room is failed at once. One that comes after the close is left: the end of
    /// the wire follows, and says more about it than could be said here.
    pub(super) fn push(&self, message: Outgoing, inbox: &dyn Inbox) {
        let refused = {
            let mut queue = self.lock();
            if queue.closed || queue.bytes + message.body.len() > MAX_QUEUED_BYTES {
                Some((message, queue.closed))
            } else {
                queue.bytes += message.body.len();
                queue.messages.push_back(message);
                None
            }
        };
        match refused {
            None => self.filled.notify_one(),
            Some((message, true)) => {
                message.delivery.abandon();
                let failure = WireFailure::new(FailureKind::Cut, Sent::No, "the connection is closed");
                if let Some(taken) = message.taken {
                    let _ = taken.send(Err(failure));
                }
            }
            Some((message, false)) => {
                let text = format!("more than {MAX_QUEUED_BYTES} bytes wait to be read by the server");
                let failure = WireFailure::new(FailureKind::Busy, Sent::No, text);
                if let Some(taken) = message.taken {
                    let _ = taken.send(Err(failure.clone()));
                }
                if let Some(id) = message.id {
                    inbox.failed(id, failure);
                }
            }
        }
    }

    /// Waits for messages and takes as many as fit one batch; `false` once the outbox is closed.
    pub(super) async fn next_batch(&self, batch: &mut Vec<Outgoing>) -> bool {
        loop {
            {
                let mut queue = self.lock();
                if !queue.messages.is_empty() {
                    queue.take_batch(batch);
                    return true;
                }
                if queue.closed {
                    return false;
                }
            }
            // Whoever fills the outbox in between leaves a permit.
            self.filled.notified().await;
        }
    }

    /// Takes nothing more. What is queued already is still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// The state is valid after every statement, so a panic elsewhere cannot have broken it.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take_batch(&mut self, batch: &mut Vec<Outgoing>) {
        let mut size = 0;
        while let Some(message) = self.messages.front() {
            if !batch.is_empty() && size + message.body.len() > WRITE_BATCH {
                break;
            }
            size += message.body.len();
            self.bytes -= message.body.len();
            batch.extend(self.messages.pop_front());
        }
    }
}

/// Writes messages as lines until the outbox is closed or the stream fails. The stream is closed on return.
pub(super) async fn write_lines(
    mut stream: impl AsyncWrite + Unpin,
    outbox: Arc<Outbox>,
    limit: Duration,
) -> Option<EndReason> {
    let (mut buffer, mut batch, mut under_way) = (Vec::new(), Vec::new(), UnderWay::default());
    while outbox.next_batch(&mut batch).await {
        buffer.clear();
        for message in batch.drain(..) {
            if message.delivery.begin() {
                buffer.extend_from_slice(&message.body);
                under_way.messages.push((buffer.len(), message));
                buffer.push(b'\n');
            }
        }
        let result = tokio::time::timeout(limit, write_all(&mut stream, &buffer, &mut under_way.written)).await;
        under_way.settle();
        buffer.shrink_to(WRITE_BATCH);
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Some(EndReason::Broken(error.to_string())),
            Err(_) => return Some(EndReason::Stalled(limit)),
        }
    }
    None
}

/// The messages of the batch that is being written. Dropping it, as when the process ends in the middle of a write, settles which of them
/// left whole.
#[derive(Default)]
struct UnderWay {
    /// Each message with the offset in the batch at which its last byte has left. Its newline may be missing: a server reads the rest of
    /// its input as a message too.
    messages: Vec<(usize, Outgoing)>,
    /// How many bytes of the batch have left.
    written: usize,
}

impl UnderWay {
    fn settle(&mut self) {
        let written = std::mem::take(&mut self.written);
        for (end, message) in self.messages.drain(..) {
            let is_written = written >= end;
            if is_written {
                message.delivery.done();
            } else {
                message.delivery.undo();
            }
            if let Some(taken) = message.taken {
                let unwritten = || WireFailure::new(FailureKind::Cut, Sent::No, "it could not be written");
                let _ = taken.send(if is_written { Ok(()) } else { Err(unwritten()) });
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.settle();
    }
}

/// Writes everything and keeps count, so that it is known which messages were complete when a write fails.
async fn write_all(stream: &mut (impl AsyncWrite + Unpin), buffer: &[u8], written: &mut usize) -> io::Result<()> {
    while *written < buffer.len() {
        match stream.write(&buffer[*written..]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => *written += n,
        }
    }
    stream.flush().await
}

/// Reads lines and hands those that are messages to the inbox, until the stream ends.
pub(super) async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    inbox: Arc<dyn Inbox>,
    limit: usize,
    murmur: Murmur,
) -> EndReason {
    let mut lines = Lines::new(limit);
    loop {
        let read = if lines.room.recent == 0 {
            stream.read_buf(lines.space()).await
        } else {
            match tokio::time::timeout(KEEP, stream.read_buf(lines.space())).await {
                Ok(read) => read,
                Err(_) => {
                    lines.room.shrink();
                    continue;
                }
            }
        };
        match read {
            Ok(0) => {
                lines.finish(&*inbox);
                return EndReason::Eof;
            }
            Ok(_) => {
                if let Err(end) = lines.drain(&*inbox) {
                    return end;
                }
                if !lines.noise.harmless {
                    murmur.hear(&lines.noise.first, &lines.room.held, &*inbox);
                }
            }
            Err(error) => return EndReason::Broken(error.to_string()),
        }
    }
}

/// What a server printed that has not sent any message: its first line of text, and the start of a line that has no end yet. Often
/// that is a question to the user, or the address at which it listens instead.
#[derive(Debug, Clone, Default)]
pub(super) struct Murmur(Arc<Mutex<String>>);

impl Murmur {
    fn hear(&self, first: &str, rest: &[u8], inbox: &dyn Inbox) {
        let rest = inbox.shown(&String::from_utf8_lossy(&rest[..rest.len().min(MAX_FIRST)]));
        let rest = &rest[..rest.floor_char_boundary(200)];
        let printed = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let text = format!("{}\n{}", printed(first), printed(rest)).trim().to_owned();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    pub(super) fn text(&self) -> Option<String> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!text.is_empty()).then(|| text.clone())
    }
}

/// Cuts a stream of bytes into lines, with a bound on every line and on what is no message.
struct Lines {
    room: Room,
    /// How much of what is held is known to have no newline.
    scanned: usize,
    limit: usize,
    skipping: Option<Skipped>,
    noise: Noise,
}

/// How much of the first line of noise is looked at.
const MAX_FIRST: usize = 8 << 10;

/// What the server printed that is no message.
#[derive(Default)]
struct Noise {
    lines: usize,
    bytes: usize,
    first: String,
    /// After the first message noise is only counted.
    harmless: bool,
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self {
            room: Room::new(),
            scanned: 0,
            limit,
            skipping: None,
            noise: Noise::default(),
        }
    }

    /// Where the next bytes go.
    fn space(&mut self) -> &mut BytesMut {
        self.room.space(self.limit)
    }

    fn drain(&mut self, inbox: &dyn Inbox) -> Result<(), EndReason> {
        let mut is_cut = false;
        while let Some(at) = memchr(b'\n', &self.room.held[self.scanned..]) {
            let end = self.scanned + at;
            let line = self.room.held.split_to(end).freeze();
            self.room.held.advance(1);
            self.scanned = 0;
            is_cut = true;
            let skipped = self.skipping.as_ref().map_or(0, |skipped| skipped.bytes);
            self.room.note(skipped + line.len());
            match self.skipping.take() {
                Some(mut skipped) => {
                    skipped.add(&line);
                    inbox.too_long(&skipped.head, &skipped.tail, self.limit);
                }
                None if line.len() > self.limit => {
                    let kept = KEPT_END.min(line.len());
                    inbox.too_long(&line[..kept], &line[line.len() - kept..], self.limit);
                }
                None => self.line(&line, inbox)?,
            }
        }
        self.scanned = self.room.held.len();
        if is_cut {
            self.room.settle();
        }
        if self.room.held.len() > self.limit || self.skipping.is_some() {
            self.skip()?;
        }
        Ok(())
    }

    /// Drops what was read of a line that is too long, all but its ends.
    fn skip(&mut self) -> Result<(), EndReason> {
        let part = self.room.held.split();
        self.scanned = 0;
        let skipped = self.skipping.get_or_insert_default();
        skipped.add(&part);
        if skipped.is_endless(self.limit) {
            return Err(EndReason::Protocol(format!(
                "a line has no end after {} bytes",
                skipped.bytes
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
    fn finish(&mut self, inbox: &dyn Inbox) {
        let rest = trim(&self.room.held.split().freeze());
        let is_message = matches!(rest.first(), Some(b'{' | b'['));
        if self.skipping.is_none() && is_message && serde_json::from_slice::<IgnoredAny>(&rest).is_ok() {
            inbox.message(rest);
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

/// A wire over streams whose other end lives in this process.
pub(super) struct Attached {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Attached {
    pub(super) fn new<R, W>(read: R, write: W, limits: &Limits, inbox: Arc<dyn Inbox>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let outbox = Arc::new(Outbox::default());
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let reading = read_lines(read, inbox.clone(), limits.message_bytes, Murmur::default());
        let writing = write_lines(write, outbox.clone(), limits.write);
        let (end, ending) = (inbox.clone(), (stop.clone(), outbox.clone()));
        tasks.spawn(async move {
            let (stop, outbox) = ending;
            let reason = tokio::select! {
                biased;
                () = stop.cancelled() => EndReason::Closed,
                reason = reading => reason,
                Some(reason) = writing => reason,
            };
            outbox.close();
            end.ended(WireEnd::new(reason));
        });
        tasks.close();
        Self {
            outbox,
            inbox,
            stop,
            tasks,
        }
    }
}

impl Wire for Attached {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
#[path = "pipe_tests.rs"]
mod tests;
