//! [`ReplayGuard`]: forwarded requests are taken once. Whoever could record one on the network must not make its call again.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

/// How old a forwarded request may be, and how far the clocks of replicas may differ.
pub(super) const MAX_AGE: Duration = Duration::from_secs(60);

/// The most requests that are remembered: 8,000 a second.
const MAX: usize = 1 << 20;

/// The forwarded requests that could be taken again.
#[derive(Debug, Default)]
pub(super) struct ReplayGuard(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    nonces: HashSet<u64>,
    order: VecDeque<(Instant, u64)>,
}

/// Whether a request is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    Once,
    /// It was taken before.
    Before,
    /// Too many were taken.
    Full,
}

impl ReplayGuard {
    /// Notes a request whose age was checked.
    pub(super) fn admit(&self, nonce: u64) -> Admitted {
        let now = Instant::now();
        let mut seen = self.0.lock();
        // It may have been sent by a clock that is ahead, so it can be taken for twice the age.
        while seen
            .order
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) > 2 * MAX_AGE)
        {
            if let Some((_, old)) = seen.order.pop_front() {
                seen.nonces.remove(&old);
            }
        }
        if seen.nonces.contains(&nonce) {
            return Admitted::Before;
        }
        if seen.order.len() >= MAX {
            return Admitted::Full;
        }
        seen.nonces.insert(nonce);
        seen.order.push_back((now, nonce));
        Admitted::Once
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_taken_once_while_it_could_be_taken_again() {
        let guard = ReplayGuard::default();
        assert_eq!(
            [1, 2, 1].map(|nonce| guard.admit(nonce)),
            [Admitted::Once, Admitted::Once, Admitted::Before]
        );
        tokio::time::advance(2 * MAX_AGE).await;
        assert_eq!(guard.admit(1), Admitted::Before);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(guard.admit(3), Admitted::Once);
        assert_eq!(guard.0.lock().order.len(), 1, "the others are too old to be taken");
    }
}
