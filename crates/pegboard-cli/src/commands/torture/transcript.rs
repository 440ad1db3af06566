//! [`Transcript`]: what a case sent and received last, for the report of a failure.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many lines of each direction are kept.
const KEPT: usize = 2;
/// How much of a line is kept.
const LINE: usize = 300;

/// The last messages of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct Transcript {
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    sent: VecDeque<String>,
    came: VecDeque<String>,
}

impl Transcript {
    /// Records what was sent. What came before it no longer matters.
    pub(super) fn sent(&self, text: &str) {
        let mut lines = self.lines();
        lines.came.clear();
        keep(&mut lines.sent, text);
    }

    pub(super) fn came(&self, text: &str) {
        keep(&mut self.lines().came, text);
    }

    /// The last message that was sent.
    pub(super) fn last_sent(&self) -> Option<String> {
        self.lines().sent.back().cloned()
    }

    /// What came after it.
    pub(super) fn last_came(&self) -> Option<String> {
        let lines = self.lines();
        let came: Vec<&str> = lines.came.iter().map(String::as_str).collect();
        (!came.is_empty()).then(|| came.join("\n"))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(lines: &mut VecDeque<String>, text: &str) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(shortened(text));
}

/// The beginning of a text, and how long it is if there is more.
pub(super) fn shortened(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(LINE) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), text.len()),
    }
}
