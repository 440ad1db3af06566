//! The approver of views without their own, and the approvals for all views.

use std::sync::Arc;

use crate::call::{Approvals, Approver};

/// The approver of views without their own, and the approvals for all views.
#[derive(Clone, Default)]
pub(super) struct HostDefaults {
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approvals: Approvals,
}

impl std::fmt::Debug for HostDefaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostDefaults")
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}
