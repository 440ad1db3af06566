//! [`ReplayGuard`]: forwarded requests are taken once. Whoever could record one on the network must not make its call again.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

/// How old a forwarded request may be, and how far the clocks of replicas may differ.
pub(super) const MAX_AGE: Duration = Duration::from_secs(60);

/// The most requests that are remembered. Beyond that further ones are refused, which takes 2,000 a second.
const MAX: usize = 1 << 18;

/// The forwarded requests of the last minutes.
#[derive(Debug, Default)]
pub(super) struct ReplayGuard(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    nonces: HashSet<[u8; 16]>,
    order: VecDeque<(Instant, [u8; 16])>,
}

impl ReplayGuard {
    /// Notes a request. Returns `false` if it was noted before, or there is no room.
    pub(super) fn admit(&self, nonce: [u8; 16]) -> bool {
        let now = Instant::now();
        let mut seen = self.0.lock();
        // A request that is older is refused for its age. It may have been sent by a clock that is ahead.
        while seen
            .order
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) > 2 * MAX_AGE)
        {
            if let Some((_, old)) = seen.order.pop_front() {
                seen.nonces.remove(&old);
            }
        }
        if seen.order.len() >= MAX || !seen.nonces.insert(nonce) {
            return false;
        }
        seen.order.push_back((now, nonce));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_taken_once_while_it_could_be_taken_again() {
        let guard = ReplayGuard::default();
        assert!(guard.admit([1; 16]) && guard.admit([2; 16]));
        assert!(!guard.admit([1; 16]));
        tokio::time::advance(2 * MAX_AGE).await;
        assert!(!guard.admit([1; 16]));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(guard.admit([3; 16]));
        assert_eq!(guard.0.lock().order.len(), 1, "the others are too old to be taken");
    }
}
