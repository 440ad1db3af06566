//! The lifecycle of a server: idle stop, restarts, health probes, retries of calls, and the circuit breaker.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    choice::{DefaultChoice, words},
    duration_text,
    field::{DefaultValue, ValueKind},
    from_setting::{self, FromSetting},
    key::{
        LIMIT, WAIT, choice, count, duration, either, flag, limit, limit_or_off, list, optional_choice, optional_count,
        small, text,
    },
    setting::Setting,
    settings::settings,
};

/// When an idle server is stopped. The next call starts it again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IdleStop {
    /// After five minutes if the server is shared, starts lazily and is not required; else never.
    #[default]
    Auto,
    /// Never.
    Never,
    /// After this time without a call.
    After(#[serde(with = "duration_text")] Duration),
}

impl FromSetting for IdleStop {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("auto") => Some(Self::Auto),
            Setting::Word(_) => Some(Self::Never),
            _ => Duration::from_setting(setting).map(Self::After),
        }
    }
}

settings! {
    /// How a server is restarted.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Restart in restart = "restart" {
        /// Whether the server is restarted automatically; otherwise the next call restarts it.
        enabled: bool = flag(true).aka(&["enable_auto_reconnect"]).void_if(&["backoff", "max_attempts"]);
        /// The waits before each attempt; the last one repeats. A single wait is doubled up to 30 seconds.
        backoff: Vec<Duration> as "duration_text" = either(&[ValueKind::List(&WAIT), WAIT], Vec::new(), DefaultValue::Durations(&RESTART_WAITS))
            .aka(&["reconnect_backoff"])
            .via(from_setting::waits);
        /// The number of failed starts in a row after which only a health check (`health_restart`), a call or an operator starts it.
        max_attempts: Option<u32> = optional_count((1, 1_000_000)).aka(&["max_retries", "attempts", "max_reconnect_retries"]);
        /// How long a call waits for a restart; with zero it fails at once.
        wait: Duration as "duration_text" = duration(WAIT, 10).aka(&["restart_wait"]);
    }
    fields {
        /// How long calls wait, counted from the first start, while failed starts are retried; with zero they fail with the first failed
        /// start. A permanent failure, such as a missing program, ends the wait.
        start_wait: Duration as "duration_text" = Duration::ZERO;
    }
}

/// The default waits between restarts.
pub const RESTART_WAITS: [Duration; 7] = {
    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    [secs(0), secs(1), secs(2), secs(5), secs(10), secs(30), secs(60)]
};

settings! {
    /// How the health of a server is probed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Health in health_keys of server {
        /// How the health of an idle server is probed: with the request of its era and then by listing its tools, by listing them at once, or not at
        /// all.
        probe: Probe = choice().called("health_probe").aka(&["health", "health_check"]).for_all(&[]).live();
        /// After how much silence the server is probed; with `off` only after a call has timed out.
        interval: Option<Duration> as "duration_text" = limit_or_off(60)
            .called("health_interval")
            .aka(&["health_check_interval"])
            .for_all(&[])
            .live();
        /// The timeout for the response to a probe.
        timeout: Duration as "duration_text" = limit(5).called("health_timeout").for_all(&[]).live();
        /// Whether a server that is down is started when a probe is due, also with `restart = false` or after `max_attempts` failed starts, and also
        /// if it was never ready.
        restart: bool = flag(false).called("health_restart").preset_only().live();
    }
}

/// The request that probes the health of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// The request of its era: `ping` with a handshake, `server/discover` without. If the server rejects it, or does not answer within half
    /// of the timeout, its tools are listed before it counts as dead.
    #[default]
    Auto,
    /// A listing of its tools, which replaces the previous one. If the listing fails, the server is restarted.
    ListTools,
    /// No probes, except after a call that did not reach the server.
    Never,
}

