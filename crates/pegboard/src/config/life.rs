//! How a server lives: when it is stopped and started again, how it is asked whether it is well, which of its calls are made again, and
//! how much of everything a board takes on.

use std::time::Duration;

/// When a server that nobody uses is stopped. The next call starts it again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdleStop {
    /// After five minutes when it is shared, starts lazily and is not required; else never.
    #[default]
    Auto,
    /// Never.
    Never,
    /// After so long.
    After(Duration),
}

/// How a server is started again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// Whether it is started again unasked. Otherwise the next call starts it, once the wait that is due has passed; see also
    /// [`Health::restarts`].
    pub enabled: bool,
    /// The waits before each attempt; the last one repeats. Empty for those of the board.
    pub waits: Vec<Duration>,
    /// After so many failed starts in a row it is not started unasked any more. Calls then make one attempt at a time, at most one per
    /// longest wait.
    pub max_attempts: Option<u32>,
    /// How long a call waits for a restart; with zero it fails at once.
    pub wait: Duration,
    /// How long callers wait, counted from the first start, while starts fail and are repeated; with zero they fail with the first failed
    /// start. A failure that no repetition can mend, such as a missing program, ends the wait.
    pub start_wait: Duration,
}

/// The waits between restarts where neither the config nor the program sets any.
pub(crate) const RESTART_WAITS: [Duration; 7] = {
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
            waits: Vec::new(),
            max_attempts: None,
            wait: Self::WAIT,
            start_wait: Duration::ZERO,
        }
    }
}

/// How a server is asked whether it is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// In which words.
    pub probe: Probe,
    /// After so much silence, or so long after the last listing with [`Probe::ListTools`], while no call is under way; `None` for only
    /// after a call has failed on its way.
    pub every: Option<Duration>,
    /// How long the answer may take.
    pub within: Duration,
    /// Whether a server whose session was lost is started again when a probe is due, also where [`Restart::enabled`] is `false`.
    pub restarts: bool,
}

impl Health {
    /// The default, which the table of fields shows too.
    pub(super) const DEFAULT: Self = Self {
        probe: Probe::Auto,
        every: Some(Duration::from_secs(60)),
        within: Duration::from_secs(5),
        restarts: false,
    };
}

impl Default for Health {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The words in which a server is asked whether it is well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Probe {
    /// Those of its era: `ping` where there is a handshake, `server/discover` where there is none. If that is refused, or unanswered for
    /// half of the time, the tools are listed before the server counts as dead.
    #[default]
    Auto,
    /// A listing of its tools, which takes the place of the one before. A server that cannot be listed is started anew.
    ListTools,
    /// It is never asked.
    Never,
}

/// Whether a call of a tool that may have run can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryClass {
    /// It cannot.
    Never,
    /// The tool only reads.
    Safe,
    /// The second time changes nothing more.
    Idempotent,
    /// The server knows a repeated call by this argument.
    Key(String),
}

/// Which failed calls of a server are made again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// What holds for its tools that have no setting of their own; without it, what a trusted server says.
    pub mode: Option<RetryClass>,
    /// How often a call is made again.
    pub attempts: u32,
    /// The waits before that; the last one repeats. Empty for short random ones.
    pub waits: Vec<Duration>,
    /// By how many percent of itself each of these waits is varied at random, both ways.
    pub jitter: u32,
    /// Whether calls that may have run are made again too, whatever they do.
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
            waits: Vec::new(),
            jitter: 0,
            even_if_run: false,
        }
    }
}

/// Whether callers are turned away from a server that answers nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerPolicy {
    /// Never.
    Off,
    /// By this rule.
    On(BreakerRule),
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self::On(BreakerRule::default())
    }
}

/// When callers are turned away, and when no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerRule {
    /// After so many failures in a row.
    pub failures: u32,
    /// Also when more than this part of the last calls failed, in percent; zero for never.
    pub percent: u32,
    /// How many of the last calls that part is taken of.
    pub of: usize,
    /// For how long.
    pub open: Duration,
    /// How many calls are then let through at once, to see how they fare.
    pub probes: u32,
    /// How many of them must succeed before all are let through again.
    pub successes: u32,
}

impl BreakerRule {
    /// The default, which the table of fields shows too.
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
    /// Five failures in a row, 30 seconds, one probe.
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl BreakerRule {
    /// The nearest numbers that make sense: nothing that must happen never, nothing that takes longer than an hour.
    pub(crate) fn sensible(self) -> Self {
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
