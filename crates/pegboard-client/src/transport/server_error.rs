//! [`ServerError`]: the error of a server's response, and whether its text is masked.

use std::ops::{Deref, DerefMut};

use pegboard_protocol::{RpcError, code};

use pegboard_mask::{Counts, ServerMasker};
use pegboard_tools::outcome;

/// The error of a server's response.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(from = "RpcError")]
pub struct ServerError {
    /// The JSON-RPC error object.
    pub error: RpcError,
    /// The counts of masked secrets. Set once the server's text is masked.
    pub masked: Option<Box<Counts>>,
}

impl From<RpcError> for ServerError {
    fn from(error: RpcError) -> Self {
        Self { error, masked: None }
    }
}

impl Deref for ServerError {
    type Target = RpcError;

    fn deref(&self) -> &RpcError {
        &self.error
    }
}

impl DerefMut for ServerError {
    fn deref_mut(&mut self) -> &mut RpcError {
        &mut self.error
    }
}

impl ServerError {
    /// An error that the server did not write itself.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError::new(code, message).into()
    }

    /// Whether its message or data has more bytes of text than `limit`.
    pub(crate) fn is_longer_than(&self, limit: usize) -> bool {
        let is_long = |data| outcome::is_longer_than(data, limit);
        self.message.len() > limit || self.data.as_ref().is_some_and(is_long)
    }

    /// Masks secrets in the server's text. Further calls do nothing.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        // The text may be megabytes long, so it is not masked again.
        if self.masked.is_some() {
            return;
        }
        let masker = masker.current();
        let counts = self.masked.insert(Box::default());
        masker.mask(&mut self.error.message, counts);
        // The URLs to visit must stay usable; they are masked where they are shown.
        if let Some(data) = &mut self.error.data
            && self.error.code != code::URL_ELICITATION_REQUIRED
        {
            masker.mask_value(data, counts);
        }
    }
}
