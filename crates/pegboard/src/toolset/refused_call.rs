//! Refuses a call on behalf of the program.

use tokio::time::Instant;

use super::toolset_handle::Toolset;
use crate::{
    audit::AuditRule,
    call::{self, CallGuard, ToolCall, Unroutable},
};
use pegboard_tools::outcome::{Failure, Kind, Reply};

impl Toolset {
    /// Refuses a call whose caller lacks a right that the program grants, such as a scope of its token. Nothing is sent to a server.
    ///
    /// The refusal is counted, published and written to the audit log like any other, by the rule `scope`.
    pub fn refuse_call(&self, call: &ToolCall, why: &str) -> Reply {
        let started = Instant::now();
        let guard = CallGuard::open(&self.view, call, started);
        let failure = Failure::new(Kind::NotPermitted, why);
        let refused = match self.known_tool(&call.name) {
            Some(known) => Unroutable::for_tool(&known.tool, AuditRule::Scope, failure),
            None => Unroutable {
                failure,
                identified: None,
                is_listed: false,
                rule: AuditRule::Scope,
            },
        };
        call::refuse(call, refused, started, guard)
    }
}
