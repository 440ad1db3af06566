//! The memory into which lines are read: one chunk for most of them, and large buffers for long lines, which are used again.

use bytes::BytesMut;

use super::{MAX_KEPT, MIN_ROOM, READ_CHUNK};

/// Large buffers are made in steps of this, so that one serves for lines that are a little longer than the last.
const STEP: usize = 256 << 10;
/// How many large buffers are kept. While one caller reads its line, the next line is read already.
const MOST_LARGE: usize = 3;

/// What was read and has not become a line yet, and where more of it goes.
pub(super) struct ReadBuffer {
    pub(super) held: BytesMut,
    /// The chunk, while a long line is read into a large buffer.
    chunk: Option<BytesMut>,
    /// Large buffers whose lines were handed on. When a line is gone, its buffer can be used again without asking the system for memory.
    large: Vec<BytesMut>,
    /// The length of the last long line, until the large buffers are given back.
    pub(super) recent: usize,
}

impl ReadBuffer {
    pub(super) fn new() -> Self {
        Self {
            held: BytesMut::with_capacity(READ_CHUNK),
            chunk: None,
            large: Vec::new(),
            recent: 0,
        }
    }

    /// Where the next bytes go. A line that outgrows its chunk is given as much as the last long one had, or twice what it has, but not
    /// more than it may have.
    pub(super) fn space(&mut self, limit: usize) -> &mut BytesMut {
        let held = self.held.len();
        if self.held.capacity() - held < MIN_ROOM {
            let likely = held.max((self.recent + MIN_ROOM).saturating_sub(held));
            let likely = (held + likely).next_multiple_of(STEP) - held;
            let more = likely.min(limit.saturating_sub(held)).max(READ_CHUNK);
            if held < READ_CHUNK / 2 {
                self.held.reserve(READ_CHUNK);
            } else if self.chunk.is_some() {
                self.held.reserve(more);
            } else {
                let mut large = self.take_large(held + more);
                large.extend_from_slice(&self.held);
                self.held.clear();
                self.chunk = Some(std::mem::replace(&mut self.held, large));
            }
        }
        &mut self.held
    }

    /// A buffer whose line is gone, or a new one.
    fn take_large(&mut self, bytes: usize) -> BytesMut {
        match self.large.iter_mut().position(|buffer| buffer.try_reclaim(bytes)) {
            Some(at) => self.large.swap_remove(at),
            None => BytesMut::with_capacity(bytes),
        }
    }

    /// Notes the length of a line that was taken out.
    pub(super) fn note(&mut self, line: usize) {
        if line > READ_CHUNK {
            self.recent = line;
        }
    }

    /// What is held begins with a new line, which is likely to be a short one.
    pub(super) fn settle(&mut self) {
        if self.held.len() < READ_CHUNK / 2
            && let Some(mut chunk) = self.chunk.take()
        {
            chunk.extend_from_slice(&self.held);
            self.held.clear();
            self.large.push(std::mem::replace(&mut self.held, chunk));
            // Without a long line it is not known when they are to be given back.
            let most = MAX_KEPT.checked_div(self.recent).unwrap_or(0).min(MOST_LARGE);
            let surplus = self.large.len().saturating_sub(most);
            self.large.drain(..surplus);
        }
        if self.recent > MAX_KEPT {
            self.shrink();
        }
    }

    /// Gives back what long lines took.
    pub(super) fn shrink(&mut self) {
        let mut small = BytesMut::with_capacity(READ_CHUNK.max(self.held.len()));
        small.extend_from_slice(&self.held);
        *self = Self {
            held: small,
            ..Self::new()
        };
    }
}
