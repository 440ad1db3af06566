//! [`HostError`]: why a file of a host or of Pegboard is not read or changed.

use std::{fmt, path::Path};

use crate::document::{CutShort, DocumentError};

/// Why a file is not read or changed, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What kind of failure it is, for the exit code of a command.
    pub kind: HostErrorKind,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostErrorKind {
    /// What was asked for cannot be done with these files.
    Usage,
    /// It is not permitted.
    Refused,
    /// The system does not let a file be written.
    Unavailable,
    /// The deadline passed while another process was editing the file. The message names the file.
    TimeUp,
    /// A signal arrived while another process was editing the file.
    Interrupted,
}

impl HostError {
    pub(crate) fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            message: message.into(),
            hint,
            kind: HostErrorKind::Usage,
        }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            kind: HostErrorKind::Unavailable,
        }
    }

    /// The error of an edit that was not made. `error` names the file.
    pub fn refused_edit(error: &DocumentError) -> Self {
        match error.cut_short {
            Some(_) => Self::from(error.clone()),
            None => Self::unavailable(format!("the file cannot be changed: {error}")),
        }
    }

    /// The error of a file that cannot be written.
    pub fn unwritable(file: &Path, reason: impl fmt::Display) -> Self {
        Self::unavailable(format!("{} cannot be written: {reason}", file.display()))
    }
}

/// The error of a config file that cannot be read or changed as it is.
impl From<DocumentError> for HostError {
    fn from(error: DocumentError) -> Self {
        Self {
            message: error.to_string(),
            hint: None,
            kind: match error.cut_short {
                Some(CutShort::TimeUp) => HostErrorKind::TimeUp,
                Some(CutShort::Interrupted) => HostErrorKind::Interrupted,
                None => HostErrorKind::Usage,
            },
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}
