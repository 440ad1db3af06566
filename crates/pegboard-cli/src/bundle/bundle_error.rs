//! [`BundleError`]: why a bundle is not added.

use std::fmt;

/// Why a bundle is not added.
#[derive(Debug)]
pub(crate) struct BundleError(String);

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Creates an error from its text.
pub(super) fn error(message: impl Into<String>) -> BundleError {
    BundleError(message.into())
}
