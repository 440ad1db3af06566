//! [`CallerTokens`]: the access tokens with which callers came to a gateway, for servers whose config exchanges them (RFC 8693).

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::SystemTime,
};

use pegboard_base::sync::Mutex;
use pegboard_base::{caller::Principal, secret::Secret};

/// The most tokens that are kept. The one that expires first makes room.
const MAX_TOKENS: usize = 4096;

/// Tells the access tokens of one principal apart by what they allow: tokens with equal rights stand for each other, others never do. It is a
/// digest of what a token says besides its time and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerRights([u8; 32]);

impl CallerRights {
    /// Creates it from a digest.
    pub fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl fmt::Debug for CallerRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(f, "CallerRights({first:02x}{second:02x}…)")
    }
}

/// The access tokens of each principal, one for all with the same [rights](CallerRights), until they expire. Clones share them.
///
/// A board has one (`Pegboard::caller_tokens`). A gateway keeps the tokens of its callers there while their exchange is
/// [enabled](CallerTokens::is_exchange_enabled): no token is kept unless a server's config exchanges it, and it reaches the authorization server that this
/// config names and nothing else. A view (`View::caller_rights`) says which of them is exchanged for its calls.
#[derive(Clone, Default)]
pub struct CallerTokens {
    shared: Arc<SharedTokens>,
}

#[derive(Default)]
struct SharedTokens {
    are_wanted: AtomicBool,
    kept: Mutex<Kept>,
    /// The number of the last entry.
    last_entry: AtomicU64,
    /// Told of every token that is kept no longer.
    ended: OnceLock<Ended>,
}

type Kept = HashMap<(Principal, CallerRights), CallerToken>;
type Ended = Box<dyn Fn(&Principal, &CallerToken) + Send + Sync>;

/// A token that a caller came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerToken {
    /// The access token.
    pub token: Secret,
    /// When the token expires. It is not used or kept after that.
    pub expires: SystemTime,
    /// What this token is exchanged for is kept under this number. A newer token with the same rights keeps the number, unless the older one was
    /// forgotten before.
    pub generation: u64,
}

impl CallerTokens {
    /// Whether a server of the board exchanges the tokens of callers. Once it is `true` it stays so.
    pub fn is_exchange_enabled(&self) -> bool {
        self.shared.are_wanted.load(Ordering::Acquire)
    }

    /// Keeps a token of a principal until it expires, unless the known one with the same rights is valid for longer. Does nothing if tokens
    /// are not wanted.
    pub fn keep(&self, principal: &Principal, rights: CallerRights, token: Secret, expires: SystemTime) {
        if !self.is_exchange_enabled() {
            return;
        }
        let key = (principal.clone(), rights);
        let mut kept = self.shared.kept.lock();
        let mut entry = None;
        if let Some(known) = kept.get(&key) {
            if known.expires > expires {
                return;
            }
            entry = Some(known.generation);
        }
        let mut gone = None;
        if kept.len() >= MAX_TOKENS && entry.is_none() {
            let first = kept.iter().min_by_key(|(_, token)| token.expires);
            gone = first
                .map(|(key, _)| key.clone())
                .and_then(|first| kept.remove_entry(&first));
        }
        let entry = entry.unwrap_or_else(|| self.shared.last_entry.fetch_add(1, Ordering::Relaxed) + 1);
        kept.insert(
            key,
            CallerToken {
                token,
                expires,
                generation: entry,
            },
        );
        drop(kept);
        self.notify_removed(gone);
    }

    /// Forgets the token of a principal with these rights, because it was refused or withdrawn. What it was exchanged for is not used again.
    pub fn forget(&self, principal: &Principal, rights: CallerRights) {
        if self.is_exchange_enabled() {
            let gone = self.shared.kept.lock().remove_entry(&(principal.clone(), rights));
            self.notify_removed(gone);
        }
    }

    /// Forgets the tokens that have expired.
    pub fn expire(&self, now: SystemTime) {
        if self.is_exchange_enabled() {
            let expired: Vec<_> = self
                .shared
                .kept
                .lock()
                .extract_if(|_, kept| now >= kept.expires)
                .collect();
            self.notify_removed(expired);
        }
    }

    /// Tells the board of tokens that are kept no longer. No lock may be held.
    fn notify_removed(&self, gone: impl IntoIterator<Item = ((Principal, CallerRights), CallerToken)>) {
        if let Some(ended) = self.shared.ended.get() {
            for ((principal, _), token) in gone {
                ended(&principal, &token);
            }
        }
    }

    /// Sets what is called with each token that is kept no longer. The first one stays.
    #[cfg(any(feature = "oauth", test))]
    #[doc(hidden)]
    pub fn on_end(&self, ended: impl Fn(&Principal, &CallerToken) + Send + Sync + 'static) {
        let _ = self.shared.ended.set(Box::new(ended));
    }

