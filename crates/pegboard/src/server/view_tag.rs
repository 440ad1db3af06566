//! [`ViewTag`]: identifies the view, or the principal, that owns a server.

use std::sync::{Arc, atomic::AtomicU64};

use pegboard_base::caller::Principal;
use pegboard_client::credential::CallerRights;

/// The view that owns a server, or the principal whose views share it.
#[derive(Debug, Clone)]
pub(crate) struct ViewTag {
    /// The view's name in status rows. `None` for a server that all views of a principal share.
    pub(crate) name: Option<Arc<str>>,
    /// The principal of the view.
    pub(crate) principal: Option<Principal>,
    /// Which of the principal's access tokens may be exchanged.
    pub(super) rights: Option<CallerRights>,
    /// Unique among the views and principals of the board.
    pub(super) number: u64,
    /// Counts the changes of the servers.
    pub(super) revision: Arc<AtomicU64>,
}

impl ViewTag {
    pub(super) fn new(
        name: Option<Arc<str>>,
        principal: Option<Principal>,
        rights: Option<CallerRights>,
        number: u64,
    ) -> Self {
        Self {
            name,
            principal,
            rights,
            number,
            revision: Arc::new(AtomicU64::new(1)),
        }
    }
}
