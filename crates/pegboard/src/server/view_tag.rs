//! [`ViewTag`]: identifies the view that owns a server.

use std::sync::{Arc, atomic::AtomicU64};

/// The view that owns a server.
#[derive(Debug, Clone)]
pub(crate) struct ViewTag {
    /// The view's name in status rows.
    pub(crate) name: Arc<str>,
    pub(super) number: u64,
    /// Counts the changes of the view's servers.
    pub(super) revision: Arc<AtomicU64>,
}
