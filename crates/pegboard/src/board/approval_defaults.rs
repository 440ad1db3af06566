//! The approver of views without their own, and the approvals for all views.

use std::sync::Arc;

use crate::call::{Approvals, Approver};

/// The approver of views without their own, and the approvals for all views.
#[derive(Clone, Default)]
pub(super) struct ApprovalDefaults {
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approvals: Approvals,
}

impl std::fmt::Debug for ApprovalDefaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalDefaults")
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}
