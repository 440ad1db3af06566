//! Untrusted output that has reached the agent of a view.

use super::toolset_handle::Toolset;
use pegboard_base::name::ServerName;

impl Toolset {
    /// The untrusted servers whose output has reached the agent since the view was opened or [`Toolset::clear_taint`] was called. With
    /// [`View::after_untrusted`](crate::View::after_untrusted) or `taint` in the config, calls of high risk are restricted while there are any.
    pub fn taint(&self) -> Vec<ServerName> {
        self.view.rules.taint.servers()
    }

    /// Forgets which untrusted output has reached the agent. Call it only when that output is no longer in the model's context, or when a
    /// person has seen what the agent is about to do.
    pub fn clear_taint(&self) {
        self.view.rules.taint.clear();
    }
}
