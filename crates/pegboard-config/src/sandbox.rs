//! The sandbox of a stdio server: its level, and what the server may access.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    choice::words,
    field::{DefaultValue, ValueKind},
    from_setting::FromSetting,
    key::{either, flag, number, optional_choice, texts},
    setting::Setting,
    settings::settings,
};

settings! {
    sandbox = "sandbox" {
        /// The level: off, basic (files, signals and traces) or strict (also namespaces, system calls and the home directory); basic if it is not
        /// set.
        level: Option<SandboxLevel> = optional_choice();
        /// Files and directories that it may read, besides programs, libraries and its working directory.
        read: Vec<String> = texts();
        /// Files and directories that it may read and write, besides a private directory for temporary files.
        write: Vec<String> = texts();
        /// Whether it may use the network, or the TCP ports that it may connect to. Without it: `true` with `basic`, `false` with `strict`.
        network: Option<SandboxNetwork> = either(&[ValueKind::Bool, ValueKind::List(&number(1, 65_535))], None, DefaultValue::None);
        /// Whether the server is not started where a part of the level cannot be enforced; otherwise it is started with the parts that can.
        require: bool = flag(true);
    }
}

/// What a stdio server may access, on Linux and below the guard process (`shim`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Sandbox {
    /// The level that is requested.
    pub level: SandboxLevel,
    /// Files and directories that it may read, besides programs, libraries and its working directory.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read and write, besides a private directory for temporary files.
    pub write: Vec<PathBuf>,
    /// What it may reach over the network.
    pub network: SandboxNetwork,
    /// Whether the server is not started where a part of the level cannot be enforced.
    pub require: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            level: SandboxLevel::Off,
            read: Vec::new(),
            write: Vec::new(),
            network: SandboxNetwork::All,
            require: true,
        }
    }
}

words! {
    /// The level of a sandbox. A higher level includes the lower ones.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SandboxLevel as "level of a sandbox" default Off {
        /// Only what holds for every server: an allow-list of environment variables, resource limits, no core dumps, no privilege escalation.
        Off = "off" | "none",
        /// Landlock: the server reads system files and its working directory, writes only where it may, and cannot signal or trace
        /// processes of others.
        Basic = "basic" | "landlock",
        /// Also namespaces of its own, a filter on system calls, no home directory, and no network unless the config allows it.
        Strict = "strict",
    }
}

/// What a sandboxed server may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// Everything.
    All,
    /// TCP connections to these ports. It cannot listen on TCP; UDP is not restricted.
    Ports(Vec<u16>),
    /// Nothing. It can create no sockets but Unix sockets.
    Off,
}

impl FromSetting for SandboxNetwork {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Bool(true) => Some(Self::All),
            Setting::Bool(false) => Some(Self::Off),
            _ => Vec::from_setting(setting).map(Self::Ports),
        }
    }
}
