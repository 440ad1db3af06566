//! [`PendingSignIns`]: the sign-ins that wait for their authorization server to send the browser back.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pegboard::{Principal, Secret, ServerName, SignIn};
use tokio::time::Instant;

/// How long a person may take.
const TIME: Duration = Duration::from_secs(10 * 60);
/// The most sign-ins of one principal. The oldest one ends for a further one.
const MAX_OF_PRINCIPAL: usize = 10;
/// The most sign-ins in all. Further ones are refused.
const MAX: usize = 1000;

/// The sign-ins that have begun, in order.
#[derive(Debug, Default)]
pub(super) struct PendingSignIns(Mutex<Vec<Pending>>);

/// A sign-in that waits for the browser.
#[derive(Debug)]
pub(super) struct Pending {
    /// The cookie of the browser that began it. No other one can finish it.
    pub(super) cookie: Secret,
    pub(super) principal: Option<Principal>,
    pub(super) server: ServerName,
    pub(super) sign_in: SignIn,
    pub(super) began: Instant,
}

impl PendingSignIns {
    /// Adds a sign-in. Returns `false` if there are too many.
    pub(super) fn add(&self, pending: Pending) -> bool {
        let mut all = self.lock();
        all.retain(|known| known.began.elapsed() < TIME);
        let is_own = |known: &Pending| known.principal == pending.principal;
        let oldest = all.iter().position(is_own);
        let ended = match oldest {
            Some(oldest) if all.iter().filter(|known| is_own(known)).count() >= MAX_OF_PRINCIPAL => {
                Some(all.remove(oldest))
            }
            _ => None,
        };
        let has_room = all.len() < MAX;
        if has_room {
            all.push(pending);
        }
        // Dropped without the lock.
        drop(all);
        drop(ended);
        has_room
    }

    /// Takes the sign-in that a redirect of this browser answers.
    pub(super) fn take(&self, cookie: &Secret, redirected: &str) -> Option<Pending> {
        let mut all = self.lock();
        let is_meant = |known: &Pending| known.sign_in.is_answered_by(redirected) && known.cookie == *cookie;
        let at = all.iter().position(is_meant)?;
        Some(all.remove(at)).filter(|pending| pending.began.elapsed() < TIME)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
