//! The designs that a config may start from: plain settings, written as in a config file, for everything that it leaves open.

use crate::name::NameStyle;

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
}

/// A server per agent that is started anew on demand, text of any form as arguments, long results summarised.
const TARSY: &str = r#"
scope = "session"
restart = false
breaker = "off"
health_probe = "list_tools"
health_interval = "15s"
health_timeout = "5s"
health_restart = true
connect_timeout = "30s"
list_timeout = "10s"
call_timeout = "60s"
call_total_timeout = "60s"
retry = { attempts = 1, backoff = ["500ms"], jitter = 50 }
env_policy = "inherit"
transports = ["stdio", "http", "sse"]
capabilities = ["tools"]
call_arguments = { read = "cascade", check = "off" }
summarise = true
"#;

/// Shared servers that are warmed up and restarted until they are ready, and handles for results over 12 KiB.
const AI_AGENT: &str = r#"
connect_timeout = "60s"
start_wait = "60s"
call_timeout = "300s"
call_total_timeout = "300s"
retry = 0
restart = { backoff = ["0s", "1s", "2s", "5s", "10s", "30s", "60s"] }
breaker = "off"
health_interval = "off"
health_timeout = "3s"
capabilities = ["tools", "prompts"]
case_insensitive = true
call_arguments = { read = "json", check = "coerce" }
result = { join = "nothing", max_bytes = 12288, mode = "spill" }
"#;

/// Servers that are reached when first used. Nothing is repeated, and results are cleaned and fenced, for they are untrusted input.
const ANTWORT: &str = r#"
start = "lazy"
restart = false
connect_timeout = "30s"
call_timeout = "24h"
call_total_timeout = "24h"
retry = 0
breaker = "off"
health_interval = "60s"
health_restart = true
transports = ["stdio", "http", "sse"]
capabilities = ["tools"]
call_arguments = { read = "json", check = "off" }
result = { clean = true, fence = true }
"#;

/// A client per agent that connects when it is told to and tries again with growing pauses.
const GOAT: &str = r#"
scope = "session"
start = "explicit"
call_timeout = "24h"
call_total_timeout = "24h"
retry = 0
restart = { backoff = ["1s", "2s", "4s", "8s", "16s", "30s"] }
breaker = "off"
health_probe = "none"
env_policy = "inherit"
transports = ["stdio", "http"]
capabilities = ["tools", "resources"]
call_arguments = { read = "json", check = "required" }
"#;

/// Shared servers on first use, three repetitions, a breaker, and the first block of a result.
const MINION: &str = r#"
start = "lazy"
connect_timeout = "30s"
start_wait = "30s"
call_timeout = "60s"
call_total_timeout = "250s"
retry = { attempts = 3, backoff = ["1s", "2s", "4s", "8s", "16s", "30s"] }
restart = { backoff = ["1s", "2s", "4s", "8s", "16s", "30s"], max_attempts = 4 }
breaker = { failures = 5, percent = 50, of = 10, open = "30s", probes = 3, successes = 2 }
health_interval = "30s"
env_policy = "inherit"
transports = ["stdio", "http"]
capabilities = ["tools"]
call_arguments = { read = "json", check = "relaxed" }
result = { join = "first" }
"#;

impl Preset {
    /// Its settings for a server; ours are the defaults.
    pub(super) fn settings(self) -> &'static str {
        match self {
            Self::Pegboard => "",
            Self::Tarsy => TARSY,
            Self::AiAgent => AI_AGENT,
            Self::Antwort => ANTWORT,
            Self::Goat => GOAT,
            Self::Minion => MINION,
        }
    }

    /// How it names tools, when a file that starts from it says nothing.
    pub(super) fn naming(self) -> NameStyle {
        match self {
            Self::Pegboard | Self::AiAgent => NameStyle::Dunder,
            Self::Tarsy => NameStyle::Dot,
            Self::Antwort => NameStyle::Bare,
            Self::Goat => NameStyle::McpDunder,
            Self::Minion => NameStyle::McpSingle,
        }
    }
}
