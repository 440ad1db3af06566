//! Whether a server may be used, and the connections of one that may.

use std::sync::Arc;

use super::{outage::Outage, pool::Pool};

/// Whether a server may be used.
#[derive(Debug)]
pub(super) enum Availability {
    On(Arc<Pool>),
    /// Disabled by its config or by an operator.
    Off,
    /// The board has no room for the server, or its config is invalid.
    Refused(Arc<Outage>),
    /// Closed for good.
    Closed,
}

/// Connections that a server no longer uses. Dropping this closes them too, unless other servers share them.
#[derive(Default)]
#[must_use = "connections should be closed before their replacements start"]
pub(crate) struct DetachedConnections(pub(super) Option<Arc<Availability>>);

impl DetachedConnections {
    /// Closes the connections that no other server shares, and waits until they are closed.
    pub(crate) async fn close(self) {
        if let Some(Availability::On(pool)) = self.0.as_deref() {
            pool.close().await;
        }
    }
}
