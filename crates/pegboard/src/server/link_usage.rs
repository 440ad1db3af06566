//! Counts the uses of a connection, so that it is closed as idle only when no call uses it.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use pegboard_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The longest time between two idle checks while the connection may not be closed.
const RECHECK: Duration = Duration::from_secs(60);

/// What one use of the connection adds to the state.
const USE: u64 = 1;
/// What one [`KeepAlive`] adds to the state. It does not count as a use.
const KEEP_ALIVE: u64 = 1 << 32;
/// The bit of the state that is set while the connection is being closed as idle.
const CLOSING: u64 = 1 << 63;

/// The uses of one connection. Every call begins and ends one, so the state is two adjacent atomics.
#[derive(Debug)]
pub(super) struct Usage {
    /// The number of [`USE`]s and [`KEEP_ALIVE`]s, and the [`CLOSING`] bit.
    state: AtomicU64,
    /// When the last use ended, in nanoseconds after `created`. Meaningful only while there is none.
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

    /// Begins a use. Returns `None` while the connection is being closed.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Arc<UseGuard>> {
        let begun = |state: u64| (state & CLOSING == 0).then_some(state + USE);
        let begun = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, begun);
        begun.ok().map(|_| Arc::new(UseGuard(self.clone())))
    }

    /// The number of uses.
    pub(super) fn count(&self) -> usize {
        (self.state.load(Ordering::SeqCst) % KEEP_ALIVE) as usize
    }

    /// Starts to close the connection. Returns `false` if it is in use or kept alive.
    pub(super) fn end(&self) -> bool {
        let ended = |state: u64| (state & !CLOSING == 0).then_some(CLOSING);
        let ended = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, ended);
        ended.is_ok()
    }

    /// Makes a new connection usable. The idle time starts now.
    pub(super) fn renew(&self) {
        self.mark_released();
        self.state.fetch_and(!CLOSING, Ordering::SeqCst);
    }

    /// Restarts the idle time.
    fn mark_released(&self) {
        let idle_since = u64::try_from(self.created.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.idle_since.fetch_max(idle_since, Ordering::SeqCst);
    }

    /// Waits until the connection has been idle for `limit`, which is evaluated on every check.
    pub(super) async fn wait_until_idle(&self, limit: impl Fn() -> Option<Duration>) {
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
    /// Keeps the connection open beyond this use.
    pub(super) fn keep_alive(&self) -> KeepAlive {
        self.0.state.fetch_add(KEEP_ALIVE, Ordering::SeqCst);
        KeepAlive(self.0.clone())
    }
}

impl Drop for UseGuard {
    fn drop(&mut self) {
        // In this order: a reader that sees no uses must see the new idle time.
        self.0.mark_released();
        self.0.state.fetch_sub(USE, Ordering::SeqCst);
        self.0.released.notify();
    }
}

/// Keeps a connection from being closed as idle, across restarts, until it is dropped.
#[derive(Debug)]
pub(crate) struct KeepAlive(Arc<Usage>);

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.mark_released();
        self.0.state.fetch_sub(KEEP_ALIVE, Ordering::SeqCst);
    }
}

/// Notifies calls that wait for a free connection of a pool when a use ends.
#[derive(Debug, Default)]
pub(super) struct ReleaseNotifier {
    ended: Notify,
    /// The number of waiting calls. Mostly zero, so that the end of a use costs one load.
    waiting: AtomicUsize,
}

impl ReleaseNotifier {
    fn notify(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.ended.notify_waiters();
        }
    }

    /// Waits for the end of a use. Uses that end after this call and before the first poll count too.
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
        tokio::join!(working, usage.wait_until_idle(|| Some(5 * MINUTE)));
        assert_eq!(began.elapsed(), 15 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_keep_alive_keeps_the_connection_and_is_no_use() {
        let usage = Usage::new(Arc::default());
        let began = Instant::now();
        let stay = usage.begin().unwrap().keep_alive();
        assert_eq!(usage.count(), 0);
        assert!(!usage.end());
        let listening = async {
            tokio::time::sleep(10 * MINUTE).await;
            drop(stay);
        };
        tokio::join!(listening, usage.wait_until_idle(|| Some(5 * MINUTE)));
        assert_eq!(began.elapsed(), 15 * MINUTE);
        assert!(usage.end());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_may_come_and_go() {
        let usage = Usage::new(Arc::default());
        let began = Instant::now();
        let limit = || (began.elapsed() >= 30 * MINUTE).then_some(MINUTE);
        usage.wait_until_idle(limit).await;
        assert_eq!(began.elapsed(), 30 * MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closing_connection_takes_no_uses_and_a_used_one_is_not_closed() {
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
