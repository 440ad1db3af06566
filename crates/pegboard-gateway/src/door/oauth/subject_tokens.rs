//! [`SubjectTokens`]: the access tokens that clients have presented, for servers whose config exchanges them (RFC 8693).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use pegboard::{Principal, Secret};

/// The most tokens that are kept; further principals have none.
const MAX_TOKENS: usize = 4096;

/// The access token that each principal presented last, until it expires. Clones share them.
///
/// A gateway keeps no token unless it is [given](crate::GatewayBuilder::subject_tokens) a value of this type. Only a program with a server
/// whose credentials come from a token exchange should do that, and hand the token to that exchange alone: it must never reach a server.
#[derive(Clone, Debug, Default)]
pub struct SubjectTokens {
    kept: Arc<Mutex<HashMap<Principal, Kept>>>,
}

#[derive(Debug)]
struct Kept {
    token: Secret,
    expires: SystemTime,
}

impl SubjectTokens {
    /// The token of a principal, unless it has expired.
    pub fn get(&self, principal: &Principal) -> Option<Secret> {
        let kept = self.kept();
        let kept = kept.get(principal).filter(|kept| SystemTime::now() < kept.expires);
        kept.map(|kept| kept.token.clone())
    }

    pub(super) fn keep(&self, principal: &Principal, token: Secret, expires: SystemTime) {
        let mut kept = self.kept();
        if kept.len() < MAX_TOKENS || kept.contains_key(principal) {
            kept.insert(principal.clone(), Kept { token, expires });
        }
    }

    pub(super) fn expire(&self, now: SystemTime) {
        self.kept().retain(|_, kept| now < kept.expires);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Principal, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_is_kept_for_its_principal_until_it_expires_and_never_printed() {
        let (tokens, now) = (SubjectTokens::default(), SystemTime::now());
        let (ada, bob) = (Principal::new("i#ada"), Principal::new("i#bob"));
        tokens.keep(&ada, Secret::from("canary"), now + Duration::from_secs(60));
        tokens.keep(&bob, Secret::from("old"), now);
        assert_eq!(tokens.get(&ada).unwrap().expose(), "canary");
        assert_eq!(tokens.get(&bob), None);
        assert!(!format!("{tokens:?}").contains("canary"));
        tokens.expire(now + Duration::from_secs(61));
        assert_eq!(tokens.kept().len(), 0);
    }
}
