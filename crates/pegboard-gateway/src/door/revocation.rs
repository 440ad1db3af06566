//! [`Revocation`]: notifies all that was opened with a token when the token is good no longer.

use std::{
    future::Future,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use pegboard_base::sync::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The least room for watches, so that a few of them are not looked through again and again.
const MIN_WATCHES: usize = 16;

/// Notifies all that was opened with a token when the token is good no longer. Clones are of the same token.
///
/// A token that expires admits nothing more, but calls that it admitted before run on. One that is withdrawn ends them too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revocation(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Cancelled when the token expires or is withdrawn.
    notice: CancellationToken,
    /// Cancelled when the token is withdrawn.
    withdrawal: CancellationToken,
    /// Read at each poll of a request, which must not lock.
    is_withdrawn: AtomicBool,
    /// Who is woken when the token is withdrawn.
    watches: Mutex<Vec<Weak<AtomicWaker>>>,
}

/// Waits for the withdrawal of a token. It belongs to one task, and does not lock when it is polled.
#[derive(Debug)]
pub(crate) struct RevocationWatch {
    revocation: Revocation,
    waker: Arc<AtomicWaker>,
}

impl RevocationWatch {
    /// Completes when the token is withdrawn; never if it only expires.
    pub(crate) fn poll_revoked(&self, cx: &Context<'_>) -> Poll<()> {
        // Before the look, so that no withdrawal is missed.
        self.waker.register(cx.waker());
        match self.revocation.is_revoked() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Revocation {
    /// Says that the token was removed or withdrawn, or has other rights.
    pub(crate) fn revoke(&self) {
        // Before the notices, so that everything that is notified knows which end it is.
        self.0.is_withdrawn.store(true, Ordering::Release);
        self.0.withdrawal.cancel();
        self.0.notice.cancel();
        let watches = std::mem::take(&mut *self.0.watches.lock());
        watches.iter().filter_map(Weak::upgrade).for_each(|waker| waker.wake());
    }

    /// Whether something else has it too.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Watches for the withdrawal of the token.
    pub(crate) fn watch(&self) -> RevocationWatch {
        let waker = Arc::new(AtomicWaker::new());
        let mut watches = self.0.watches.lock();
        // Those that are gone are removed each time that the list would grow, so that this costs the same for each watch.
        if watches.len() == watches.capacity() {
            watches.retain(|waker| waker.strong_count() > 0);
            let kept = watches.len();
            watches.reserve(kept.max(MIN_WATCHES));
        }
        watches.push(Arc::downgrade(&waker));
        drop(watches);
        RevocationWatch {
            revocation: self.clone(),
            waker,
        }
    }

    /// Says that the time of the token is over.
    pub(crate) fn expire(&self) {
        self.0.notice.cancel();
    }

    /// Whether both are of the same token.
    pub(super) fn is_of_same_token(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the token is good no longer.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.notice.is_cancelled()
    }

    /// Whether the token was removed or withdrawn, or has other rights. Does not lock.
    pub(crate) fn is_revoked(&self) -> bool {
        self.0.is_withdrawn.load(Ordering::Acquire)
    }

    /// Whether the token is no longer good only because its time is over.
    pub(crate) fn has_expired(&self) -> bool {
        self.has_ended() && !self.is_revoked()
    }

    /// Completes when the token is good no longer.
    pub(crate) fn wait_ended(&self) -> impl Future<Output = ()> + '_ {
        self.0.notice.cancelled()
    }

    /// Completes when the token is withdrawn; never if it only expires.
    pub(crate) fn wait_revoked(&self) -> impl Future<Output = ()> + '_ {
        self.0.withdrawal.cancelled()
    }

    /// As [`Revocation::cancelled`].
    pub(crate) fn cancelled_owned(&self) -> WaitForCancellationFutureOwned {
        self.0.notice.clone().cancelled_owned()
    }

    /// As [`Revocation::withdrawn`].
    pub(crate) fn withdrawn_owned(&self) -> WaitForCancellationFutureOwned {
        self.0.withdrawal.clone().cancelled_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, task::Waker};

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_watch_sees_a_withdrawal_whenever_it_comes() {
        let revocation = Revocation::default();
        let (early, late) = (revocation.watch(), revocation.watch());
        let cx = Context::from_waker(Waker::noop());
        assert!(early.poll_revoked(&cx).is_pending());
        revocation.expire();
        assert!(early.poll_revoked(&cx).is_pending(), "it has only expired");
        revocation.revoke();
        for watch in [early, late, revocation.watch()] {
            assert!(watch.poll_revoked(&cx).is_ready());
        }
    }

    #[tokio::test]
    async fn a_task_that_waits_is_woken() {
        let revocation = Revocation::default();
        let watch = revocation.watch();
        let mut waiting = pin!(poll_fn(|cx| watch.poll_revoked(cx)));
        assert!(waiting.as_mut().now_or_never().is_none());
        let ((), ()) = tokio::join!(waiting, async { revocation.revoke() });
    }

    #[test]
    fn watches_that_are_gone_take_no_room() {
        let revocation = Revocation::default();
        let kept = revocation.watch();
        for _ in 0..10_000 {
            revocation.watch();
        }
        assert!(revocation.0.watches.lock().capacity() <= 4 * MIN_WATCHES);
        revocation.revoke();
        assert!(kept.poll_revoked(&Context::from_waker(Waker::noop())).is_ready());
    }
}
