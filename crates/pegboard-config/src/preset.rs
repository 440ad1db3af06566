//! Presets: named sets of defaults, written like a config file, for the settings that a config does not set.

use super::choice::words;
use pegboard_base::name::NameStyle;

words! {
    /// A named set of defaults.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Preset as "preset" default Pegboard {
        /// The defaults of Pegboard.
        Pegboard = "pegboard",
        /// The defaults of TARSy.
        Tarsy = "tarsy",
        /// The defaults of ai-agent.
        AiAgent = "ai-agent",
        /// The defaults of antwort.
        Antwort = "antwort",
        /// The defaults of goat.
        Goat = "goat",
        /// The defaults of minion.
        Minion = "minion",
    }
}

/// One server per agent, restarted on demand; arguments in any text format; long results summarised.
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

/// Shared servers that start eagerly and restart until they are ready; results over 12 KiB spilled to handles.
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

/// Servers that start on first use; no retries; results cleaned and fenced, because they are untrusted.
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

/// One connection per agent, opened on request and retried with backoff.
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

/// Shared servers that start on first use; three retries; a circuit breaker; only the first block of a result.
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
health_restart = true
env_policy = "inherit"
transports = ["stdio", "http"]
capabilities = ["tools"]
call_arguments = { read = "json", check = "relaxed" }
result = { join = "first" }
"#;

impl Preset {
    /// The settings for a server, as TOML; empty for the built-in defaults.
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

    /// How tools are named if the file does not set `naming`.
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
