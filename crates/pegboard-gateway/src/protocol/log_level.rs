//! The lowest level from which a client wants logs.

use std::sync::atomic::{AtomicU8, Ordering};

pub use pegboard::watch::LogLevel;

/// The lowest level that a client wants, which it may change at any time.
#[derive(Debug)]
pub(super) struct LowestLevel(AtomicU8);

impl LowestLevel {
    const NONE: u8 = u8::MAX;

    pub(super) fn get(&self) -> Option<LogLevel> {
        let level = LogLevel::ALL.get(usize::from(self.0.load(Ordering::Relaxed)));
        level.copied()
    }

    pub(super) fn set(&self, level: Option<LogLevel>) {
        self.0
            .store(level.map_or(Self::NONE, |level| level as u8), Ordering::Relaxed);
    }
}

impl Default for LowestLevel {
    fn default() -> Self {
        Self(AtomicU8::new(Self::NONE))
    }
}
