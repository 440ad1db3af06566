//! What a caller may use: everything, some servers, or some tools. A grant is a pair of server and tool; names are never split to resolve
//! a grant.

mod grant_words;
mod granted;

pub use grant_words::Offer;
pub use granted::Granted;

use pegboard_base::name::ServerName;

/// What a caller may use. Empty grants allow nothing.
///
/// Grants can be given as pairs, or as the words `mcp_integration`, `mcp_<server>` and `mcp_<server>_<tool>`. A word is looked up among the
/// servers' tools. An ambiguous word, which could mean tools of several servers, grants nothing, and the view has a warning about it. Any
/// other word is a capability that the config may require (`tools.NAME.requires`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    everything: bool,
    /// A server, and a name or glob of its tools.
    pairs: Vec<(ServerName, String)>,
    words: Vec<String>,
}

impl Grants {
    /// Creates grants for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates grants from words: `mcp_integration`, `mcp_<server>`, `mcp_<server>_<tool>`. Other words grant no tools.
    pub fn from_words(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        words.into_iter().fold(Self::new(), Self::word)
    }

    /// Grants all tools of all servers.
    #[must_use]
    pub fn everything(mut self) -> Self {
        self.everything = true;
        self
    }

    /// Grants all tools of a server. A text that can be no name of a server grants nothing.
    #[must_use]
    pub fn server(self, server: impl AsRef<str>) -> Self {
        self.tool(server, "*")
    }

    /// Grants one tool of a server, or those whose names match a glob.
    #[must_use]
    pub fn tool(mut self, server: impl AsRef<str>, tool: impl Into<String>) -> Self {
        let server = ServerName::parse(server.as_ref()).ok();
        self.pairs.extend(server.map(|server| (server, tool.into())));
        self
    }

    /// Adds a grant word or a capability.
    #[must_use]
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Whether this word was added, whether or not it grants tools.
    #[doc(hidden)]
    pub fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|given| given == word)
    }

    /// Resolves the grants against the tools that the servers offer.
    #[doc(hidden)]
    pub fn among(&self, offers: &[Offer<'_>]) -> Granted {
        let mut granted = Granted {
            everything: self.everything,
            globs: self.pairs.clone(),
            ..Granted::default()
        };
        for word in &self.words {
            grant_words::resolve(word, offers, &mut granted);
        }
        granted
    }
}

#[cfg(test)]
mod tests;
