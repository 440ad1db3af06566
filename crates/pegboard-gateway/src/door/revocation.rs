//! [`Revocation`]: notifies all that was opened with a token when the token is good no longer.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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
}

impl Revocation {
    /// Says that the token was removed or withdrawn, or has other rights.
    pub(crate) fn revoke(&self) {
        // Before the notices, so that everything that is notified knows which end it is.
        self.0.is_withdrawn.store(true, Ordering::Release);
        self.0.withdrawal.cancel();
        self.0.notice.cancel();
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
