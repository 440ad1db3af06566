//! [`Caller`]: what is known of a client that was admitted.

use std::sync::Arc;

use pegboard::Principal;

/// An admitted client. Equal callers have the same rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The name of its token; `None` if no tokens are configured.
    pub(crate) principal: Option<Principal>,
    /// The only view that its token allows.
    pub(crate) view: Option<Arc<str>>,
}
