//! The texts about one server, before and after they are limited.

use super::options::Instructions;
use crate::catalog::sanitize::{one_line, remove_invisible, truncate};
use pegboard_base::name::ServerName;

/// The texts about one server.
#[derive(Debug, Clone)]
pub struct Section {
    /// The name of the server.
    pub server: ServerName,
    /// Whether the config trusts the server. The options may leave out the texts of servers that it does not trust.
    pub is_trusted: bool,
    /// The config's instructions for it.
    pub config: Option<String>,
    /// The server's own instructions.
    pub instructions: Option<String>,
    /// Its prompts and their descriptions.
    pub prompts: Vec<(String, Option<String>)>,
    /// The tools of the server that the model may use.
    pub tools: Vec<ToolText>,
}

/// The texts about a tool.
#[derive(Debug, Clone)]
pub struct ToolText {
    /// The name that models see.
    pub exposed: String,
    /// The name that its server uses.
    pub name: String,
    /// The server's description of the tool.
    pub description: Option<String>,
    /// The config's note on it.
    pub note: Option<String>,
}

/// The texts about one server, sanitized and within their limit.
pub(super) struct FittedSection {
    pub(super) server: ServerName,
    pub(super) config: Option<String>,
    pub(super) instructions: Option<String>,
    /// One line each.
    pub(super) prompts: Vec<String>,
    pub(super) tools: Vec<ToolText>,
}

impl FittedSection {
    /// The operator's text comes first, so that the server's own text never displaces it.
    pub(super) fn fit(options: &Instructions, section: &Section) -> Self {
        let mut left = BytesLeft(options.per_server);
        let config = section.config.as_deref().and_then(|text| left.fit(text));
        let mut tools = section.tools.clone();
        for tool in &mut tools {
            tool.note = tool.note.take().and_then(|text| left.fit(&text));
        }
        let is_included = options.includes_text_of_server(section.is_trusted);
        let instructions = section
            .instructions
            .as_deref()
            .filter(|_| is_included)
            .and_then(|text| left.fit(text));
        let prompts = section
            .prompts
            .iter()
            .filter(|_| is_included)
            .filter_map(|(name, purpose)| {
                let line = match purpose {
                    Some(purpose) => format!("{name}: {purpose}"),
                    None => name.clone(),
                };
                left.fit(&one_line(&line))
            });
        Self {
            prompts: prompts.collect(),
            server: section.server.clone(),
            config,
            instructions,
            tools,
        }
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = (&ToolText, &str)> {
        self.tools.iter().filter_map(|tool| Some((tool, tool.note.as_deref()?)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.config.is_none() && self.instructions.is_none() && self.prompts.is_empty() && self.notes().next().is_none()
    }
}

/// The bytes left for the text about a server.
struct BytesLeft(usize);

impl BytesLeft {
    /// Sanitizes the text and truncates it to the space left; `None` if nothing remains.
    fn fit(&mut self, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        remove_invisible(&mut text);
        let mut text = text.trim().to_owned();
        truncate(&mut text, self.0);
        self.0 -= text.len();
        (!text.is_empty()).then_some(text)
    }
}
