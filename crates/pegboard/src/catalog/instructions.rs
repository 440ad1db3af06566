//! The part of a system prompt that speaks of servers: the operator's words, the servers' words, their prompts, notes on tools, and which
//! servers are not there.

mod format;

use super::sanitize::{clean, cut, one_line};
use crate::{config::Preset, name::ServerName};

/// The most words about one server, in bytes, unless something else is said.
const PER_SERVER: usize = 4 << 10;
/// The longest reason why a server is not available.
const MAX_REASON: usize = 300;

/// How the text for a system prompt is made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Instructions {
    /// The form of the text.
    pub format: InstructionFormat,
    /// The most words about one server, in bytes, headings aside. The operator's words come first.
    pub per_server: usize,
    /// Whose own words are told; what the format's design does when not set.
    pub words: Option<ServerWords>,
    /// Whether servers that are not available are named.
    pub unavailable: bool,
}

/// The form of the text, after the design that it is known from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstructionFormat {
    /// Our own: words of servers are quoted line by line, so that they cannot pass for ours.
    #[default]
    Pegboard,
    /// TARSy: the config's words under `## NAME Instructions`, and `## Unavailable MCP Servers`.
    Tarsy,
    /// ai-agent: `#### MCP Server: NAME` and `##### Tool: NAME__TOOL`.
    AiAgent,
    /// goat: one section with a part for each server.
    Goat,
    /// Minion: a line `[MCP:NAME] …` for each tool.
    Minion,
}

impl From<Preset> for InstructionFormat {
    /// The form of the design that a config starts from: `Instructions::new(config.preset.into())`. antwort has none of its own.
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

/// Which servers' own words are told to the model. Words of the config are always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerWords {
    /// Those of servers that the config trusts.
    Trusted,
    /// Those of all.
    All,
    /// None.
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
    /// Text of this form, with the defaults of its design.
    pub fn new(format: InstructionFormat) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// Sets the most words about one server, in bytes.
    pub fn per_server(mut self, bytes: usize) -> Self {
        self.per_server = bytes;
        self
    }

    /// Sets whose own words are told.
    pub fn words(mut self, words: ServerWords) -> Self {
        self.words = Some(words);
        self
    }

    /// Leaves out which servers are not available.
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

/// What is known about one server, in words.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) server: ServerName,
    pub(crate) is_trusted: bool,
    /// What the config says about it.
    pub(crate) config: Option<String>,
    /// What it says about itself.
    pub(crate) said: Option<String>,
    /// Its prompts, with what they are for.
    pub(crate) prompts: Vec<(String, Option<String>)>,
    pub(crate) tools: Vec<Described>,
}

/// A tool in words.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    /// The name that models see.
    pub(crate) exposed: String,
    /// The name that its server knows it by.
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// What the config says about it.
    pub(crate) note: Option<String>,
}

/// The text about these servers, and about those that are not available and why. Both are put in order of names.
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

/// The words about one server, cleaned and within their bound.
struct Fitted {
    server: ServerName,
    config: Option<String>,
    said: Option<String>,
    /// One line each.
    prompts: Vec<String>,
    tools: Vec<Described>,
}

impl Fitted {
    /// What the operator says comes first, so that a server's own words never push it out.
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

/// How many bytes are left for words about a server.
struct Room(usize);

impl Room {
    /// The words as far as there is room for them, if anything is left of them.
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
