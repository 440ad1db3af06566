//! [`Caller`]: what is known of a client that was admitted.

use std::sync::Arc;

use pegboard::Principal;
use tokio_util::sync::CancellationToken;

/// An admitted client. Equal callers have the same rights.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The name of its token; `None` if no tokens are configured.
    pub(crate) principal: Option<Principal>,
    /// The only view that its token allows.
    pub(crate) view: Option<Arc<str>>,
    /// Cancelled when the token is removed, expires or gets other rights. Everything that the client has open ends then.
    pub(crate) revoked: CancellationToken,
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        (&self.principal, &self.view) == (&other.principal, &other.view)
    }
}

impl Eq for Caller {}
