//! Who uses a connection right now, and idle_since when nobody does: a connection is never ended by itself under somebody's hands.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How often it is looked whether a connection may be ended after all, when at the moment it may not.
const RECHECK: Duration = Duration::from_secs(60);

/// One who uses a connection.
const USE: u64 = 1;
/// One who only wants it to stay. They take no place of a call.
const KEEP_ALIVE: u64 = 1 << 32;
/// Set while the connection is being ended because nobody uses it.
const CLOSING: u64 = 1 << 63;

/// The uses of one connection. Every call begins and ends one, so all that it writes is in two words beside each other.
#[derive(Debug)]
pub(super) struct Usage {
    /// How many [`USE`] and [`KEEP_ALIVE`], and perhaps that it is [`CLOSING`].
    state: AtomicU64,
    /// Since when nobody uses it, in nanoseconds after `created`. It counts only while nobody does.
    idle_since: AtomicU64,
    created: Instant,
    released: Arc<ReleaseNotifier>,
}

impl Usage {
    pub(super) fn new(released: Arc<ReleaseNotifier>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            created: Instant::now(),
            released,
        })
    }

    /// Begins a use; none while the connection is being ended.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Arc<UseGuard>> {
        let begun = |state: u64| (state & CLOSING == 0).then_some(state + USE);
        let begun = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, begun);
        begun.ok().map(|_| Arc::new(UseGuard(self.clone())))
    }

    /// How many uses there are.
    pub(super) fn count(&self) -> usize {
        (self.state.load(Ordering::SeqCst) % KEEP_ALIVE) as usize
    }

    /// Begins to end the connection, unless somebody uses it.
    pub(super) fn end(&self) -> bool {
        let ended = |state: u64| (state & !CLOSING == 0).then_some(CLOSING);
        let ended = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, ended);
        ended.is_ok()
    }

    /// The connection can be used again. Idleness counts from now.
    pub(super) fn renew(&self) {
        self.mark_released();
        self.state.fetch_and(!CLOSING, Ordering::SeqCst);
    }

    /// Idleness counts from now, if nobody uses it any more.
    fn mark_released(&self) {
        let idle_since = u64::try_from(self.created.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.idle_since.fetch_max(idle_since, Ordering::SeqCst);
    }

    /// Waits until nobody has used the connection for as long as `limit` says at that moment.
    pub(super) async fn idle(&self, limit: impl Fn() -> Option<Duration>) {
        loop {
            let is_free = self.state.load(Ordering::SeqCst) & !CLOSING == 0;
            let idle_since = self.created + Duration::from_nanos(self.idle_since.load(Ordering::SeqCst));
            let now = Instant::now();
            let next = match limit() {
                None => now + RECHECK,
                Some(limit) if !is_free => now + limit.min(RECHECK),
                Some(limit) if idle_since + limit <= now => return,
                Some(limit) => idle_since + limit,
            };
            tokio::time::sleep_until(next).await;
        }
    }
}

/// One use of a connection. It ends when the last clone is dropped.
#[derive(Debug)]
pub(crate) struct UseGuard(Arc<Usage>);

impl UseGuard {
    /// Keeps the connection from being ended also when this use is over.
    pub(super) fn keep_alive(&self) -> KeepAlive {
        self.0.state.fetch_add(KEEP_ALIVE, Ordering::SeqCst);
        KeepAlive(self.0.clone())
    }
}

impl Drop for UseGuard {
    fn drop(&mut self) {
        // In this order: whoever sees that nobody uses it must see idle_since when.
        self.0.mark_released();
        self.0.state.fetch_sub(USE, Ordering::SeqCst);
        self.0.released.notify();
    }
}

/// Keeps a connection from being ended, over restarts too, until it is dropped.
#[derive(Debug)]
pub(crate) struct KeepAlive(Arc<Usage>);

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.mark_released();
        self.0.state.fetch_sub(KEEP_ALIVE, Ordering::SeqCst);
    }
}

/// Tells those who wait for a free connection of a pool that a use has ended.
#[derive(Debug, Default)]
pub(super) struct ReleaseNotifier {
    ended: Notify,
    /// How many wait. There is nobody most of the time, and then no call pays for more than a look.
    waiting: AtomicUsize,
}

impl ReleaseNotifier {
    fn notify(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_waiters();
        }
    }

    /// Waits for the end of a use. Those that end after this call and before the first poll count too.
    pub(super) fn next(&self) -> impl Future<Output = ()> + Send {
        let waiting = WaiterCount::new(&self.waiting);
        let ended = self.ended.notified();
        async move {
            ended.await;
            drop(waiting);
        }
    }
}

struct WaiterCount<'a>(&'a AtomicUsize);

impl<'a> WaiterCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
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
        let stay = usage.begin().unwrap().keep_alive();
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
