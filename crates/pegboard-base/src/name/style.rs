//! Styles of combining a server's and a tool's name.

use std::{fmt, str::FromStr};

use crate::label::serde_as_text;

/// How a tool is named for models. In every style the names of a view's tools are unique.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameStyle {
    /// `server.tool`; `server__tool` if a provider accepts no dots.
    Dot,
    /// `server__tool`.
    #[default]
    Dunder,
    /// `mcp__server__tool`.
    McpDunder,
    /// `mcp_server_tool`.
    McpSingle,
    /// `tool`, and `server__tool` for tools whose name several servers use.
    Bare,
    /// A text in which `{server}` and `{tool}` are replaced.
    Template(String),
}

impl NameStyle {
    /// The styles other than templates.
    #[doc(hidden)]
    pub const NAMED: [Self; 5] = [Self::Dot, Self::Dunder, Self::McpDunder, Self::McpSingle, Self::Bare];

    /// Reads a style as config files write it: `dot`, `dunder`, `mcp_dunder`, `mcp_single`, `bare`, or a text with `{tool}` in it.
    pub fn parse(text: &str) -> Result<Self, BadNameStyle> {
        match text {
            "dot" => Ok(Self::Dot),
            "dunder" => Ok(Self::Dunder),
            "mcp_dunder" => Ok(Self::McpDunder),
            "mcp_single" => Ok(Self::McpSingle),
            "bare" => Ok(Self::Bare),
            template if template.contains("{tool}") => Ok(Self::Template(template.to_owned())),
            other => Err(BadNameStyle(other.to_owned())),
        }
    }

    /// The style as a template.
    pub(super) fn template(&self) -> &str {
        match self {
            Self::Dot => "{server}.{tool}",
            Self::Dunder => "{server}__{tool}",
            Self::McpDunder => "mcp__{server}__{tool}",
            Self::McpSingle => "mcp_{server}_{tool}",
            Self::Bare => "{tool}",
            Self::Template(template) => template,
        }
    }
}

impl fmt::Display for NameStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dot => "dot",
            Self::Dunder => "dunder",
            Self::McpDunder => "mcp_dunder",
            Self::McpSingle => "mcp_single",
            Self::Bare => "bare",
            Self::Template(template) => template,
        })
    }
}

impl FromStr for NameStyle {
    type Err = BadNameStyle;

    fn from_str(text: &str) -> Result<Self, BadNameStyle> {
        Self::parse(text)
    }
}

serde_as_text!(NameStyle);

/// The error for an invalid naming style.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no naming style: write dot, dunder, mcp_dunder, mcp_single, bare, or a template such as `{{server}}_{{tool}}`"
)]
pub struct BadNameStyle(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_a_word_or_a_template_with_the_tool_in_it() {
        for style in NameStyle::NAMED {
            assert_eq!(NameStyle::parse(&style.to_string()), Ok(style));
        }
        let template = NameStyle::Template("x_{server}_{tool}".to_owned());
        assert_eq!(NameStyle::parse("x_{server}_{tool}"), Ok(template));
        for bad in ["", "Dot", "{server}", "tool"] {
            assert!(NameStyle::parse(bad).is_err(), "{bad}");
        }
    }
}
