//! [`PendingSignIns`]: the sign-ins that wait for their authorization server to send the browser back.

use std::time::Duration;

use pegboard::{Principal, Secret, ServerName, SignIn};
use pegboard_base::sync::Mutex;
use tokio::time::Instant;

/// How long a person may take.
const TIME: Duration = Duration::from_secs(10 * 60);
/// The most sign-ins of one principal. The oldest one ends for a further one.
const MAX_OF_PRINCIPAL: usize = 10;
/// The most sign-ins in all. Further ones are refused.
const MAX: usize = 1000;

/// The sign-ins that have begun, in order.
#[derive(Debug)]
pub(super) struct PendingSignIns<S = SignIn>(Mutex<Vec<Pending<S>>>);

impl<S> Default for PendingSignIns<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A sign-in that waits for the browser.
#[derive(Debug)]
pub(super) struct Pending<S = SignIn> {
    /// The cookie of the browser that began it. No other one can finish it.
    pub(super) cookie: Secret,
    pub(super) principal: Option<Principal>,
    pub(super) server: ServerName,
    pub(super) sign_in: S,
    pub(super) began: Instant,
}

impl<S> PendingSignIns<S> {
    /// Adds a sign-in. Returns `false` if there are too many.
    pub(super) fn add(&self, pending: Pending<S>) -> bool {
        let mut all = self.0.lock();
        all.retain(|known| known.began.elapsed() < TIME);
        let is_own = |known: &Pending<S>| known.principal == pending.principal;
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

    /// Whether a sign-in of a principal to a server waits for its redirect. One that waits in vain has no other sign.
    pub(super) fn has(&self, principal: Option<&Principal>, server: &ServerName) -> bool {
        let is_meant = |known: &Pending<S>| {
            known.principal.as_ref() == principal && known.server == *server && known.began.elapsed() < TIME
        };
        self.0.lock().iter().any(is_meant)
    }

    /// Ends the sign-ins of a principal to a server.
    pub(super) fn end(&self, principal: Option<&Principal>, server: &ServerName) {
        let is_meant = |known: &mut Pending<S>| known.principal.as_ref() == principal && known.server == *server;
        let ended: Vec<_> = self.0.lock().extract_if(.., is_meant).collect();
        // Dropped without the lock.
        drop(ended);
    }

    /// Takes the sign-in of this browser that a redirect answers.
    pub(super) fn take(&self, cookie: &Secret, is_answered: impl Fn(&S) -> bool) -> Option<Pending<S>> {
        let mut all = self.0.lock();
        let is_meant = |known: &Pending<S>| is_answered(&known.sign_in) && known.cookie == *cookie;
        let at = all.iter().position(is_meant)?;
        Some(all.remove(at)).filter(|pending| pending.began.elapsed() < TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(principal: &str, number: usize) -> Pending<usize> {
        Pending {
            cookie: Secret::from(principal),
            principal: Some(Principal::new(principal)),
            server: ServerName::parse("fx").unwrap(),
            sign_in: number,
            began: Instant::now(),
        }
    }

    fn take(all: &PendingSignIns<usize>, principal: &str, number: usize) -> bool {
        let taken = all.take(&Secret::from(principal), |known| *known == number);
        taken.is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_has_ten_minutes_and_one_redirect_counts() {
        let all = PendingSignIns::default();
        assert!(all.add(pending("ada", 1)) && all.add(pending("ada", 2)));
        tokio::time::advance(TIME - Duration::from_secs(1)).await;
        assert!(take(&all, "ada", 1));
        assert!(!take(&all, "ada", 1));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!take(&all, "ada", 2));
        // Those that nobody finishes take no room.
        assert!(all.add(pending("ada", 3)));
        tokio::time::advance(TIME).await;
        assert!(all.add(pending("bob", 4)));
        assert_eq!(all.0.lock().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_in_that_got_no_redirect_is_known_until_it_ends() {
        let all = PendingSignIns::default();
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let (fx, other) = (ServerName::parse("fx").unwrap(), ServerName::parse("other").unwrap());
        assert!(all.add(pending("ada", 1)) && all.add(pending("ada", 2)) && all.add(pending("bob", 3)));
        assert!(all.has(Some(&ada), &fx));
        assert!(!all.has(Some(&ada), &other) && !all.has(None, &fx));
        all.end(Some(&ada), &fx);
        assert!(!all.has(Some(&ada), &fx));
        tokio::time::advance(TIME - Duration::from_secs(1)).await;
        assert!(all.has(Some(&bob), &fx));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!all.has(Some(&bob), &fx));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_browser_that_began_a_sign_in_finishes_it() {
        let all = PendingSignIns::default();
        assert!(all.add(pending("ada", 1)));
        assert!(!take(&all, "bob", 1));
        assert!(take(&all, "ada", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_has_ten_and_ends_its_own_oldest_only() {
        let all = PendingSignIns::default();
        assert!(all.add(pending("bob", 0)));
        for number in 0..=MAX_OF_PRINCIPAL {
            assert!(all.add(pending("ada", number)));
        }
        assert!(!take(&all, "ada", 0), "the oldest has ended");
        assert!((1..=MAX_OF_PRINCIPAL).all(|number| take(&all, "ada", number)));
        assert!(take(&all, "bob", 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_are_open_in_all_and_a_further_principal_is_refused() {
        let all = PendingSignIns::default();
        for number in 0..MAX {
            assert!(all.add(pending(&format!("p{}", number / MAX_OF_PRINCIPAL), number)));
        }
        assert!(!all.add(pending("eve", MAX)));
        assert!(!take(&all, "eve", MAX));
        // One that has its share replaces its oldest.
        assert!(all.add(pending("p0", MAX)));
        assert!(take(&all, "p0", MAX) && !take(&all, "p0", 0));
        tokio::time::advance(TIME).await;
        assert!(all.add(pending("eve", MAX)), "the old ones are over");
    }
}
