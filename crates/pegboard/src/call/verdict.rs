//! The verdict on a call, and the rule behind it.

use crate::audit::AuditRule;
use pegboard_tools::outcome::Failure;

/// Why a call may be made: the approval that covers it, if it needs one.
pub(super) type Verdict = Result<Option<AuditRule>, Denied>;

/// Why a call must not be made.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) rule: AuditRule,
    /// Boxed, because most calls are made.
    pub(super) failure: Box<Failure>,
}

impl Denied {
    pub(super) fn by(rule: AuditRule, failure: Failure) -> Self {
        Self {
            rule,
            failure: Box::new(failure),
        }
    }
}
