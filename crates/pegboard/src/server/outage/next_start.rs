//! [`NextStart`]: when a server that is down is started again.

use std::time::Duration;

use tokio::time::Instant;

/// How long a caller should wait for a server that is being started.
pub(super) const A_MOMENT: Duration = Duration::from_secs(1);

/// When a server that is down is started again.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::server) struct NextStart {
    /// When the supervisor starts it; `None` for never.
    pub(in crate::server) automatic: Option<Instant>,
    /// From when on a call starts it and waits; `None` if calls fail at once.
    pub(in crate::server) on_demand: Option<Instant>,
}

impl NextStart {
    /// Only an operator starts it.
    pub(in crate::server) const NEVER: Self = Self {
        automatic: None,
        on_demand: None,
    };

    /// The supervisor starts it after `delay`.
    pub(in crate::server) fn automatic_in(delay: Duration) -> Self {
        Self {
            automatic: Some(Instant::now() + delay),
            on_demand: None,
        }
    }

    /// The first call after `delay` starts it.
    pub(in crate::server) fn on_demand_in(delay: Duration) -> Self {
        Self {
            automatic: None,
            on_demand: Some(Instant::now() + delay),
        }
    }

    /// Whether a call may start the server now.
    pub(in crate::server) fn is_on_demand(&self) -> bool {
        self.on_demand.is_some_and(|at| at <= Instant::now())
    }
}

/// The seconds until a time, rounded up: when the announced time has passed, the start has begun.
pub(super) fn seconds_left(at: Instant) -> u128 {
    at.saturating_duration_since(Instant::now()).as_millis().div_ceil(1000)
}
