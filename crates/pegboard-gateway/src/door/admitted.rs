//! [`Admitted`]: those whom a program admits, so that it can end what they have open.

use std::collections::HashMap;

use pegboard::Principal;
use pegboard_base::sync::Mutex;

use super::Revocation;

/// The least number of principals that there is room for.
const MIN_PRINCIPALS: usize = 64;

/// Those whom a program admits. One who has nothing open is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Admitted(Mutex<HashMap<Principal, Revocation>>);

impl Admitted {
    /// What ends all that a principal opens from now on.
    pub(crate) fn revocation_of(&self, principal: &Principal) -> Revocation {
        let mut known = self.0.lock();
        if let Some(revocation) = known.get(principal) {
            return revocation.clone();
        }
        // Each time that the table would grow, so that this costs the same for each principal.
        if known.len() == known.capacity() {
            known.retain(|_, revocation| revocation.is_shared());
            let kept = known.len();
            known.reserve(kept.max(MIN_PRINCIPALS));
        }
        known.entry(principal.clone()).or_default().clone()
    }

    /// Ends what a principal has open.
    pub(crate) fn end(&self, principal: &Principal) {
        let known = self.0.lock().remove(principal);
        if let Some(revocation) = known {
            revocation.revoke();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_nothing_open_is_forgotten_and_others_are_not() {
        let admitted = Admitted::default();
        let ada = admitted.revocation_of(&"ada".into());
        for user in 0..10_000 {
            admitted.revocation_of(&Principal::from(format!("user-{user}")));
        }
        assert!(admitted.0.lock().len() < 1_000);
        admitted.end(&"bob".into());
        assert!(!ada.is_revoked());
        admitted.end(&"ada".into());
        assert!(ada.is_revoked());
        assert!(
            !admitted.revocation_of(&"ada".into()).is_revoked(),
            "the next request is admitted anew"
        );
    }
}
