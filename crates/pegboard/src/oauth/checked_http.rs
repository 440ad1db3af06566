//! HTTP requests to URLs that servers name.

use crate::hint::Hint;

#[derive(Debug)]
pub(super) struct CheckedHttp;

impl CheckedHttp {
    pub(super) fn new() -> Self {
        Self
    }
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpError(String);

impl HttpError {
    pub(super) fn is_temporary(&self) -> bool {
        false
    }
}

impl Hint for HttpError {
    fn hint(&self) -> Option<String> {
        None
    }
}
