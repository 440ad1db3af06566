//! The configuration as it is meant: complete, checked, with no "use the default" left in it.
//!
//! A file becomes a located tree (`tree`), its shape ours (`import`), its settings checked against one table of fields
//! (`fields`, `check`) with variables replaced (`expand`), and the result is put together (`resolve`) layer by layer
//! (`load`). This file and `server`, `transport`, `limits`, `policy` hold what comes out.

mod adhoc;
mod check;
mod env_file;
mod environment;
mod expand;
mod explain;
mod fields;
mod import;
mod life;
mod limits;
mod load;
mod merge;
mod misconfigured;
mod policy;
mod preset;
mod problem;
mod resolve;
mod schema;
mod secrets;
mod server;
mod setting;
mod show;
mod suspect;
mod transport;
mod tree;
mod units;

#[cfg(test)]
#[cfg(all(feature = "sse", feature = "websocket"))]
mod tests;

pub(crate) use environment::is_allowed;
pub use expand::Env;
pub use explain::{Explained, Overridden, ValueOrigin};
pub use life::{BoardLimits, BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry};
pub use limits::Limits;
pub use load::{Loaded, Origin, Source, Unreadable};
pub use misconfigured::Misconfigured;
pub use policy::{
    Approval, ArgumentRules, Capabilities, Check, Images, Join, OutputCheck, Pins, Policy, Queue, Reading, Results,
    RetryClass, Scope, Structured, Summarise, SummaryModel, TooLong, ToolPolicy,
};
pub use problem::{Problem, Severity};
pub(crate) use server::IDLE;
pub use server::{EraChoice, ServerConfig, Start};
pub(crate) use transport::is_loader;
pub use transport::{Auth, ClientCert, Command, Endpoint, EnvPolicy, Rlimits, Tls, Transport};
pub use tree::Format;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    mask::Masking,
    name::{NameStyle, ServerName},
};

/// Everything a board needs to know: the servers, by name.
///
/// ```
/// use pegboard::{Config, Env, Format};
///
/// let text = "[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n";
/// let loaded = Config::from_text(text, Format::Toml, &Env::process());
/// assert!(loaded.problems.is_empty());
/// assert_eq!(loaded.config.servers.len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The configured servers that can be used.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The configured servers that cannot be used as they are written.
    pub misconfigured: BTreeMap<ServerName, Misconfigured>,
    /// The queues that calls wait in, by name.
    pub queues: BTreeMap<String, Queue>,
    /// The design whose defaults the servers start from.
    pub preset: Preset,
    /// How much the board takes on.
    pub limits: BoardLimits,
    /// How tools are named for models. Views that were made before a change keep their names.
    pub naming: NameStyle,
    /// What is hidden in the words of servers whose own settings say nothing else.
    pub masking: Masking,
}

impl Config {
    /// Reads the sources in turn. A later one replaces servers of the same name; its other settings win.
    ///
    /// It never fails: what could not be read is among the problems, and everything else is there.
    pub fn load(sources: &[Source], env: &Env<'_>) -> Loaded {
        load::load(sources, env)
    }

    /// Reads one text.
    pub fn from_text(text: &str, format: Format, env: &Env<'_>) -> Loaded {
        load::load(&[Source::text("config", text, Some(format))], env)
    }

    /// The JSON Schema (2020-12) of a config file.
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }
}

/// Reads a duration as config files and the command line write it: `30s`, `2m`, `500ms`, `1h30m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    units::duration(text)
}

/// Reads a size as config files and the command line write it: `48KiB`, `2MB`, `1000`.
pub fn parse_size(text: &str) -> Option<u64> {
    units::size(text)
}

/// A design whose defaults can be chosen together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// Ours.
    #[default]
    Pegboard,
    /// Those of TARSy.
    Tarsy,
    /// Those of ai-agent.
    AiAgent,
    /// Those of antwort.
    Antwort,
    /// Those of goat.
    Goat,
    /// Those of minion.
    Minion,
}

impl Preset {
    /// The word for it in config files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pegboard => "pegboard",
            Self::Tarsy => "tarsy",
            Self::AiAgent => "ai-agent",
            Self::Antwort => "antwort",
            Self::Goat => "goat",
            Self::Minion => "minion",
        }
    }

    fn named(word: Option<&str>) -> Self {
        match word {
            Some("tarsy") => Self::Tarsy,
            Some("ai-agent") => Self::AiAgent,
            Some("antwort") => Self::Antwort,
            Some("goat") => Self::Goat,
            Some("minion") => Self::Minion,
            _ => Self::Pegboard,
        }
    }
}
