//! [`Place`] and [`Edit`]: what a diagnosis is about, and the change that mends it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a diagnosis is about, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Place {
    /// The name of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The host of the server's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The config file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the file, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The setting, such as `servers.github.url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Place {
    /// The place of a server.
    pub fn server(name: &str) -> Self {
        Self {
            server: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Sets the host of the server's URL.
    #[must_use]
    pub fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    /// Sets the setting, with its file and line.
    #[must_use]
    pub fn setting(mut self, file: &str, line: Option<u32>, key: &str) -> Self {
        self.file = Some(file.to_owned());
        self.line = line;
        self.key = Some(key.to_owned()).filter(|key| !key.is_empty());
        self
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.host, &mut self.file, &mut self.key].into_iter().flatten()
    }
}

/// A change that mends what a diagnosis is about. Secrets are never in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Edit {
    /// A setting gets a value.
    Set {
        /// The setting, such as `servers.github.enabled`.
        key: String,
        /// Its new value.
        value: Value,
    },
    /// A setting gets another name.
    Rename {
        /// The setting as it is written.
        key: String,
        /// Its last part in the right spelling.
        to: String,
    },
    /// The value of a setting gets text before it, such as the scheme of a URL. The value itself may be secret.
    Prefix {
        /// The setting.
        key: String,
        /// The text.
        text: String,
    },
    /// The command line in a setting is split at its spaces, into the program there and `args` beside it.
    SplitCommand {
        /// The setting.
        key: String,
    },
    /// A command is run.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

impl Edit {
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Set { key, .. } | Self::SplitCommand { key } => vec![key],
            Self::Rename { key, to: text } | Self::Prefix { key, text } => vec![key, text],
            Self::Run { command } => command.iter_mut().collect(),
        }
    }
}
