//! A selection of servers and tools for one task, instead of all of them.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::fits;
use pegboard_base::hint::Hint;

/// The servers and tools for one task: `{"servers": [{"name": "k8s"}, {"name": "argocd", "tools": ["get_*"]}]}`.
///
/// It replaces the default, which is all servers with all tools; nothing is merged. What the config and the view deny stays denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The servers that may be used.
    servers: Vec<Selected>,
    /// Settings for the provider's native tools, such as web search. Pegboard does not use them; they are for the program that calls the
    /// model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    native_tools: BTreeMap<String, Option<bool>>,
}

/// One server of a selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Selected {
    /// Its name.
    pub name: String,
    /// Names or globs of its tools; none means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub tools: Vec<String>,
}

/// Reads `null` as an empty list.
fn or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Selection {
    /// Creates an empty selection, to which servers are added.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server with all its tools.
    #[must_use]
    pub fn server(self, name: impl Into<String>) -> Self {
        self.tools(name, Vec::<String>::new())
    }

    /// Adds a server with some of its tools, by name or glob.
    #[must_use]
    pub fn tools(mut self, server: impl Into<String>, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.servers.push(Selected {
            name: server.into(),
            tools: tools.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// Sets whether the model's native tool of this name is used.
    #[must_use]
    pub fn native_tool(mut self, name: impl Into<String>, on: bool) -> Self {
        self.native_tools.insert(name.into(), Some(on));
        self
    }

    /// Reads a selection from JSON. Whether its servers exist is not checked here: see `Pegboard::check_selection`.
    pub fn parse(json: &str) -> Result<Self, BadSelection> {
        let read: Self = serde_json::from_str(json).map_err(|error| BadSelection::Unreadable(error.to_string()))?;
        read.is_sound()?;
        Ok(read)
    }

    /// The servers that may be used.
    pub fn servers(&self) -> &[Selected] {
        &self.servers
    }

    /// The setting of the model's native tool of this name, if there is one.
    pub fn native(&self, tool: &str) -> Option<bool> {
        self.native_tools.get(tool).copied().flatten()
    }

    /// Checks that it names at least one server, and none twice.
    fn is_sound(&self) -> Result<(), BadSelection> {
        if self.servers.is_empty() {
            return Err(BadSelection::Empty);
        }
        let twice = self.servers.iter().enumerate().find(|(at, selected)| {
            let earlier = &self.servers[..*at];
            earlier.iter().any(|other| other.name == selected.name)
        });
        match twice {
            Some((_, selected)) => Err(BadSelection::Twice(selected.name.clone())),
            None => Ok(()),
        }
    }

    /// Checks that all its servers are among `known`. The error lists every unknown one.
    #[doc(hidden)]
    pub fn check_against(&self, known: &[&str]) -> Result<(), BadSelection> {
        self.is_sound()?;
        let unknown = self.servers.iter().map(|selected| selected.name.as_str());
        let unknown: Vec<_> = unknown
            .filter(|name| !known.contains(name))
            .map(str::to_owned)
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(BadSelection::UnknownServers {
            unknown,
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Whether the server is selected.
    #[doc(hidden)]
    pub fn has_server(&self, server: &str) -> bool {
        self.servers.iter().any(|selected| selected.name == server)
    }

    /// Whether the tool is selected: its server is, and has no globs or one that matches the tool.
    #[doc(hidden)]
    pub fn has_tool(&self, server: &str, tool: &str) -> bool {
        let selected = self.servers.iter().find(|selected| selected.name == server);
        selected.is_some_and(|selected| selected.tools.is_empty() || selected.tools.iter().any(|glob| fits(glob, tool)))
    }
}

/// Why a selection cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSelection {
    /// It is not valid JSON for a selection.
    #[error("the selection cannot be read: {0}")]
    Unreadable(String),
    /// It names no server.
    #[error("the selection names no server")]
    Empty,
    /// It names a server twice.
    #[error("the selection names server `{0}` twice")]
    Twice(String),
    /// It names unknown servers.
    #[error("the selection names {}, and there is no such server", NameList(unknown))]
    UnknownServers {
        /// The unknown servers.
        unknown: Vec<String>,
        /// The servers that exist.
        known: Vec<String>,
    },
}

impl Hint for BadSelection {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreadable(_) => r#"write {"servers": [{"name": "NAME", "tools": ["TOOL"]}]}"#.to_owned(),
            Self::Empty => "name at least one server, or leave the selection out".to_owned(),
            Self::Twice(_) => "put all its tools in one place".to_owned(),
            Self::UnknownServers { known, .. } if known.is_empty() => "no server is configured".to_owned(),
            Self::UnknownServers { known, .. } => format!("the servers are {}", known.join(", ")),
        })
    }
}

/// Displays names as a list.
struct NameList<'a>(&'a [String]);

impl fmt::Display for NameList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}`{}`", name.escape_debug())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the TARSy design, word for word.
    const TARSY: &str = r#"{"servers":[{"name":"k8s"},{"name":"argocd","tools":["get_application_status"]}],
                            "native_tools":{"google_search":false,"code_execution":true,"url_context":null}}"#;

    #[test]
    fn a_selection_of_tarsy_is_read_as_it_is_meant() {
        let selection = Selection::parse(TARSY).unwrap();
        for (server, tool, expected) in [
            ("k8s", "anything", true),
            ("argocd", "get_application_status", true),
            ("argocd", "delete_application", false),
            ("github", "anything", false),
        ] {
            assert_eq!(selection.has_tool(server, tool), expected, "{server}.{tool}");
        }
        let native = ["google_search", "code_execution", "url_context", "unheard_of"];
        assert_eq!(
            native.map(|tool| selection.native(tool)),
            [Some(false), Some(true), None, None]
        );
        let written = serde_json::to_string(&selection).unwrap();
        assert_eq!(Selection::parse(&written).unwrap(), selection);
    }

    #[test]
    fn no_tools_means_all_tools() {
        for text in [
            r#"{"servers":[{"name":"a"}]}"#,
            r#"{"servers":[{"name":"a","tools":[]}]}"#,
            r#"{"servers":[{"name":"a","tools":null}]}"#,
        ] {
            assert!(Selection::parse(text).unwrap().has_tool("a", "t"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_before_anything_starts() {
        let check = |text: &str, expected: &str| {
            let problem = Selection::parse(text).unwrap_err();
            assert!(problem.to_string().contains(expected), "{problem}");
            assert!(problem.hint().is_some());
        };
        check("[]", "cannot be read");
        check("{}", "missing field `servers`");
        check(r#"{"servers":[]}"#, "names no server");
        check(r#"{"servers":[{"name":"a"},{"name":"a","tools":["t"]}]}"#, "`a` twice");
        check(r#"{"servers":[{"name":"a","tool":["t"]}]}"#, "unknown field `tool`");
    }

    #[test]
    fn every_unknown_server_is_named() {
        let selection = Selection::new().server("a").tools("x", ["t"]).server("y");
        let problem = selection.check_against(&["a", "b"]).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "the selection names `x`, `y`, and there is no such server"
        );
        assert_eq!(problem.hint().unwrap(), "the servers are a, b");
        assert_eq!(Selection::new().server("a").check_against(&["a"]), Ok(()));
        assert_eq!(Selection::new().check_against(&["a"]), Err(BadSelection::Empty));
    }
}
