//! The options for the text about servers: its format, its limit and its sources.

use pegboard_config::Preset;

/// The default limit for the text about one server, in bytes.
const PER_SERVER: usize = 4 << 10;

/// How the text for a system prompt is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Instructions {
    /// The format of the text.
    pub format: InstructionFormat,
    /// The limit for the text about one server, in bytes, without headings. The operator's text comes first.
    pub per_server: usize,
    /// Which servers' own instructions are included; `None` uses the format's default.
    pub words: Option<ServerWords>,
    /// Whether unavailable servers are listed.
    pub unavailable: bool,
}

/// The format of the text, named after the agent that it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionFormat {
    /// Pegboard's own: instructions of servers are quoted line by line, so that a model can tell them from the operator's.
    #[default]
    Pegboard,
    /// TARSy: the config's instructions under `## NAME Instructions`, and `## Unavailable MCP Servers`.
    Tarsy,
    /// ai-agent: `#### MCP Server: NAME` and `##### Tool: NAME__TOOL`.
    AiAgent,
    /// goat: one section with a part for each server.
    Goat,
    /// Minion: a line `[MCP:NAME] …` for each tool.
    Minion,
}

impl From<Preset> for InstructionFormat {
    /// The format of a config's preset: `Instructions::new(config.preset.into())`. The preset `antwort` has no format
    /// of its own.
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Tarsy => Self::Tarsy,
            Preset::AiAgent => Self::AiAgent,
            Preset::Goat => Self::Goat,
            Preset::Minion => Self::Minion,
            Preset::Pegboard | Preset::Antwort => Self::Pegboard,
        }
    }
}

/// Which servers' own instructions are included. Instructions of the config always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerWords {
    /// Servers that the config trusts.
    Trusted,
    /// All servers.
    All,
    /// No server.
    Nobody,
}

impl Default for Instructions {
    fn default() -> Self {
        Self {
            format: InstructionFormat::default(),
            per_server: PER_SERVER,
            words: None,
            unavailable: true,
        }
    }
}

impl Instructions {
    /// Creates options for this format, with its defaults.
    pub fn new(format: InstructionFormat) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Sets the limit for the text about one server, in bytes.
    pub fn per_server(mut self, bytes: usize) -> Self {
        self.per_server = bytes;
        self
    }

    /// Sets which servers' own instructions are included.
    pub fn words(mut self, words: ServerWords) -> Self {
        self.words = Some(words);
        self
    }

    /// Leaves out unavailable servers.
    pub fn without_unavailable(mut self) -> Self {
        self.unavailable = false;
        self
    }

    /// Returns whether the text of a server is included.
    pub(super) fn includes_text_of_server(&self, is_trusted: bool) -> bool {
        let default = match self.format {
            InstructionFormat::Pegboard => ServerWords::Trusted,
            InstructionFormat::Tarsy => ServerWords::Nobody,
            InstructionFormat::AiAgent | InstructionFormat::Goat | InstructionFormat::Minion => ServerWords::All,
        };
        match self.words.unwrap_or(default) {
            ServerWords::Trusted => is_trusted,
            ServerWords::All => true,
            ServerWords::Nobody => false,
        }
    }
}
