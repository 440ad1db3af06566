//! The approver and approvals of views that set none.

use std::sync::Arc;

use crate::call::{Approvals, Approver};

/// Who is asked by views that name nobody, and what was agreed to for all views.
#[derive(Clone, Default)]
pub(super) struct HostDefaults {
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) agreed: Approvals,
}

impl std::fmt::Debug for HostDefaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostDefaults")
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}
