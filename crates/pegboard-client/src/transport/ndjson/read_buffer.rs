//! The memory that lines are read into: a small chunk for most lines, and large, reused buffers for long ones.

use bytes::BytesMut;

/// How much is read at once, and the capacity a buffer shrinks back to.
pub(super) const READ_CHUNK: usize = 64 << 10;
/// The least free capacity that is offered to a read.
pub(super) const MIN_ROOM: usize = 4 << 10;
/// The most bytes of large buffers that are kept for reuse.
const MAX_KEPT: usize = 4 << 20;
/// Large buffers are allocated in multiples of this, so that one fits lines that are a little longer than the last.
const STEP: usize = 256 << 10;
/// How many large buffers are kept. The next line is read while a caller still holds the last one.
const MAX_LARGE: usize = 3;

/// Bytes that were read and not yet split into lines, and space for more.
pub(super) struct ReadBuffer {
    pub(super) unread: BytesMut,
    /// The small chunk, while a long line is read into a large buffer.
    chunk: Option<BytesMut>,
    /// Large buffers whose lines were handed to the inbox. Once a line is dropped, its buffer is reused without an allocation.
    large: Vec<BytesMut>,
    /// The length of the last long line; zero after the large buffers were freed.
    pub(super) last_long: usize,
}

impl ReadBuffer {
    pub(super) fn new() -> Self {
        Self {
            unread: BytesMut::with_capacity(READ_CHUNK),
            chunk: None,
            large: Vec::new(),
            last_long: 0,
        }
    }

    /// The buffer for the next read, with free capacity. A line that outgrows its chunk gets as much as the last long line took, or twice
    /// what it has so far, within `limit`.
    pub(super) fn space(&mut self, limit: usize) -> &mut BytesMut {
        let held = self.unread.len();
        if self.unread.capacity() - held < MIN_ROOM {
            let more = held.max((self.last_long + MIN_ROOM).saturating_sub(held));
            let more = (held + more).next_multiple_of(STEP) - held;
            let more = more.min(limit.saturating_sub(held)).max(READ_CHUNK);
            if held < READ_CHUNK / 2 {
                self.unread.reserve(READ_CHUNK);
            } else if self.chunk.is_some() {
                self.unread.reserve(more);
            } else {
                let mut large = self.take_large(held + more);
                large.extend_from_slice(&self.unread);
                self.unread.clear();
                self.chunk = Some(std::mem::replace(&mut self.unread, large));
            }
        }
        &mut self.unread
    }

    /// A large buffer whose line was dropped, or a new one.
    fn take_large(&mut self, bytes: usize) -> BytesMut {
        match self.large.iter_mut().position(|buffer| buffer.try_reclaim(bytes)) {
            Some(at) => self.large.swap_remove(at),
            None => BytesMut::with_capacity(bytes),
        }
    }

    /// Records the length of a line that was split off.
    pub(super) fn record_line(&mut self, line: usize) {
        if line > READ_CHUNK {
            self.last_long = line;
        }
    }

    /// Returns to the small chunk after a line was split off: the next line is probably short.
    pub(super) fn return_to_chunk(&mut self) {
        if self.unread.len() < READ_CHUNK / 2
            && let Some(mut chunk) = self.chunk.take()
        {
            chunk.extend_from_slice(&self.unread);
            self.unread.clear();
            self.large.push(std::mem::replace(&mut self.unread, chunk));
            // Without a recorded long line, `shrink` is never called, so no large buffer is kept.
            let most = MAX_KEPT.checked_div(self.last_long).unwrap_or(0).min(MAX_LARGE);
            let surplus = self.large.len().saturating_sub(most);
            self.large.drain(..surplus);
        }
        if self.last_long > MAX_KEPT {
            self.shrink();
        }
    }

    /// Frees the memory of long lines.
    pub(super) fn shrink(&mut self) {
        let mut small = BytesMut::with_capacity(READ_CHUNK.max(self.unread.len()));
        small.extend_from_slice(&self.unread);
        *self = Self {
            unread: small,
            ..Self::new()
        };
    }
}
