//! [`ListWarning`]: a problem of a listing that leaves the rest of it usable.

use std::fmt;

use serde::{Deserialize, Serialize};

use pegboard_base::{diagnosis::Code, name::ServerName};

/// A problem of a listing that leaves the rest of it usable.
///
/// Decide by its code, its server and its tools: the message may quote a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListWarning {
    /// The stable word for the problem.
    pub code: Code,
    /// The problem in words.
    pub message: String,
    /// The server that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerName>,
    /// The tools that it names, as `server.tool`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl ListWarning {
    /// Creates a warning that is about no server in particular.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            server: None,
            tools: Vec::new(),
        }
    }

    /// Sets the server that it is about.
    #[must_use]
    pub fn for_server(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Sets the tools that it names.
    #[must_use]
    pub fn for_tools(mut self, tools: impl IntoIterator<Item = String>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }
}

/// Writes the message, after the server if it is about one.
impl fmt::Display for ListWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "{server}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
