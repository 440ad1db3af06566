//! [`CallerTokens`]: the access tokens with which callers came to a gateway, for servers whose config exchanges them (RFC 8693).

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use crate::{caller::Principal, secret::Secret};

/// The most tokens that are kept. The one that expires first makes room.
const MAX_TOKENS: usize = 4096;

/// The access token of each principal, until it expires. Clones share them.
///
/// A board [has one](crate::Pegboard::caller_tokens). A gateway keeps the tokens of its callers there while they are
/// [wanted](CallerTokens::are_wanted): no token is kept unless a server's config exchanges it, and it reaches the authorization server that this
/// config names and nothing else.
#[derive(Clone, Default)]
pub struct CallerTokens {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    are_wanted: AtomicBool,
    kept: Mutex<HashMap<Principal, CallerToken>>,
}

/// A token that a caller came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallerToken {
    pub(crate) token: Secret,
    pub(crate) expires: SystemTime,
}

impl CallerTokens {
    /// Whether a server of the board exchanges the tokens of callers. Once it is `true` it stays so.
    pub fn are_wanted(&self) -> bool {
        self.shared.are_wanted.load(Ordering::Acquire)
    }

    /// Keeps the token of a principal until it expires, unless the known one is valid for longer. Does nothing if tokens are not wanted.
    pub fn keep(&self, principal: &Principal, token: Secret, expires: SystemTime) {
        if !self.are_wanted() {
            return;
        }
        let mut kept = self.kept();
        if kept.get(principal).is_some_and(|known| known.expires > expires) {
            return;
        }
        if kept.len() >= MAX_TOKENS && !kept.contains_key(principal) {
            let first = kept.iter().min_by_key(|(_, token)| token.expires);
            if let Some(first) = first.map(|(principal, _)| principal.clone()) {
                kept.remove(&first);
            }
        }
        kept.insert(principal.clone(), CallerToken { token, expires });
    }

    /// Forgets the tokens that have expired.
    pub fn expire(&self, now: SystemTime) {
        if self.are_wanted() {
            self.kept().retain(|_, kept| now < kept.expires);
        }
    }

    /// Lets tokens be kept from now on.
    #[cfg(any(feature = "oauth", test))]
    pub(crate) fn want(&self) {
        self.shared.are_wanted.store(true, Ordering::Release);
    }

    /// The token of a principal, unless it has expired.
    #[cfg(any(feature = "oauth", test))]
    pub(crate) fn get(&self, principal: &Principal) -> Option<CallerToken> {
        let kept = self.kept();
        let kept = kept.get(principal).filter(|kept| SystemTime::now() < kept.expires);
        kept.cloned()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Principal, CallerToken>> {
        self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerTokens").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_is_kept_if_wanted_for_its_principal_until_it_expires_and_never_printed() {
        let (tokens, now) = (CallerTokens::default(), SystemTime::now());
        let (ada, bob) = (Principal::new("i#ada"), Principal::new("i#bob"));
        let at = |seconds| now + Duration::from_secs(seconds);
        tokens.keep(&ada, Secret::from("unwanted"), at(60));
        assert_eq!(tokens.get(&ada), None);
        tokens.want();
        tokens.keep(&ada, Secret::from("canary"), at(60));
        tokens.keep(&ada, Secret::from("shorter"), at(30));
        tokens.keep(&bob, Secret::from("old"), now);
        assert_eq!(tokens.get(&ada).unwrap().token.expose(), "canary");
        assert_eq!(tokens.get(&bob), None);
        assert!(!format!("{tokens:?}{:?}", tokens.get(&ada)).contains("canary"));
        tokens.expire(at(61));
        assert_eq!(tokens.kept().len(), 0);
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let (tokens, now) = (CallerTokens::default(), SystemTime::now());
        tokens.want();
        for number in 0..=MAX_TOKENS as u64 {
            let expires = now + Duration::from_secs(1000 + number);
            tokens.keep(&Principal::new(format!("p{number}")), Secret::from("t"), expires);
        }
        assert_eq!(tokens.kept().len(), MAX_TOKENS);
        assert_eq!(tokens.get(&Principal::new("p0")), None, "it would have expired first");
        assert!(tokens.get(&Principal::new("p1")).is_some());
    }
}
