//! From which level on a server is to log, where every request says so.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::desired_state::LogLevel;

/// The level that every request names, if one is set.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// Nearly nobody sets one, so nearly nobody takes the lock.
    is_set: AtomicBool,
    word: Mutex<Option<Arc<str>>>,
}

impl Level {
    pub(super) fn set(&self, level: Option<LogLevel>) {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner) = level.map(|level| level.as_str().into());
        self.is_set.store(level.is_some(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Arc<str>> {
        if !self.is_set.load(Ordering::Relaxed) {
            return None;
        }
        self.word.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