    /// Lets tokens be kept from now on.
    #[cfg(any(feature = "oauth", test))]
    #[doc(hidden)]
    pub fn enable_exchange(&self) {
        self.shared.are_wanted.store(true, Ordering::Release);
    }

    /// The token of a principal with these rights, unless it has expired.
    #[cfg(any(feature = "oauth", test))]
    #[doc(hidden)]
    pub fn get(&self, principal: &Principal, rights: CallerRights) -> Option<CallerToken> {
        let kept = self.shared.kept.lock();
        let kept = kept
            .get(&(principal.clone(), rights))
            .filter(|kept| SystemTime::now() < kept.expires);
        kept.cloned()
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

    const READ: CallerRights = CallerRights([1; 32]);
    const WRITE: CallerRights = CallerRights([2; 32]);

    /// Tokens that are wanted, and the tokens that they report as ended.
    fn tokens() -> (CallerTokens, Arc<Mutex<Vec<String>>>) {
        let (tokens, ended) = (CallerTokens::default(), Arc::new(Mutex::new(Vec::new())));
        let report = ended.clone();
        tokens.on_end(move |principal, token| {
            let text = format!("{principal} {}", token.token.expose());
            report.lock().push(text);
        });
        tokens.enable_exchange();
        (tokens, ended)
    }

    #[test]
    fn a_token_is_kept_if_wanted_for_its_principal_until_it_expires_and_never_printed() {
        let (tokens, now) = (CallerTokens::default(), SystemTime::now());
        let (ada, bob) = (Principal::new("i#ada"), Principal::new("i#bob"));
        let at = |seconds| now + Duration::from_secs(seconds);
        tokens.keep(&ada, READ, Secret::from("unwanted"), at(60));
        assert_eq!(tokens.get(&ada, READ), None);
        tokens.enable_exchange();
        tokens.keep(&ada, READ, Secret::from("canary"), at(60));
        tokens.keep(&ada, READ, Secret::from("shorter"), at(30));
        tokens.keep(&bob, READ, Secret::from("old"), now);
        assert_eq!(tokens.get(&ada, READ).unwrap().token.expose(), "canary");
        assert_eq!(tokens.get(&bob, READ), None);
        assert!(!format!("{tokens:?}{:?}", tokens.get(&ada, READ)).contains("canary"));
        tokens.expire(at(61));
        assert_eq!(tokens.shared.kept.lock().len(), 0);
    }

    #[test]
    fn tokens_with_other_rights_are_kept_apart_and_newer_ones_with_the_same_go_on() {
        let ((tokens, _), now) = (tokens(), SystemTime::now());
        let ada = Principal::new("i#ada");
        let at = |seconds| now + Duration::from_secs(seconds);
        tokens.keep(&ada, READ, Secret::from("reads"), at(60));
        tokens.keep(&ada, WRITE, Secret::from("writes"), at(90));
        let [reads, writes] = [READ, WRITE].map(|rights| tokens.get(&ada, rights).unwrap());
        assert_eq!((reads.token.expose(), writes.token.expose()), ("reads", "writes"));
        assert_ne!(reads.generation, writes.generation);
        tokens.keep(&ada, READ, Secret::from("newer"), at(120));
        let newer = tokens.get(&ada, READ).unwrap();
        assert_eq!((newer.token.expose(), newer.generation), ("newer", reads.generation));
    }

    #[test]
    fn what_a_forgotten_or_expired_token_was_exchanged_for_is_not_used_again() {
        let ((tokens, ended), now) = (tokens(), SystemTime::now());
        let ada = Principal::new("i#ada");
        let at = |seconds| now + Duration::from_secs(seconds);
        tokens.keep(&ada, READ, Secret::from("revoked"), at(60));
        tokens.keep(&ada, WRITE, Secret::from("expired"), at(30));
        let before = tokens.get(&ada, READ).unwrap();
        tokens.forget(&ada, READ);
        tokens.forget(&ada, READ);
        assert_eq!(tokens.get(&ada, READ), None);
        tokens.keep(&ada, READ, Secret::from("another"), at(60));
        assert_ne!(tokens.get(&ada, READ).unwrap().generation, before.generation);
        tokens.expire(at(31));
        assert_eq!(*ended.lock(), ["i#ada revoked", "i#ada expired"]);
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let ((tokens, ended), now) = (tokens(), SystemTime::now());
        for number in 0..=MAX_TOKENS as u64 {
            let expires = now + Duration::from_secs(1000 + number);
            tokens.keep(&Principal::new(format!("p{number}")), READ, Secret::from("t"), expires);
        }
        assert_eq!(tokens.shared.kept.lock().len(), MAX_TOKENS);
        assert_eq!(
            tokens.get(&Principal::new("p0"), READ),
            None,
            "it would have expired first"
        );
        assert!(tokens.get(&Principal::new("p1"), READ).is_some());
        assert_eq!(*ended.lock(), ["p0 t"]);
    }
}
