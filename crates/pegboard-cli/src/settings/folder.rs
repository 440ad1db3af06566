//! The folder that the program is used in.

use std::path::PathBuf;

/// The working directory.
pub(crate) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}
