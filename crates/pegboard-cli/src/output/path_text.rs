//! Paths as texts of JSON documents.

use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;

#[cfg(unix)]
use serde::Serializer;

/// A path as a text of a document. Bytes that are no UTF-8, which JSON cannot hold, become `\u{fffd}`.
pub(crate) fn path_text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// Serializes a field as [`path_text`].
#[cfg(unix)]
pub(crate) fn serialize_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Serializes a field as [`path_text`], or null.
#[cfg(unix)]
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn serialize_optional_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.serialize_some(&path.to_string_lossy()),
        None => serializer.serialize_none(),
    }
}