// `ping` and `discover` are requests of one era each; a server is sent the one of its own era.
words! { @choice Probe { "auto" = Auto, "ping" = Auto, "list_tools" | "list" = ListTools, "discover" = Auto, "none" | "off" = Never, } }
words! { @text Probe "health probe" }

impl Probe {
    /// The word in config files and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ListTools => "list_tools",
            Self::Never => "none",
        }
    }
}

impl DefaultChoice for Probe {
    const DEFAULT: Self = Self::Auto;
    const DEFAULT_WORD: &'static str = "auto";
}

/// Whether a call that may have run can be retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// It is never retried.
    Never,
    /// The tool only reads.
    Safe,
    /// The tool is idempotent: a second run changes nothing more.
    Idempotent,
    /// The argument of this name holds an idempotency key, by which the server recognises a retried call.
    Key(String),
}

words! { @choice RetryClass { "never" = Never, "safe" = Safe, "idempotent" = Idempotent, } }

settings! {
    /// Which failed calls of a server are retried.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Retry in retry = "retry" {
        /// Whether a call that may have run can be retried, for tools without a `retry` of their own: never, safe (the tool only reads), or
        /// idempotent.
        mode: Option<RetryClass> = optional_choice().void_if(&["key_argument"]);
        /// The most retries of one call.
        attempts: u32 = small((0, 100), 2).aka(&["max_retries", "max_attempts"]);
        /// The waits before each retry; the last one repeats.
        backoff: Vec<Duration> as "duration_text" = list(&LIMIT);
        /// By how many percent each wait is varied at random, in both directions.
        jitter: u32 = small((0, 99), 0).preset_only();
        /// Whether calls that may have run are retried too, regardless of `mode`.
        even_if_run: bool = flag(false).called("unsafe").void_if(&["mode", "key_argument"]);
    }
    keys {
        /// The argument that holds an idempotency key, by which the server recognises a retried call.
        key_argument: Option<String> = text().void_if(&["mode"]);
    }
}

/// Whether a server has a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerPolicy {
    /// No circuit breaker.
    Off,
    /// A circuit breaker with this rule.
    On(BreakerRule),
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self::On(BreakerRule::default())
    }
}

settings! {
    /// When a circuit breaker opens and closes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct BreakerRule in breaker = "breaker" {
        /// The number of failures in a row that opens the breaker.
        failures: u32 = small((1, 1000), 5).aka(&["failure_threshold", "max_failures"]);
        /// The percentage of recent calls above which failures open the breaker as well; 0 for never.
        percent: u32 = small((0, 100), 0).aka(&["failure_rate", "error_percent"]).preset_only();
        /// How many recent calls `percent` is computed over.
        of: usize = count((1, 1000), 10).aka(&["min_requests", "window"]).preset_only();
        /// How long the breaker stays open.
        open: Duration as "duration_text" = duration(OPEN, 30).aka(&["open_time", "open_timeout", "timeout"]);
        /// How many calls it then lets through at once to test the server.
        probes: u32 = small((1, 1000), 1).aka(&["half_open", "half_open_max", "half_open_probes"]).preset_only();
        /// How many of these calls must succeed before the breaker closes.
        successes: u32 = small((1, 1000), 1).aka(&["success_threshold"]).preset_only();
    }
    keys {
        /// Whether the circuit breaker is used.
        enabled: bool = flag(true).void_if_table();
    }
}

/// An hour at most.
const OPEN: ValueKind = ValueKind::Duration {
    min: 1,
    max: 3600 * 1000,
};

impl BreakerRule {
    /// Clamps all numbers: at least one failure, probe and success, and open for an hour at most.
    #[doc(hidden)]
    pub fn clamped(self) -> Self {
        Self {
            failures: self.failures.max(1),
            percent: self.percent.min(100),
            of: self.of.clamp(1, 1000),
            open: self.open.min(Duration::from_secs(3600)),
            probes: self.probes.max(1),
            successes: self.successes.max(1),
        }
    }
}
