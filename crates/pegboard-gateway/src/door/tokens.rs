//! The tokens of clients. Only their SHA-256 digests are kept, and each is compared in constant time.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header::AUTHORIZATION};
use pegboard::Principal;
use ring::digest;

use super::{
    caller::Caller, owner::Owner, rejection::Rejection, revocation::Revocation, scope::Scopes, site_check::single,
};

/// A token that clients may present as `Authorization: Bearer`, known by its SHA-256 digest.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    caller: Caller,
    expires: Option<SystemTime>,
}

impl Token {
    /// A token for the whole board, with the scopes `read` and `call`. Clients with it are the principal `name`.
    pub fn new(name: &str, sha256: [u8; 32]) -> Self {
        let caller = Caller {
            principal: Some(Principal::new(name)),
            scopes: Scopes::DEFAULT,
            ..Caller::default()
        };
        Self {
            digest: sha256,
            caller,
            expires: None,
        }
    }

    /// Limits the token to one view: `/mcp` is that view, and no server can be reached around it.
    #[must_use]
    pub fn view(mut self, view: &str) -> Self {
        self.caller.view = Some(Arc::from(view));
        self
    }

    /// Sets what clients with the token may do.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.caller.scopes = scopes;
        self
    }

    /// Sets when the token expires.
    #[must_use]
    pub fn expires(mut self, at: SystemTime) -> Self {
        self.expires = Some(at);
        self
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

/// All tokens of a gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    known: Vec<Token>,
    /// Whether requests need a token. A config whose tokens are all unusable must not make the gateway an open one.
    required: bool,
    /// The caller of requests without a token, if none is needed. With an owner, the caller with the owner's token.
    anonymous: Caller,
    /// The only user who needs no token, if there is one.
    owner: Option<Owner>,
}

/// What tokens say of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    Known(Caller),
    /// None that counts. It is one of this caller if it comes from a process of the owner.
    OfOwner(Caller),
}

impl Tokens {
    pub(crate) fn new(mut known: Vec<Token>, required: bool) -> Self {
        for token in &mut known {
            // A clone of a token that was revoked before is a new one.
            token.caller.revoked = Revocation::default();
        }
        Self {
            required: required || !known.is_empty(),
            known,
            anonymous: Caller::default(),
            owner: None,
        }
    }

    /// Admits only this user, if no token is configured.
    pub(crate) fn set_owner(&mut self, owner: Option<Owner>) {
        self.owner = owner;
    }

    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|_| !self.required)
    }

    /// The user that the gateway runs for, also where tokens are configured.
    pub(crate) fn machine_owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Makes these the successors of `before`: what clients have open stays open if their token has the same rights now. Revokes the other
    /// tokens and returns their callers.
    pub(crate) fn inherit_from(&mut self, before: &Self) -> Vec<Caller> {
        let mut gone: HashMap<_, _> = before
            .known
            .iter()
            .filter(|token| !token.caller.revoked.has_ended())
            .map(|token| (token.digest, &token.caller))
            .collect();
        for token in &mut self.known {
            if gone.get(&token.digest).is_some_and(|old| **old == token.caller)
                && let Some(old) = gone.remove(&token.digest)
            {
                token.caller.revoked = old.revoked.clone();
            }
        }
        self.owner.clone_from(&before.owner);
        let mut revoked: Vec<Caller> = gone.into_values().cloned().collect();
        // The calls of a token that has expired go on until it is removed.
        let is_kept = |token: &&Token| self.known.iter().any(|kept| kept.digest == token.digest);
        let expired = before.known.iter().filter(|token| token.caller.revoked.has_expired());
        revoked.extend(
            expired
                .filter(|token| !is_kept(token))
                .map(|token| token.caller.clone()),
        );
        if !before.required {
            if self.required {
                revoked.push(before.anonymous.clone());
            } else {
                self.anonymous = before.anonymous.clone();
            }
        }
        revoked.iter().for_each(|caller| caller.revoked.revoke());
        revoked
    }

    /// Revokes the tokens that have expired. Returns their callers, and how long it is until the next one expires.
    pub(crate) fn expire(&self, now: SystemTime) -> (Vec<Caller>, Option<Duration>) {
        let (mut expired, mut next) = (Vec::new(), None);
        for token in &self.known {
            let Some(at) = token.expires else { continue };
            match at.duration_since(now) {
                Ok(left) if !left.is_zero() => next = Some(next.map_or(left, |next: Duration| next.min(left))),
                _ if token.caller.revoked.has_ended() => {}
                _ => {
                    token.caller.revoked.expire();
                    expired.push(token.caller.clone());
                }
            }
        }
        (expired, next)
    }

    /// Returns `true` if requests need a token.
    pub(crate) fn are_required(&self) -> bool {
        self.required
    }

    /// The caller that a request's token names. Without tokens and an owner, every caller is the same one.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<Presented, Rejection> {
        if !self.required {
            return Ok(match &self.owner {
                Some(owner) if !has_token_of(owner, headers) => Presented::OfOwner(self.without_token()),
                _ => Presented::Known(self.anonymous.clone()),
            });
        }
        let header = single(headers, &AUTHORIZATION)?.ok_or(Rejection::NoToken)?;
        let (scheme, presented) = header.split_once(' ').ok_or(Rejection::Token)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Rejection::NoToken);
        }
        let caller = self.find(presented.trim_matches(' ')).ok_or(Rejection::Token)?;
        Ok(Presented::Known(caller))
    }

    /// The caller of a request at a local socket, whose other end is a process of the owner.
    pub(crate) fn authenticate_local(&self, headers: &HeaderMap) -> Caller {
        match &self.owner {
            Some(owner) if !has_token_of(owner, headers) => self.without_token(),
            _ => Caller::default(),
        }
    }

    /// Whether a request has the token of the owner. Without an owner, every request is as good.
    pub(crate) fn has_owner_token(&self, headers: &HeaderMap) -> bool {
        self.owner.as_ref().is_none_or(|owner| has_token_of(owner, headers))
    }

    /// A process of the owner, which may use tools and change nothing.
    fn without_token(&self) -> Caller {
        Caller {
            scopes: Scopes::DEFAULT,
            ..self.anonymous.clone()
        }
    }

    /// Demands a token from now on. Returns the caller of requests without one, which is revoked.
    pub(crate) fn require(&mut self) -> Vec<Caller> {
        if std::mem::replace(&mut self.required, true) {
            return Vec::new();
        }
        self.anonymous.revoked.revoke();
        vec![self.anonymous.clone()]
    }

    /// Whether what is said of a request depends on the time.
    pub(crate) fn may_expire(&self) -> bool {
        self.known.iter().any(|token| token.expires.is_some())
    }

    /// Compares with every token, so that the time says nothing about which of them is near.
    fn find(&self, presented: &str) -> Option<Caller> {
        let digest = digest::digest(&digest::SHA256, presented.as_bytes());
        let mut found = None;
        for token in &self.known {
            if is_same(&token.digest, digest.as_ref()) {
                found = Some(token);
            }
        }
        let token = found?;
        let has_expired = token.expires.is_some_and(|at| SystemTime::now() >= at);
        (!has_expired).then(|| token.caller.clone())
    }
}

