//! How long a caller waits for a response.

use std::time::Duration;

use pegboard_base::deadline::Deadline;
use pegboard_config::Limits;

/// How long a caller waits for a response.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The idle timeout: the longest time without progress or other signs of life.
    pub idle: Duration,
    /// The deadline for the response. Progress does not extend it.
    pub total: Deadline,
}

impl Patience {
    /// Waits until `deadline`, without an idle timeout.
    pub fn until(deadline: Deadline) -> Self {
        Self {
            idle: Duration::from_secs(24 * 3600),
            total: deadline,
        }
    }

    /// The timeouts of a call that begins now, by the server's config.
    pub fn for_call(limits: &Limits) -> Self {
        Self {
            idle: limits.call_timeout,
            total: Deadline::within(limits.call_total_timeout),
        }
    }
}
