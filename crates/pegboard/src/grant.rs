//! What a caller may use: everything, some servers, or some tools. A grant is a pair of server and tool; no name is taken apart to find
//! out what it grants.

mod word;

pub(crate) use word::Offer;

use crate::{filter::fits, name::ServerName};

/// What a caller may use. Nothing, until something is granted.
///
/// Grants can be given as pairs, or as the words `mcp_integration`, `mcp_<server>` and `mcp_<server>_<tool>`. A word is looked up among
/// what the servers offer. One that could mean tools of several servers grants nothing, and a view says so in its warnings. Any other word
/// is a capability that the config may ask for (`tools.NAME.requires`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    everything: bool,
    /// A server, and a name or glob of its tools.
    pairs: Vec<(ServerName, String)>,
    words: Vec<String>,
}

impl Grants {
    /// Nothing is granted.
    pub fn new() -> Self {
        Self::default()
    }

    /// What these words grant together: `mcp_integration`, `mcp_<server>`, `mcp_<server>_<tool>`. Other words grant nothing.
    pub fn of_words(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        words.into_iter().fold(Self::new(), Self::word)
    }

    /// Grants all tools of all servers.
    #[must_use]
    pub fn everything(mut self) -> Self {
        self.everything = true;
        self
    }

    /// Grants all tools of a server.
    #[must_use]
    pub fn server(self, server: ServerName) -> Self {
        self.tool(server, "*")
    }

    /// Grants one tool of a server, or those whose names fit a glob.
    #[must_use]
    pub fn tool(mut self, server: ServerName, tool: impl Into<String>) -> Self {
        self.pairs.push((server, tool.into()));
        self
    }

    /// Grants what a word says, or adds a capability.
    #[must_use]
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Whether a word is among those that were given, whatever it grants.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|given| given == word)
    }

    /// What is granted on a board where the servers offer this, and words of warning.
    pub(crate) fn among(&self, offers: &[Offer<'_>]) -> Granted {
        let mut granted = Granted {
            everything: self.everything,
            globs: self.pairs.clone(),
            ..Granted::default()
        };
        for word in &self.words {
            word::resolve(word, offers, &mut granted);
        }
        granted
    }
}

/// Grants whose words were looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    everything: bool,
    /// A server, and a glob of its tools.
    globs: Vec<(ServerName, String)>,
    /// A server, and one of its tools.
    tools: Vec<(ServerName, String)>,
    /// The servers that were never listed and may have a tool that a word means.
    unsure: Vec<ServerName>,
    pub(crate) warnings: Vec<String>,
}

impl Granted {
    pub(crate) fn covers(&self, server: &ServerName, tool: &str) -> bool {
        let fit = |(granted, glob): &(ServerName, String)| granted == server && fits(glob, tool);
        let is = |(granted, name): &(ServerName, String)| granted == server && name == tool;
        self.everything || self.globs.iter().any(fit) || self.tools.iter().any(is)
    }
}

impl Granted {
    /// Whether anything of a server may be granted.
    pub(crate) fn may_cover(&self, server: &ServerName) -> bool {
        let of_server = |(granted, _): &(ServerName, String)| granted == server;
        self.everything
            || self.globs.iter().any(of_server)
            || self.tools.iter().any(of_server)
            || self.unsure.contains(server)
    }

    /// Whether all of a server is granted, which is what its resources and prompts need.
    pub(crate) fn covers_all_of(&self, server: &ServerName) -> bool {
        let is_all = |(granted, glob): &(ServerName, String)| granted == server && glob == "*";
        self.everything || self.globs.iter().any(is_all)
    }
}

#[cfg(test)]
mod tests;