/// The bearer token of a request that has one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single(headers, &AUTHORIZATION).ok()??.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether a request has the token of the owner.
fn has_token_of(owner: &Owner, headers: &HeaderMap) -> bool {
    let digest = bearer(headers).map(|token| digest::digest(&digest::SHA256, token.as_bytes()));
    digest.is_some_and(|digest| is_same(owner.digest(), digest.as_ref()))
}

/// Compares in a time that does not depend on the values.
fn is_same(known: &[u8; 32], presented: &[u8]) -> bool {
    let differing = known.iter().zip(presented).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0 && presented.len() == known.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;

    use super::*;

    fn token(name: &str, text: &str) -> Token {
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        Token::new(name, digest.as_ref().try_into().unwrap())
    }

    fn check(tokens: &Tokens, headers: &[&str]) -> Result<Option<String>, Rejection> {
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        let Presented::Known(caller) = tokens.authenticate(&map)? else {
            return Ok(Some("the owner".to_owned()));
        };
        Ok(caller.principal.map(|principal| principal.as_str().to_owned()))
    }

    #[test]
    fn a_token_names_the_principal() {
        let now = SystemTime::now();
        let tokens = Tokens::new(
            vec![
                token("alice", "pgb_alice"),
                token("bob", "pgb_bob").expires(now + Duration::from_secs(3600)),
                token("past", "pgb_past").expires(now - Duration::from_secs(1)),
            ],
            false,
        );
        for (headers, outcome) in [
            (&["Bearer pgb_alice"][..], Ok("alice")),
            (&["bearer pgb_bob"], Ok("bob")),
            (&["Bearer  pgb_bob "], Ok("bob")),
            (&["Bearer pgb_past"], Err(Rejection::Token)),
            (&["Bearer pgb_alicE"], Err(Rejection::Token)),
            (&["Bearer pgb_alice2"], Err(Rejection::Token)),
            (&["Bearer "], Err(Rejection::Token)),
            (&["Bearer"], Err(Rejection::Token)),
            (&["pgb_alice"], Err(Rejection::Token)),
            (&["Basic pgb_alice"], Err(Rejection::NoToken)),
            (&["Bearer pgb_alice", "Bearer pgb_bob"], Err(Rejection::Doubled)),
            (&[], Err(Rejection::NoToken)),
        ] {
            let outcome = outcome.map(|name| Some(name.to_owned()));
            assert_eq!(check(&tokens, headers), outcome, "{headers:?}");
        }
    }

    #[test]
    fn without_tokens_every_client_is_the_same_caller() {
        let open = Tokens::new(vec![], false);
        assert_eq!(check(&open, &[]), Ok(None));
        assert_eq!(check(&open, &["Bearer x"]), Ok(None));
        let closed = Tokens::new(vec![], true);
        assert_eq!(check(&closed, &[]), Err(Rejection::NoToken));
        assert_eq!(check(&closed, &["Bearer x"]), Err(Rejection::Token));
    }

    #[test]
    fn without_tokens_only_the_owners_token_has_all_rights() {
        let digest = |text: &str| {
            digest::digest(&digest::SHA256, text.as_bytes())
                .as_ref()
                .try_into()
                .unwrap()
        };
        let mut open = Tokens::new(vec![], false);
        open.set_owner(Some(Owner::new(1000, digest("mine"))));
        let with = |value: &str| HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
        let all = Presented::Known(Caller::default());
        let some = Caller {
            scopes: Scopes::DEFAULT,
            ..Caller::default()
        };
        assert_eq!(open.authenticate(&with("Bearer mine")), Ok(all));
        assert_eq!(open.authenticate_local(&with("Bearer mine")), Caller::default());
        for headers in [HeaderMap::new(), with("Bearer other"), with("Basic mine")] {
            assert_eq!(
                open.authenticate(&headers),
                Ok(Presented::OfOwner(some.clone())),
                "{headers:?}"
            );
            assert_eq!(open.authenticate_local(&headers), some, "{headers:?}");
        }
        // Where tokens are configured, these count alone.
        let mut closed = Tokens::new(vec![token("alice", "a")], false);
        closed.inherit_from(&open);
        assert_eq!(closed.authenticate(&with("Bearer mine")), Err(Rejection::Token));
        assert!(closed.owner().is_none());
    }

    #[test]
    fn a_token_is_never_printed() {
        let printed = format!("{:?}", token("alice", "pgb_alice").view("coding"));
        assert!(printed.contains("alice") && !printed.contains("digest"), "{printed}");
    }

    fn caller(tokens: &Tokens, text: &str) -> Caller {
        tokens.find(text).unwrap()
    }

    #[test]
    fn a_token_with_other_rights_is_revoked_and_an_unchanged_one_is_not() {
        let all = [
            token("alice", "a"),
            token("bob", "b"),
            token("carol", "c"),
            token("dave", "d"),
        ];
        let before = Tokens::new(all.to_vec(), true);
        let callers = ["a", "b", "c", "d"].map(|text| caller(&before, text));
        let later = SystemTime::now() + Duration::from_secs(3600);
        let kept = [
            token("alice", "a").expires(later),
            token("bob", "b").view("coding"),
            token("caroline", "c"),
        ];
        let mut after = Tokens::new(kept.to_vec(), true);
        assert_eq!(after.inherit_from(&before).len(), 3);
        assert_eq!(
            callers.map(|caller| caller.revoked.has_ended()),
            [false, true, true, true]
        );
        for text in ["a", "b", "c"] {
            assert!(!caller(&after, text).revoked.has_ended(), "{text}");
        }
        let mut again = Tokens::new(all.to_vec(), true);
        again.inherit_from(&after);
        assert!(!caller(&again, "d").revoked.has_ended());
    }

    #[test]
    fn the_first_token_revokes_those_who_came_without() {
        let open = Tokens::new(vec![], false);
        let Ok(Presented::Known(anyone)) = open.authenticate(&HeaderMap::new()) else {
            panic!("nobody is admitted")
        };
        let mut still_open = Tokens::new(vec![], false);
        assert_eq!(still_open.inherit_from(&open), []);
        assert!(!anyone.revoked.has_ended());
        let mut closed = Tokens::new(vec![token("alice", "a")], false);
        assert_eq!(closed.inherit_from(&still_open), [Caller::default()]);
        assert!(anyone.revoked.has_ended());
    }

    #[test]
    fn tokens_that_are_demanded_later_revoke_those_who_came_without() {
        let mut tokens = Tokens::new(vec![], false);
        let Ok(Presented::Known(anyone)) = tokens.authenticate(&HeaderMap::new()) else {
            panic!("nobody is admitted")
        };
        assert_eq!(tokens.require(), [Caller::default()]);
        assert!(anyone.revoked.has_ended());
        assert_eq!(check(&tokens, &[]), Err(Rejection::NoToken));
        assert_eq!(tokens.require(), [], "it is done once");
    }

    #[test]
    fn a_token_is_revoked_once_when_it_expires() {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        let tokens = Tokens::new(
            vec![
                token("alice", "a").expires(now + hour),
                token("bob", "b").expires(now + 2 * hour),
                token("carol", "c"),
            ],
            true,
        );
        assert_eq!(tokens.expire(now), (vec![], Some(hour)));
        let alice = caller(&tokens, "a");
        assert_eq!(tokens.expire(now + hour), (vec![alice.clone()], Some(hour)));
        assert!(alice.revoked.has_ended());
        assert_eq!(tokens.expire(now + hour), (vec![], Some(hour)));
    }
}
