//! A JSON-RPC error object.

use crate::{
    mask::{Counts, ServerMasker},
    outcome,
};

/// The error code of MCP's `URLElicitationRequiredError`: the user must visit a page first.
pub(crate) const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<serde_json::Value>,
    /// The counts of masked secrets. Set once the server's text is masked.
    #[serde(skip)]
    pub(crate) masked: Option<Box<Counts>>,
}

impl RpcError {
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
        masker.mask(&mut self.message, counts);
        // The URLs to visit must stay usable; they are masked where they are shown.
        if let Some(data) = &mut self.data
            && self.code != URL_ELICITATION_REQUIRED
        {
            masker.mask_value(data, counts);
        }
    }
}
