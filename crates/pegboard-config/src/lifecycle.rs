//! The lifecycle of a server: idle stop, restarts, health probes, retries of calls, and the circuit breaker.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration_text;

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

/// How a server is restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Restart {
    /// Whether the server is restarted automatically. Otherwise the next call restarts it, once the current backoff has elapsed; see also
    /// [`Health::restart`].
    pub enabled: bool,
    /// The waits before each attempt; the last one repeats. Empty for the schedule of the board.
    #[serde(with = "duration_text")]
    pub backoff: Vec<Duration>,
    /// The number of failed starts in a row after which automatic restarts end, except those of [`Health::restart`]. Calls then make one
    /// attempt at a time, at most one per longest wait.
    pub max_attempts: Option<u32>,
    /// How long a call waits for a restart; with zero it fails at once.
    #[serde(with = "duration_text")]
    pub wait: Duration,
    /// How long calls wait, counted from the first start, while failed starts are retried; with zero they fail with the first failed
    /// start. A permanent failure, such as a missing program, ends the wait.
    #[serde(with = "duration_text")]
    pub start_wait: Duration,
}

/// The default waits between restarts.
pub const RESTART_WAITS: [Duration; 7] = {
    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    [secs(0), secs(1), secs(2), secs(5), secs(10), secs(30), secs(60)]
};

impl Restart {
    /// The default of `wait`.
    pub(super) const WAIT: Duration = Duration::from_secs(10);
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            enabled: true,
            backoff: Vec::new(),
            max_attempts: None,
            wait: Self::WAIT,
            start_wait: Duration::ZERO,
        }
    }
}

/// How the health of a server is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// The request that is sent.
    pub probe: Probe,
    /// The time since the last message, or since the last listing with [`Probe::ListTools`], after which a probe is sent while no call is
    /// in flight; `None` for only after a call has failed in transit.
    #[serde(with = "duration_text")]
    pub interval: Option<Duration>,
    /// The timeout for the response.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Whether a server that is down is started when a probe is due, even if [`Restart::enabled`] is `false` or [`Restart::max_attempts`] are
    /// used up. A server that has never been ready is started too.
    pub restart: bool,
}

impl Health {
    /// The default, also shown by the table of fields.
    pub(super) const DEFAULT: Self = Self {
        probe: Probe::Auto,
        interval: Some(Duration::from_secs(60)),
        timeout: Duration::from_secs(5),
        restart: false,
    };
}

impl Default for Health {
    fn default() -> Self {
        Self::DEFAULT
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

/// Which failed calls of a server are retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// The class of tools without a setting of their own; `None` for the annotations of a trusted server.
    pub mode: Option<RetryClass>,
    /// The most retries of one call.
    pub attempts: u32,
    /// The waits before each retry; the last one repeats. Empty for short random waits.
    #[serde(with = "duration_text")]
    pub backoff: Vec<Duration>,
    /// By how many percent each wait is varied at random, in both directions.
    pub jitter: u32,
    /// Whether calls that may have run are retried too, regardless of `mode`.
    pub even_if_run: bool,
}

impl Retry {
    /// The default of `attempts`.
    pub(super) const ATTEMPTS: u32 = 2;
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            mode: None,
            attempts: Self::ATTEMPTS,
            backoff: Vec::new(),
            jitter: 0,
            even_if_run: false,
        }
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

/// When a circuit breaker opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerRule {
    /// The number of failures in a row that opens the breaker.
    pub failures: u32,
    /// The percentage of recent calls above which failures open the breaker as well; zero for never.
    pub percent: u32,
    /// How many recent calls `percent` is computed over.
    pub of: usize,
    /// How long the breaker stays open.
    #[serde(with = "duration_text")]
    pub open: Duration,
    /// How many calls it then lets through at once to test the server.
    pub probes: u32,
    /// How many of these calls must succeed before the breaker closes.
    pub successes: u32,
}

impl BreakerRule {
    /// The default, also shown by the table of fields.
    pub(super) const DEFAULT: Self = Self {
        failures: 5,
        percent: 0,
        of: 10,
        open: Duration::from_secs(30),
        probes: 1,
        successes: 1,
    };
}

impl Default for BreakerRule {
    /// Opens after five failures in a row for 30 seconds, then lets one probe through.
    fn default() -> Self {
        Self::DEFAULT
    }
}

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
