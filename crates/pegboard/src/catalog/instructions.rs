//! Generates the part of a system prompt about servers: the operator's and the servers' instructions, prompts, notes on tools, and which
//! servers are unavailable.

mod format;

use super::sanitize::{clean, cut, one_line};
use crate::{config::Preset, name::ServerName};

/// The default limit for the text about one server, in bytes.
const PER_SERVER: usize = 4 << 10;
/// The longest reason why a server is unavailable.
const MAX_REASON: usize = 300;

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
    /// Pegboard's own: instructions of servers are quoted line by line, so that they cannot pass for ours.
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
    /// The format of a config's preset: `Instructions::new(config.preset.into())`. antwort has none of its own.
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

/// Which servers' own instructions reach the model. Those of the config always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    fn tells_words_of(&self, section: &Section) -> bool {
        let by_design = match self.format {
            InstructionFormat::Pegboard => ServerWords::Trusted,
            InstructionFormat::Tarsy => ServerWords::Nobody,
            InstructionFormat::AiAgent | InstructionFormat::Goat | InstructionFormat::Minion => ServerWords::All,
        };
        match self.words.unwrap_or(by_design) {
            ServerWords::Trusted => section.is_trusted,
            ServerWords::All => true,
            ServerWords::Nobody => false,
        }
    }
}

/// The texts about one server.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) server: ServerName,
    pub(crate) is_trusted: bool,
    /// The config's instructions for it.
    pub(crate) config: Option<String>,
    /// The server's own instructions.
    pub(crate) said: Option<String>,
    /// Its prompts and their descriptions.
    pub(crate) prompts: Vec<(String, Option<String>)>,
    pub(crate) tools: Vec<Described>,
}

/// The texts about a tool.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    /// The name that models see.
    pub(crate) exposed: String,
    /// The name by which its server knows it.
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The config's note on it.
    pub(crate) note: Option<String>,
}

/// Renders the text about these servers, and about unavailable ones with the reason. Both are sorted by name.
pub(crate) fn render(options: &Instructions, sections: &[Section], unavailable: &[(ServerName, String)]) -> String {
    let mut sections: Vec<Fitted> = sections.iter().map(|section| Fitted::of(options, section)).collect();
    sections.sort_by(|a, b| a.server.cmp(&b.server));
    let reason = |(server, why): &(ServerName, String)| {
        let mut why = one_line(why);
        cut(&mut why, MAX_REASON);
        (server.clone(), why)
    };
    let mut unavailable: Vec<_> = unavailable.iter().filter(|_| options.unavailable).map(reason).collect();
    unavailable.sort();
    format::text(options.format, &sections, &unavailable)
}

/// The texts about one server, sanitized and within their limit.
struct Fitted {
    server: ServerName,
    config: Option<String>,
    said: Option<String>,
    /// One line each.
    prompts: Vec<String>,
    tools: Vec<Described>,
}

impl Fitted {
    /// The operator's text comes first, so that the server's own text never displaces it.
    fn of(options: &Instructions, section: &Section) -> Self {
        let mut room = Room(options.per_server);
        let config = section.config.as_deref().and_then(|words| room.fit(words));
        let mut tools = section.tools.clone();
        for tool in &mut tools {
            tool.note = tool.note.take().and_then(|words| room.fit(&words));
        }
        let tells = options.tells_words_of(section);
        let said = section
            .said
            .as_deref()
            .filter(|_| tells)
            .and_then(|words| room.fit(words));
        let prompts = section.prompts.iter().filter(|_| tells).filter_map(|(name, purpose)| {
            let line = match purpose {
                Some(purpose) => format!("{name}: {purpose}"),
                None => name.clone(),
            };
            room.fit(&one_line(&line))
        });
        Self {
            prompts: prompts.collect(),
            server: section.server.clone(),
            config,
            said,
            tools,
        }
    }

    fn notes(&self) -> impl Iterator<Item = (&Described, &str)> {
        self.tools.iter().filter_map(|tool| Some((tool, tool.note.as_deref()?)))
    }

    fn is_silent(&self) -> bool {
        self.config.is_none() && self.said.is_none() && self.prompts.is_empty() && self.notes().next().is_none()
    }
}

/// The bytes left for the text about a server.
struct Room(usize);

impl Room {
    /// Sanitizes the text and truncates it to the space left; `None` if nothing remains.
    fn fit(&mut self, words: &str) -> Option<String> {
        let mut words = words.to_owned();
        clean(&mut words);
        let mut words = words.trim().to_owned();
        cut(&mut words, self.0);
        self.0 -= words.len();
        (!words.is_empty()).then_some(words)
    }
}

#[cfg(test)]
mod tests;
