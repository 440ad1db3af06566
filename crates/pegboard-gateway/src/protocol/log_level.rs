//! [`LogLevel`]: the severity of a log message.

use std::sync::atomic::{AtomicU8, Ordering};

/// The severity of a log message, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const ALL: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// Returns the level of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find_map(|(known, level)| (known == name).then_some(level))
    }

    /// The name in messages.
    pub fn as_str(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// The lowest level that a client wants, which it may change at any time.
#[derive(Debug)]
pub(super) struct LowestLevel(AtomicU8);

impl LowestLevel {
    const NONE: u8 = u8::MAX;

    pub(super) fn get(&self) -> Option<LogLevel> {
        let (_, level) = LogLevel::ALL.get(usize::from(self.0.load(Ordering::Relaxed)))?;
        Some(*level)
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
