//! [`Admitted`]: those whom a program admits, so that it can end what they have open.

use std::collections::{HashMap, VecDeque};

use pegboard::Principal;
use pegboard_base::sync::Mutex;

use super::Revocation;

/// The least number of principals that there is room for.
const MIN_PRINCIPALS: usize = 64;
/// How many ends are remembered for requests that are being authenticated.
const RECENT_ENDS: usize = 1024;

/// Those whom a program admits. One who has nothing open is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Admitted(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: HashMap<Principal, Revocation>,
    /// The last principals that were ended, the newest last.
    ends: VecDeque<Principal>,
    /// How many principals were ended so far.
    ended: u64,
}

impl State {
    /// Whether a principal was ended since a moment, as far as that is remembered.
    fn was_ended_since(&self, moment: Moment, principal: &Principal) -> bool {
        let since = usize::try_from(self.ended - moment.0).unwrap_or(usize::MAX);
        since > self.ends.len() || self.ends.iter().rev().take(since).any(|ended| ended == principal)
    }
}

/// A moment in the order of ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u64);

impl Admitted {
    /// The present moment.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.0.lock().ended)
    }

    /// What ends all that a principal opens from now on; `None` if what it had open was ended since `moment`, or may have been.
    pub(crate) fn revocation_since(&self, moment: Moment, principal: &Principal) -> Option<Revocation> {
        let mut state = self.0.lock();
        if state.was_ended_since(moment, principal) {
            return None;
        }
        let known = &mut state.known;
        if let Some(revocation) = known.get(principal) {
            return Some(revocation.clone());
        }
        // Each time that the table would grow, so that this costs the same for each principal.
        if known.len() == known.capacity() {
            known.retain(|_, revocation| revocation.is_shared());
            let kept = known.len();
            known.reserve(kept.max(MIN_PRINCIPALS));
        }
        Some(known.entry(principal.clone()).or_default().clone())
    }

    /// Ends what a principal has open. Returns what ended it, if there may be something.
    pub(crate) fn end(&self, principal: &Principal) -> Option<Revocation> {
        let mut state = self.0.lock();
        state.ended += 1;
        if state.ends.len() == RECENT_ENDS {
            state.ends.pop_front();
        }
        state.ends.push_back(principal.clone());
        let revocation = state.known.remove(principal);
        drop(state);
        let revocation = revocation?;
        revocation.revoke();
        Some(revocation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(admitted: &Admitted, principal: &str) -> Revocation {
        let principal = principal.into();
        admitted.revocation_since(admitted.moment(), &principal).unwrap()
    }

    #[test]
    fn who_has_nothing_open_is_forgotten_and_others_are_not() {
        let admitted = Admitted::default();
        let ada = open(&admitted, "ada");
        for user in 0..10_000 {
            open(&admitted, &format!("user-{user}"));
        }
        assert!(admitted.0.lock().known.len() < 1_000);
        assert!(admitted.end(&"bob".into()).is_none());
        assert!(!ada.is_revoked());
        admitted.end(&"ada".into()).unwrap();
        assert!(ada.is_revoked());
        assert!(
            !open(&admitted, "ada").is_revoked(),
            "the next request is admitted anew"
        );
    }

    #[test]
    fn an_end_during_the_authentication_of_a_request_is_noticed() {
        let admitted = Admitted::default();
        let (ada, bob) = ("ada".into(), "bob".into());
        let asked = admitted.moment();
        admitted.end(&ada);
        assert!(admitted.revocation_since(asked, &ada).is_none());
        assert!(admitted.revocation_since(asked, &bob).is_some());
        assert!(admitted.revocation_since(admitted.moment(), &ada).is_some());
        for _ in 0..RECENT_ENDS {
            admitted.end(&"eve".into());
        }
        assert!(admitted.revocation_since(asked, &bob).is_none(), "too long ago to tell");
        assert_eq!(admitted.0.lock().ends.len(), RECENT_ENDS);
    }
}
