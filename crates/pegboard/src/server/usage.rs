//! Who uses a connection right now, and since when nobody does: a connection is never ended by itself under somebody's hands.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::sync::{Mutex, MutexGuard};

/// How often it is looked whether a connection may be ended after all, when at the moment it may not.
const LOOK: Duration = Duration::from_secs(60);

/// The uses of one connection.
#[derive(Debug)]
pub(super) struct Usage {
    state: Mutex<State>,
    /// A use has ended. Those who wait for a free connection of a pool share one of these.
    freed: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    uses: usize,
    /// Those who only want it to stay. They take no place of a call.
    stays: usize,
    /// Since when there are none.
    since: Instant,
    /// Set while the connection is being ended because nobody uses it.
    is_ending: bool,
}

impl Usage {
    pub(super) fn new(freed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                uses: 0,
                stays: 0,
                since: Instant::now(),
                is_ending: false,
            }),
            freed,
        })
    }

    /// Begins a use; none while the connection is being ended.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Arc<Use>> {
        let mut state = self.lock();
        if state.is_ending {
            return None;
        }
        state.uses += 1;
        Some(Arc::new(Use(self.clone())))
    }

    /// How many uses there are.
    pub(super) fn count(&self) -> usize {
        self.lock().uses
    }

    /// Begins to end the connection, unless somebody uses it.
    pub(super) fn end(&self) -> bool {
        let mut state = self.lock();
        state.is_ending = state.is_free();
        state.is_ending
    }

    /// The connection can be used again. Idleness counts from now.
    pub(super) fn renew(&self) {
        let mut state = self.lock();
        state.is_ending = false;
        state.since = Instant::now();
    }

    /// Waits until nobody has used the connection for as long as `limit` says at that moment.
    pub(super) async fn idle(&self, limit: impl Fn() -> Option<Duration>) {
        loop {
            let (is_free, since) = {
                let state = self.lock();
                (state.is_free(), state.since)
            };
            let now = Instant::now();
            let next = match limit() {
                None => now + LOOK,
                Some(limit) if !is_free => now + limit.min(LOOK),
                Some(limit) if since + limit <= now => return,
                Some(limit) => since + limit,
            };
            tokio::time::sleep_until(next).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_free(&self) -> bool {
        self.uses + self.stays == 0
    }
}

/// One use of a connection. It ends when the last clone is dropped.
#[derive(Debug)]
pub(crate) struct Use(Arc<Usage>);

impl Use {
    /// Keeps the connection from being ended also when this use is over.
    pub(super) fn stay(&self) -> Stay {
        self.0.lock().stays += 1;
        Stay(self.0.clone())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.uses = state.uses.saturating_sub(1);
        state.since = Instant::now();
        drop(state);
        self.0.freed.notify_waiters();
    }
}

/// Keeps a connection from being ended, over restarts too, until it is dropped.
#[derive(Debug)]
pub(crate) struct Stay(Arc<Usage>);

impl Drop for Stay {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.stays = state.stays.saturating_sub(1);
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn idleness_counts_from_the_end_of_the_last_use() {
        let usage = Usage::new(Arc::default());
        let began = Instant::now();
        let busy = usage.begin().unwrap();
        let working = async {
            tokio::time::sleep(10 * MINUTE).await;
            drop(busy);
        };
        tokio::join!(working, usage.idle(|| Some(5 * MINUTE)));
        assert_eq!(began.elapsed(), 15 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_it_to_stay_keeps_it_and_takes_no_place() {
        let usage = Usage::new(Arc::default());
        let began = Instant::now();
        let stay = usage.begin().unwrap().stay();
        assert_eq!(usage.count(), 0);
        assert!(!usage.end());
        let listening = async {
            tokio::time::sleep(10 * MINUTE).await;
            drop(stay);
        };
        tokio::join!(listening, usage.idle(|| Some(5 * MINUTE)));
        assert_eq!(began.elapsed(), 15 * MINUTE);
        assert!(usage.end());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_may_come_and_go() {
        let usage = Usage::new(Arc::default());
        let began = Instant::now();
        let limit = || (began.elapsed() >= 30 * MINUTE).then_some(MINUTE);
        usage.idle(limit).await;
        assert_eq!(began.elapsed(), 30 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_begins_to_use_what_is_being_ended_and_nothing_in_use_is_ended() {
        let usage = Usage::new(Arc::default());
        let busy = usage.begin().unwrap();
        let also_busy = busy.clone();
        assert!(!usage.end());
        drop(busy);
        assert!(!usage.end(), "a clone is the same use");
        drop(also_busy);
        assert_eq!(usage.count(), 0);
        assert!(usage.end());
        assert!(usage.begin().is_none());
        usage.renew();
        assert!(usage.begin().is_some());
    }
}
