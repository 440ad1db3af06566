//! Messages as lines over a pair of byte streams: a writer that batches, a reader that never keeps more than one message.

mod lines;
mod read_buffer;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use lines::{Lines, MAX_FIRST};

use super::{
    Boxed, EndReason, FailureKind, Inbox, Outgoing, Sent, Wire, WireEnd, WireFailure,
    byte_budget::{self, Account, FLOOR, Share},
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
/// The messages that wait for the writer.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    /// What the messages may take of the board's budget.
    account: Account,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Outgoing>,
    bytes: usize,
    /// The bytes of the batch that the writer took last.
    writing: usize,
    /// The share of the budget for what waits and what is being written, as far as it exceeds the floor of the connection.
    share: Option<Share>,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(account: Account) -> Self {
        Self {
            queue: Mutex::default(),
            filled: Notify::new(),
            account,
        }
    }

    /// Takes a message in program order. One for which there is no room is failed at once. One that comes after the close is left: the end of
    /// the wire follows, and says more about it than could be said here.
    pub(super) fn push(&self, message: Outgoing, inbox: &dyn Inbox) {
        let refused = self.lock().take(message, &self.account);
        match refused {
            None => self.filled.notify_one(),
            Some((message, None)) => {
                message.delivery.abandon();
                let failure = WireFailure::new(FailureKind::Cut, Sent::No, "the connection is closed");
                if let Some(taken) = message.taken {
                    let _ = taken.send(Err(failure));
                }
            }
            Some((message, Some(text))) => {
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
                queue.written();
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

#[cfg(test)]
impl Default for Outbox {
    fn default() -> Self {
        Self::new(super::Budget::default().account(Limits::default().message_bytes))
    }
}

impl Queue {
    /// Takes a message, or returns it with what is in its way: nothing after the close.
    fn take(&mut self, message: Outgoing, account: &Account) -> Option<(Outgoing, Option<String>)> {
        let bytes = message.body.len();
        if self.closed {
            return Some((message, None));
        }
        if self.bytes + bytes > MAX_QUEUED_BYTES {
            let text = format!("more than {MAX_QUEUED_BYTES} bytes wait to be read by the server");
            return Some((message, Some(text)));
        }
        let waiting = self.bytes + self.writing + bytes;
        if let Err(problem) = account.grow_now(&mut self.share, waiting.saturating_sub(FLOOR)) {
            return Some((message, Some(problem.to_string())));
        }
        self.bytes += bytes;
        self.messages.push_back(message);
        None
    }

    /// The batch that was taken last is written: its part of the share is given back.
    fn written(&mut self) {
        self.writing = 0;
        byte_budget::shrink(&mut self.share, self.bytes.saturating_sub(FLOOR));
    }

    fn take_batch(&mut self, batch: &mut Vec<Outgoing>) {
        while let Some(message) = self.messages.front() {
            let bytes = message.body.len();
            if !batch.is_empty() && self.writing + bytes > WRITE_BATCH {
                break;
            }
            self.writing += bytes;
            self.bytes -= bytes;
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
    let (mut buffer, mut batch, mut under_way) = (Vec::new(), Vec::new(), WriteBatch::default());
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
struct WriteBatch {
    /// Each message with the offset in the batch at which its last byte has left. Its newline may be missing: a server reads the rest of
    /// its input as a message too.
    messages: Vec<(usize, Outgoing)>,
    /// How many bytes of the batch have left.
    written: usize,
}

impl WriteBatch {
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

impl Drop for WriteBatch {
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

/// Reads lines and hands those that are messages to the inbox, until the stream ends. Nothing is read while a long line waits for its
/// share of the board's budget.
pub(super) async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    inbox: Arc<dyn Inbox>,
    limit: usize,
    stdout_noise: StdoutNoise,
) -> EndReason {
    let mut lines = Lines::new(limit, inbox.budget().account(limit));
    loop {
        if let Err(end) = lines.make_room().await {
            return end;
        }
        let patience = match (lines.has_share(), lines.room.recent) {
            (true, _) => Some(byte_budget::LOOK),
            (false, 0) => None,
            (false, _) => Some(KEEP),
        };
        let reading = stream.read_buf(lines.space());
        let read = match patience {
            None => reading.await,
            Some(patience) => match tokio::time::timeout(patience, reading).await {
                Ok(read) => read,
                Err(_) => {
                    if !lines.has_share() {
                        lines.room.shrink();
                    }
                    continue;
                }
            },
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
                    stdout_noise.hear(&lines.noise.first, &lines.room.held, &*inbox);
                }
            }
            Err(error) => return EndReason::Broken(error.to_string()),
        }
    }
}

/// What a server printed that has not sent any message: its first line of text, and the start of a line that has no end yet. Often
/// that is a question to the user, or the address at which it listens instead.
#[derive(Debug, Clone, Default)]
pub(super) struct StdoutNoise(Arc<Mutex<String>>);

impl StdoutNoise {
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
        let outbox = Arc::new(Outbox::new(inbox.budget().account(limits.message_bytes)));
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let reading = read_lines(read, inbox.clone(), limits.message_bytes, StdoutNoise::default());
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
mod tests;
