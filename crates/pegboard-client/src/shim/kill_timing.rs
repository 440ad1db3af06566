//! How long to wait for killed processes, and how often kills are repeated.

use std::time::Duration;

/// How long to wait for killed processes. Only one that hangs in the kernel takes longer.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// The first pause between two rounds of killing. It doubles with each round.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause between two rounds of killing.
pub(super) const MAX_PAUSE: Duration = Duration::from_millis(100);
