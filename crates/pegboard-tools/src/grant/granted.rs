//! The servers and tools that resolved grants cover.

use crate::filter::fits;
use pegboard_base::name::ServerName;

/// Resolved grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    pub(super) everything: bool,
    /// A server, and a glob of its tools.
    pub(super) globs: Vec<(ServerName, String)>,
    /// A server, and one of its tools.
    pub(super) tools: Vec<(ServerName, String)>,
    /// Servers that were never listed and may have a tool that a word names.
    pub(super) unsure: Vec<ServerName>,
    /// The words that are ambiguous and therefore grant nothing, each as a message for the operator.
    pub warnings: Vec<String>,
}

impl Granted {
    /// Whether this tool of the server is granted.
    pub fn covers(&self, server: &ServerName, tool: &str) -> bool {
        let fit = |(granted, glob): &(ServerName, String)| granted == server && fits(glob, tool);
        let is = |(granted, name): &(ServerName, String)| granted == server && name == tool;
        self.everything || self.globs.iter().any(fit) || self.tools.iter().any(is)
    }

    /// Whether any tool of a server may be granted.
    pub fn may_cover(&self, server: &ServerName) -> bool {
        let of_server = |(granted, _): &(ServerName, String)| granted == server;
        self.everything
            || self.globs.iter().any(of_server)
            || self.tools.iter().any(of_server)
            || self.unsure.contains(server)
    }

    /// Whether all of a server is granted, which its resources and prompts require.
    pub fn covers_all_of(&self, server: &ServerName) -> bool {
        let is_all = |(granted, glob): &(ServerName, String)| granted == server && glob == "*";
        self.everything || self.globs.iter().any(is_all)
    }
}
