//! [`CallsInFlight`]: the slots of the journal, one for each call in flight.
//!
//! A slot is one line of JSON, padded with spaces, or a zero byte at its start if it is free. A call costs one write when it begins and one when
//! it ends. It has no arguments and no results. The benchmark of the journal includes this file, so it uses nothing else of the program.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use pegboard::{
    Timestamp,
    journal::{CallJournal, JournalEntry, JournalProblem},
};
use pegboard_base::sync::Mutex;
use serde::Serialize;

/// The length of a slot.
pub(super) const SLOT: usize = 256;

/// The number of slots. A gateway has no more requests in flight; a call without a slot is not noted.
pub(super) const SLOTS: usize = 4096;

/// The longest text of each field, in bytes, so that a line fits its slot even if every character must be escaped once.
const MAX_TEXT: usize = 24;

/// The ticket of a call without a slot.
pub(super) const NOT_NOTED: u64 = u64::MAX;

/// What is said if all slots are taken.
const FULL: &str = "its 4096 slots are taken; `pegboard status` frees those that an earlier daemon has left";

/// The calls in flight of this daemon.
#[derive(Debug)]
pub(crate) struct CallsInFlight {
    file: File,
    slots: Arc<Slots>,
    /// Whether the newest call could not be noted. Read by every call, so that the lock is taken only after a failure.
    is_failing: AtomicBool,
    problem: Mutex<Option<JournalProblem>>,
}

/// Which slots of a journal are taken.
#[derive(Debug)]
pub(super) struct Slots {
    /// One bit for each slot that is taken.
    taken: Vec<AtomicU64>,
    /// Where the last free slot was found.
    last: AtomicUsize,
}

/// One slot as it is written.
#[derive(Serialize)]
pub(super) struct SlotLine<'a> {
    pub(super) id: &'a str,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    pub(super) principal: Option<&'a str>,
    pub(super) started_unix_ms: u64,
}

impl CallsInFlight {
    /// The slots of a file, of which some are taken already.
    pub(super) fn new(file: File, kept: &[usize]) -> Self {
        Self {
            file,
            slots: Arc::new(Slots::new(kept)),
            is_failing: AtomicBool::new(false),
            problem: Mutex::default(),
        }
    }

    /// Which slots are taken.
    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Writes a call into a slot.
    pub(super) fn note(&self, line: &SlotLine<'_>) -> u64 {
        let Some(slot) = self.slots.take() else {
            self.note_failure(FULL.to_owned());
            return NOT_NOTED;
        };
        let mut bytes = [b' '; SLOT];
        bytes[SLOT - 1] = b'\n';
        // What does not fit is cut off, and told as damaged.
        let _ = serde_json::to_writer(&mut bytes[..SLOT - 1], line);
        match self.file.write_all_at(&bytes, (slot * SLOT) as u64) {
            Ok(()) if self.is_failing.load(Ordering::Relaxed) => self.clear_failure(),
            Ok(()) => {}
            Err(error) => self.note_failure(format!(
                "its file cannot be written: {error}; free the disk of the folder"
            )),
        }
        slot as u64
    }

    fn note_failure(&self, message: String) {
        let mut problem = self.problem.lock();
        let before = problem.take();
        // Said once for each outage and reason.
        if before.as_ref().is_none_or(|before| before.message != message) {
            tracing::warn!(why = message, "calls in flight cannot be noted in the journal");
        }
        let since = before.map_or_else(Timestamp::now, |before| before.since);
        *problem = Some(JournalProblem::new(message, since));
        self.is_failing.store(true, Ordering::Relaxed);
    }

    fn clear_failure(&self) {
        let mut problem = self.problem.lock();
        self.is_failing.store(false, Ordering::Relaxed);
        if problem.take().is_some() {
            tracing::info!("calls in flight are noted in the journal again");
        }
    }
}

impl Slots {
    fn new(kept: &[usize]) -> Self {
        let taken: Vec<AtomicU64> = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        for slot in kept {
            taken[slot / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
        }
        Self {
            taken,
            last: AtomicUsize::new(0),
        }
    }

    /// Frees a slot.
    pub(super) fn release(&self, slot: usize) {
        self.taken[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Release);
    }

    /// Takes a free slot.
    pub(super) fn take(&self) -> Option<usize> {
        let first = self.last.load(Ordering::Relaxed);
        for step in 0..self.taken.len() {
            let word = (first + step) % self.taken.len();
            let mut bits = self.taken[word].load(Ordering::Relaxed);
            while bits != u64::MAX {
                let free = bits.trailing_ones();
                let before = self.taken[word].fetch_or(1 << free, Ordering::Acquire);
                if before & (1 << free) == 0 {
                    self.last.store(word, Ordering::Relaxed);
                    return Some(word * 64 + free as usize);
                }
                bits = before;
            }
        }
        None
    }
}

impl CallJournal for CallsInFlight {
    fn begin(&self, call: &JournalEntry<'_>) -> u64 {
        self.note(&SlotLine {
            id: cut(call.id),
            server: cut(call.server.as_str()),
            tool: cut(call.tool),
            principal: call.principal.map(|principal| cut(principal.as_str())),
            started_unix_ms: now(),
        })
    }

    fn end(&self, ticket: u64) {
        let Some(slot) = usize::try_from(ticket).ok().filter(|slot| *slot < SLOTS) else {
            return;
        };
        free(&self.file, slot);
        self.slots.release(slot);
    }

    fn problem(&self) -> Option<JournalProblem> {
        self.problem.lock().clone()
    }
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn free(file: &File, slot: usize) {
    if let Err(error) = file.write_all_at(&[0], (slot * SLOT) as u64) {
        tracing::debug!(%error, "the end of a call cannot be noted");
    }
}

/// The start of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}
