//! The resolved configuration of one server.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    lifecycle::IdleStop,
    limits::Limits,
    policy::{Pins, Policy, Scan, Scope},
    transport::{Command, Transport},
};
use pegboard_base::secret::Secret;

/// After how long [`IdleStop::Auto`] stops an idle server.
pub const IDLE: Duration = Duration::from_secs(300);

/// The resolved configuration of one server, with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerConfig {
    /// How the server is reached.
    pub transport: Transport,
    /// Whether the server is used at all.
    #[serde(default = "is_enabled")]
    pub enabled: bool,
    /// Whether the board is ready only when this server is ready.
    #[serde(default)]
    pub required: bool,
    /// When the server is started.
    #[serde(default)]
    pub start: Start,
    /// The protocol era to use.
    #[serde(default)]
    pub era: EraChoice,
    /// Timeouts and size limits.
    #[serde(default)]
    pub limits: Limits,
    /// Globs of the tools that are visible; empty means all.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Globs of the tools that are hidden, even if `allow` matches them.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Directories and other URIs that are reported to the server as roots.
    #[serde(default)]
    pub roots: Vec<String>,
    /// A description of the server for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Instructions for the model about this server.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Tools that the server does not list, by name: the JSON Schema of the arguments, or a definition as in a listing.
    #[serde(default)]
    pub tool_schemas: BTreeMap<String, Value>,
    /// How its calls and results are handled.
    #[serde(default)]
    pub policy: Policy,
    /// Secrets of its settings that the other fields do not show: values of variables, and settings without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[doc(hidden)]
    pub hidden: Vec<Secret>,
}

impl ServerConfig {
    /// Creates a server with the default settings.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            enabled: true,
            required: false,
            start: Start::default(),
            era: EraChoice::default(),
            limits: Limits::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            roots: Vec::new(),
            description: None,
            instructions: None,
            tool_schemas: BTreeMap::new(),
            policy: Policy::default(),
            hidden: Vec::new(),
        }
    }

    /// Creates an in-process server with the default settings, for `Builder::in_process_with`.
    pub fn in_process() -> Self {
        // A placeholder: the dialer of an in-process server ignores the transport.
        let mut config = Self::new(Transport::Stdio(Command::new("in-process")));
        // Its definitions are part of this program.
        config.policy.pins = Pins::Off;
        config.policy.scan = Scan::Off;
        config
    }

    /// After how long an idle connection is closed; `None` for never.
    pub fn idle_after(&self) -> Option<Duration> {
        match self.policy.idle_stop {
            IdleStop::After(idle) => Some(idle),
            IdleStop::Never => None,
            IdleStop::Auto => {
                let may_stop = self.start == Start::Lazy && self.policy.scope != Scope::Session && !self.required;
                may_stop.then_some(IDLE)
            }
        }
    }

    /// The working directory of a stdio server, if one is set.
    pub fn cwd(&self) -> Option<&PathBuf> {
        match &self.transport {
            Transport::Stdio(command) => command.cwd.as_ref(),
            Transport::Remote { .. } => None,
        }
    }
}

/// The default of [`ServerConfig::enabled`].
fn is_enabled() -> bool {
    true
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Start {
    /// When the board opens, concurrently with the other servers and without blocking callers.
    #[default]
    Eager,
    /// When it is first needed.
    Lazy,
    /// Only on request: `Pegboard::connect`, `reconnect` or `enable`.
    Explicit,
}

/// The protocol era that is used with a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EraChoice {
    /// Detected and remembered: `initialize` first on stdio, `server/discover` first on HTTP.
    #[default]
    Auto,
    /// Detected, with `server/discover` first on every transport, as the specification recommends.
    Probe,
    /// Only the era without a handshake (2026-07-28).
    Modern,
    /// Only the era with a handshake (2025-11-25 and earlier).
    Legacy,
    /// Only this protocol version.
    Version(String),
}

impl EraChoice {
    /// Whether only one era is allowed.
    #[doc(hidden)]
    pub fn is_firm(&self) -> bool {
        match self {
            Self::Auto | Self::Probe => false,
            Self::Modern | Self::Legacy | Self::Version(_) => true,
        }
    }
}
