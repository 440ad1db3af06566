//! The wall clock. In tests it follows tokio's time, which can be paused.

use std::time::Duration;

/// Seconds since 1970.
pub(super) fn unix_now() -> u64 {
    since_1970().as_secs()
}

#[cfg(not(test))]
fn since_1970() -> Duration {
    // A clock before 1970 makes every token look fresh; the server's refusal then leads to a new one.
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
fn since_1970() -> Duration {
    use tokio::time::Instant;

    thread_local! {
        static START: Instant = Instant::now();
    }
    Duration::from_secs(1_700_000_000) + START.with(|start| Instant::now().saturating_duration_since(*start))
}
