//! The log level in the `_meta` of every request, in the era that sets it there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pegboard_base::sync::Mutex;

use super::log_level::LogLevel;

/// The log level in the `_meta` of every request, if one is set.
#[derive(Debug, Default)]
pub(super) struct RequestLogLevel {
    /// Most sessions set no level; this saves their requests the lock.
    is_set: AtomicBool,
    name: Mutex<Option<Arc<str>>>,
}

impl RequestLogLevel {
    pub(super) fn set(&self, level: Option<LogLevel>) {
        *self.name.lock() = level.map(|level| level.as_str().into());
        self.is_set.store(level.is_some(), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Arc<str>> {
        if !self.is_set.load(Ordering::Relaxed) {
            return None;
        }
        self.name.lock().clone()
    }
}
