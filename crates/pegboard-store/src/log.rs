//! A bounded log: entries with rising positions, of which the oldest are dropped.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits::{MAX_LOG_BYTES, MAX_LOG_ENTRIES};

/// How much of a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// The number of entries.
    pub entries: usize,
    /// Their size together. The newest entry is kept even if it alone is larger.
    pub bytes: usize,
}

impl LogBounds {
    /// The bounds within what a store can hold.
    pub(crate) fn capped(self) -> Self {
        Self {
            entries: self.entries.clamp(1, MAX_LOG_ENTRIES),
            bytes: self.bytes.clamp(1, MAX_LOG_BYTES),
        }
    }
}

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its position: higher than that of all entries that were appended before, also if the log expired in between.
    pub position: u64,
    /// What was appended.
    pub bytes: Bytes,
}

/// What a read of a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRead {
    /// The entries, oldest first: as many as were asked for, and not many more bytes than a value may have.
    pub entries: Vec<LogEntry>,
    /// Whether entries after the position may be lost: they were dropped, or the log is not the one that the position is from.
    pub missed: bool,
    /// The position of the last entry of the log; 0 if there is no log.
    pub end: u64,
}

/// A log. Positions begin at the time of its creation in microseconds, so that they rise after the log expired and was created again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogState {
    /// The position before the first entry that was ever appended.
    pub(crate) base: u64,
    /// How many entries were dropped.
    pub(crate) dropped: u64,
    pub(crate) entries: VecDeque<Bytes>,
    pub(crate) bytes: usize,
}

impl LogState {
    pub(crate) fn new(now_micros: u64) -> Self {
        Self {
            base: now_micros,
            ..Self::default()
        }
    }

    /// Appends the entries and drops what is too much. Returns the position of the last entry.
    pub(crate) fn append(&mut self, entries: Vec<Bytes>, bounds: LogBounds) -> u64 {
        let bounds = bounds.capped();
        for entry in entries {
            self.bytes += entry.len();
            self.entries.push_back(entry);
            while self.entries.len() > bounds.entries || (self.bytes > bounds.bytes && self.entries.len() > 1) {
                let Some(dropped) = self.entries.pop_front() else { break };
                self.bytes -= dropped.len();
                self.dropped += 1;
            }
        }
        self.end()
    }

    /// The position of the last entry.
    fn end(&self) -> u64 {
        self.base + self.dropped + self.entries.len() as u64
    }

    /// The entries after a position: at most `max`, and not many more than `max_bytes`.
    pub(crate) fn read_after(&self, position: u64, max: usize, max_bytes: usize) -> LogRead {
        let before = self.base + self.dropped;
        let (skipped, missed) = match position {
            0 => (0, self.dropped > 0),
            _ if position < before || position > self.end() => (0, true),
            _ => (position - before, false),
        };
        let mut read = LogRead {
            entries: Vec::new(),
            missed,
            end: self.end(),
        };
        let skip = usize::try_from(skipped).unwrap_or(usize::MAX);
        let mut bytes = 0;
        for (position, entry) in (before + skipped + 1..).zip(self.entries.iter().skip(skip)).take(max) {
            bytes += entry.len();
            if bytes > max_bytes && !read.entries.is_empty() {
                break;
            }
            read.entries.push(LogEntry {
                position,
                bytes: entry.clone(),
            });
        }
        read
    }

    /// What a read finds where there is no log.
    pub(crate) fn read_nothing(position: u64) -> LogRead {
        LogRead {
            missed: position > 0,
            ..LogRead::default()
        }
    }
}
