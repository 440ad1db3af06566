//! One server as it is meant.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde_json::Value;

use super::{
    life::IdleStop,
    limits::Limits,
    policy::{Policy, Scope},
    transport::{Command, Transport},
};

/// After how long a lazy server that nobody uses is stopped.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

/// One server as it is meant.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// How to reach it.
    pub transport: Transport,
    /// Whether it is used at all.
    pub enabled: bool,
    /// Whether the board is ready only when this server is.
    pub required: bool,
    /// When it is started.
    pub start: Start,
    /// Which protocol era it is spoken to in.
    pub era: EraChoice,
    /// Times and sizes.
    pub limits: Limits,
    /// Globs of the tools that are shown; empty means all.
    pub allow: Vec<String>,
    /// Globs of the tools that are hidden, whatever `allow` says.
    pub deny: Vec<String>,
    /// Folders and other URIs that the server is told it may work in.
    pub roots: Vec<String>,
    /// What it is for, in words for people.
    pub description: Option<String>,
    /// Words for the model about this server.
    pub instructions: Option<String>,
    /// Tools that it does not list, by name: the schema of the arguments, or the whole item of a listing.
    pub tool_schemas: BTreeMap<String, Value>,
    /// What its calls and results are subject to.
    pub policy: Policy,
}

impl ServerConfig {
    /// A server with the default settings.
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
        }
    }

    /// A server in this process with the default settings, for [`Builder::in_process_with`](crate::Builder::in_process_with).
    pub fn in_process() -> Self {
        // It is never looked at: a dialer takes its place.
        Self::new(Transport::Stdio(Command::new("in-process")))
    }

    /// After how long a connection that nobody uses is ended, if ever.
    pub fn idle_after(&self) -> Option<Duration> {
        match self.policy.idle_stop {
            IdleStop::After(idle) => Some(idle),
            IdleStop::Never => None,
            IdleStop::Auto => {
                let may_rest = self.start == Start::Lazy && self.policy.scope != Scope::Session && !self.required;
                may_rest.then_some(IDLE)
            }
        }
    }

    /// The folder a stdio server is started in, when one is set.
    pub fn cwd(&self) -> Option<&PathBuf> {
        match &self.transport {
            Transport::Stdio(command) => command.cwd.as_ref(),
            Transport::Auto(_) | Transport::Http(_) | Transport::Sse(_) | Transport::WebSocket(_) => None,
        }
    }
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// When the board opens, beside the others, without holding anyone up.
    #[default]
    Eager,
    /// When it is first needed.
    Lazy,
    /// Only when somebody says so: `Pegboard::connect`, `reconnect` or `enable`.
    Explicit,
}

/// Which protocol era a server is spoken to in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EraChoice {
    /// Found out and remembered: `initialize` first on stdio, `server/discover` first on HTTP.
    #[default]
    Auto,
    /// `server/discover` first on every transport, as the specification says.
    Probe,
    /// Without a handshake (2026-07-28), nothing else.
    Modern,
    /// With a handshake (2025-11-25 and earlier), nothing else.
    Legacy,
    /// With this protocol version, nothing else.
    Version(String),
}

impl EraChoice {
    /// Whether only one era may be spoken.
    pub(crate) fn is_firm(&self) -> bool {
        match self {
            Self::Auto | Self::Probe => false,
            Self::Modern | Self::Legacy | Self::Version(_) => true,
        }
    }
}
