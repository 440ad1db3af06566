//! Why the daemon refuses a tool that a command does not see.

use pegboard::{Failure, Kind, Outcome, Reply, ServerName};
use serde::{Deserialize, Serialize};

/// A daemon's reason to refuse a tool: its own config hides the tool, or holds it until a person accepts it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) failure: Option<Failure>,
    pub(super) server: Option<ServerName>,
    pub(super) tool: Option<String>,
}

impl Refusal {
    /// The reply to a call of the tool, if the daemon knows more about it than that it does not exist.
    pub(super) fn explain(self, mut reply: Reply) -> Reply {
        let Some(failure) = self.failure.filter(|failure| failure.kind != Kind::UnknownTool) else {
            return reply;
        };
        reply.outcome = Outcome::Refused(failure);
        (reply.server, reply.tool) = (self.server, self.tool);
        reply
    }
}
