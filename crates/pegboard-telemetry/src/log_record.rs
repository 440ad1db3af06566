//! [`LogRecord`]: a line of a log.

use std::time::SystemTime;

use pegboard_base::telemetry::{SpanId, TraceId};

/// A line of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRecord {
    /// When it was written.
    pub at: SystemTime,
    /// How severe it is.
    pub severity: Severity,
    /// Its text.
    pub body: String,
    /// Its fields.
    pub attributes: Vec<(String, String)>,
    /// The trace and the span that it belongs to.
    pub span: Option<(TraceId, SpanId)>,
}

/// How severe a line of a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For those who follow each step.
    Trace,
    /// For those who look for an error.
    Debug,
    /// What happens as it should.
    Info,
    /// What may become an error.
    Warn,
    /// An error.
    Error,
}

impl Severity {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// Its `SeverityNumber`.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Trace => 1,
            Self::Debug => 5,
            Self::Info => 9,
            Self::Warn => 13,
            Self::Error => 17,
        }
    }
}
