//! [`Activity`]: what a connection is doing, and how long it may go on with that.
//!
//! The state is changed by the connection's own task and read when that task yields, so that a busy connection sets no timers.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How long a connection without a request stays open: longer than clients keep theirs, so that they close first.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(120);

/// How long a client may take to read anything of a response.
const WRITE_TIME: Duration = Duration::from_secs(30);

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

/// What a connection is doing.
#[derive(Debug)]
pub(super) struct Activity {
    opened: Instant,
    phase: AtomicU8,
    /// When the phase began, in milliseconds after `opened`.
    since: AtomicU64,
    /// When the client stopped reading, plus one; 0 while it reads.
    stalled: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            phase: AtomicU8::new(IDLE),
            since: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
        })
    }

    /// Notes that bytes came from the client.
    pub(super) fn note_received(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(HEAD);
        }
    }

    /// Notes that a request is handled until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.phase.store(BUSY, Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Notes that the client does not read.
    pub(super) fn note_stalled(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(self.now() + 1, Ordering::Relaxed);
        }
    }

    /// Notes that the client reads.
    pub(super) fn clear_stall(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the client does not read what is sent.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed) != 0
    }

    /// Completes when the connection must be closed. Must be polled after each poll of the connection.
    pub(super) fn poll_expired(&self, mut sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline() else {
            return Poll::Pending;
        };
        // A timer that ends too early is set again when it does; this is rarer than a change of the deadline.
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn deadline(&self) -> Option<Instant> {
        let since = || self.opened + Duration::from_millis(self.since.load(Ordering::Relaxed));
        let phase = match self.phase.load(Ordering::Relaxed) {
            IDLE => Some(since() + IDLE_TIME),
            HEAD => Some(since() + HEAD_TIME),
            _ => None,
        };
        let stalled = match self.stalled.load(Ordering::Relaxed) {
            0 => None,
            stalled => Some(self.opened + Duration::from_millis(stalled - 1) + WRITE_TIME),
        };
        match (phase, stalled) {
            (Some(phase), Some(stalled)) => Some(phase.min(stalled)),
            (phase, stalled) => phase.or(stalled),
        }
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.now(), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request that is being handled, until its response was sent.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.enter(IDLE);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    async fn expires(activity: &Activity) -> Duration {
        let started = Instant::now();
        let mut sleep = std::pin::pin!(sleep_until(started + 10 * IDLE_TIME));
        std::future::poll_fn(|cx| activity.poll_expired(sleep.as_mut(), cx)).await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_own_limit() {
        let activity = Activity::new();
        assert_eq!(expires(&activity).await, IDLE_TIME);
        activity.note_received();
        assert_eq!(expires(&activity).await, HEAD_TIME);
        let busy = activity.begin();
        activity.note_received();
        advance(10 * IDLE_TIME).await;
        activity.note_stalled();
        advance(Duration::from_secs(1)).await;
        activity.note_stalled();
        assert_eq!(expires(&activity).await, WRITE_TIME - Duration::from_secs(1));
        activity.clear_stall();
        drop(busy);
        assert_eq!(expires(&activity).await, IDLE_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_never_expires() {
        let activity = Activity::new();
        let _busy = activity.begin();
        let waited = tokio::time::timeout(100 * IDLE_TIME, expires(&activity)).await;
        assert!(waited.is_err());
    }
}
