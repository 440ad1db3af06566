//! [`Grants`]: what clients have open by access tokens. A grant is one principal with certain rights; it ends when the last token for it
//! expires, or the key that signed it is withdrawn.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use pegboard::{
    Principal, Secret,
    credential::{CallerRights, CallerTokens},
};
use pegboard_base::sync::Mutex;

use super::{Expired, claims::Claims, digest_of, policy::Admission};
use crate::door::{
    caller::{CallLimits, Caller},
    jwt::Proof,
    scope::Scopes,
    token_fault::TokenFault,
};

/// The most grants. The one that expires first is revoked to make room.
const MAX_GRANTS: usize = 4096;

/// What one principal has open with the same rights.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) caller: Caller,
    last: ArcSwap<LastToken>,
}

/// The token of a grant that expires last.
#[derive(Debug)]
struct LastToken {
    expires: SystemTime,
    claims: Claims,
    /// `None` if the authorization server was asked about it.
    proof: Option<Proof>,
    digest: [u8; 32],
}

type Key = (Principal, Option<CallerRights>, Option<Arc<str>>, Scopes, CallLimits);

/// All grants of a gateway.
#[derive(Debug, Default)]
pub(super) struct Grants {
    open: Mutex<OpenGrants>,
    /// The tokens of callers, for servers that exchange them. That of a grant is kept and forgotten under the lock of the grants: a newer token
    /// of the same caller must not be taken for the one that was revoked.
    caller_tokens: Option<CallerTokens>,
}

/// How a grant ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Expired,
    Revoked,
}

#[derive(Debug, Default)]
struct OpenGrants {
    grants: HashMap<Key, Arc<Grant>>,
    /// The callers of grants that were revoked, until somebody ends what they have open.
    ended: Vec<Caller>,
    /// Whether other rules have replaced those by which these were made. Nobody would end what is opened here any more.
    is_closed: bool,
}

impl Grant {
    fn new(admission: &Admission, last: LastToken) -> Self {
        let caller = Caller {
            principal: Some(admission.principal.clone()),
            rights: admission.rights,
            view: admission.view.clone(),
            scopes: admission.scopes,
            limits: admission.limits.into(),
            has_access_token: true,
            ..Caller::default()
        };
        Self {
            caller,
            last: ArcSwap::from_pointee(last),
        }
    }

    /// The claims of the token that expires last.
    pub(super) fn claims(&self) -> Claims {
        self.last.load().claims.clone()
    }

    /// Returns `true` if its token was verified with a key for which `is_known` holds, or by asking the authorization server.
    pub(super) fn is_key_valid(&self, is_known: impl FnOnce(&Proof) -> bool) -> bool {
        self.last.load().proof.as_ref().is_none_or(is_known)
    }

    fn expires(&self) -> SystemTime {
        self.last.load().expires
    }
}

impl Grants {
    pub(super) fn new(caller_tokens: Option<CallerTokens>) -> Self {
        Self {
            open: Mutex::default(),
            caller_tokens,
        }
    }

    /// The tokens of callers, if a server exchanges them.
    pub(super) fn wanted_tokens(&self) -> Option<&CallerTokens> {
        self.caller_tokens
            .as_ref()
            .filter(|tokens| tokens.is_exchange_enabled())
    }

    /// The grant of a token that was admitted: the one that is open, which then lasts as long as the token, or a new one.
    ///
    /// [`TokenFault::Superseded`] if other rules are in force by now.
    pub(super) fn open(
        &self,
        admission: &Admission,
        claims: Claims,
        proof: Option<Proof>,
        token: &str,
    ) -> Result<Arc<Grant>, TokenFault> {
        let (principal, view) = (admission.principal.clone(), admission.view.clone());
        let key = (principal, admission.rights, view, admission.scopes, admission.limits);
        let last = LastToken {
            expires: admission.expires,
            claims,
            proof,
            digest: digest_of(token),
        };
        let mut open = self.open.lock();
        if open.is_closed {
            return Err(TokenFault::Superseded);
        }
        let grant = self.open_locked(&mut open, key, last, admission);
        if let (Some(tokens), Some(rights)) = (self.wanted_tokens(), admission.rights) {
            tokens.keep(&admission.principal, rights, Secret::from(token), admission.expires);
        }
        Ok(grant)
    }

    fn open_locked(&self, open: &mut OpenGrants, key: Key, last: LastToken, admission: &Admission) -> Arc<Grant> {
        let open_grants = &mut open.grants;
        if let Some(grant) = open_grants.get(&key)
            && !grant.caller.revoked.has_ended()
        {
            if grant.expires() < last.expires || !grant.is_key_valid(Proof::holds) {
                grant.last.store(Arc::new(last));
            }
            return grant.clone();
        }
        let grant = Arc::new(Grant::new(admission, last));
        let mut gone = open_grants.insert(key, grant.clone());
        if open_grants.len() > MAX_GRANTS {
            let others = open_grants.iter().filter(|(_, other)| !Arc::ptr_eq(other, &grant));
            let first = others
                .min_by_key(|(_, other)| other.expires())
                .map(|(key, _)| key.clone());
            gone = first.and_then(|first| open_grants.remove(&first));
        }
        open.ended.extend(self.revoke(gone.into_iter(), End::Revoked));
        grant
    }

    /// Revokes a grant whose token was withdrawn, and those that last as long as the token with this digest.
    pub(super) fn withdraw(&self, known: Option<&Arc<Grant>>, digest: &[u8; 32]) {
        let mut open = self.open.lock();
        let is_withdrawn = |grant: &Arc<Grant>| {
            grant.last.load().digest == *digest || known.is_some_and(|known| Arc::ptr_eq(known, grant))
        };
        let withdrawn: Vec<_> = open.grants.extract_if(|_, grant| is_withdrawn(grant)).collect();
        let withdrawn = withdrawn.into_iter().map(|(_, grant)| grant);
        open.ended.extend(self.revoke(withdrawn, End::Revoked));
    }

    /// Whether grants were revoked since [`Grants::expire`] has returned their callers.
    pub(super) fn have_ended(&self) -> bool {
        !self.open.lock().ended.is_empty()
    }

    /// Revokes the grants that have expired, and those whose key was withdrawn. Returns the callers of all that were revoked, and how long it is
    /// until the next one expires.
    pub(super) fn expire(&self, now: SystemTime) -> Expired {
        let mut open = self.open.lock();
        let is_withdrawn = |grant: &Grant| !grant.is_key_valid(Proof::holds);
        let withdrawn: Vec<_> = open.grants.extract_if(|_, grant| is_withdrawn(grant)).collect();
        let expired: Vec<_> = open.grants.extract_if(|_, grant| grant.expires() <= now).collect();
        let lasting = open
            .grants
            .values()
            .filter_map(|grant| grant.expires().duration_since(now).ok());
        let next: Option<Duration> = lasting.min();
        let mut ended = std::mem::take(&mut open.ended);
        ended.extend(self.revoke(withdrawn.into_iter().map(|(_, grant)| grant), End::Revoked));
        ended.extend(self.revoke(expired.into_iter().map(|(_, grant)| grant), End::Expired));
        (ended, next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.lock().grants.is_empty()
    }

    /// Revokes all grants, and makes no more.
    pub(super) fn end(&self) -> Vec<Caller> {
        let (grants, mut ended) = self.close();
        ended.extend(self.revoke(grants.into_values(), End::Revoked));
        ended
    }

    fn close(&self) -> (HashMap<Key, Arc<Grant>>, Vec<Caller>) {
        let mut open = self.open.lock();
        open.is_closed = true;
        (std::mem::take(&mut open.grants), std::mem::take(&mut open.ended))
    }

    /// Gives `successor` the grants that it admits, with the limits that it returns for them, revokes the others, and makes no more.
    pub(super) fn hand_over(&self, successor: &Self, admit: impl Fn(&Grant) -> Option<CallLimits>) -> Vec<Caller> {
        let (grants, mut ended) = self.close();
        let mut gone = Vec::new();
        let mut kept = successor.open.lock();
        for ((principal, rights, view, scopes, _), grant) in grants {
            let Some(limits) = admit(&grant) else {
                gone.push(grant);
                continue;
            };
            grant.caller.limits.set(limits);
            // Two grants that differed in their limits only are one now.
            gone.extend(kept.grants.insert((principal, rights, view, scopes, limits), grant));
        }
        drop(kept);
        ended.extend(self.revoke(gone.into_iter(), End::Revoked));
        ended
    }

    /// Revokes grants that are no longer open, and forgets their tokens. Returns their callers.
    fn revoke(&self, grants: impl Iterator<Item = Arc<Grant>>, end: End) -> Vec<Caller> {
        let callers = grants.map(|grant| grant.caller.clone());
        let open: Vec<Caller> = callers.filter(|caller| !caller.revoked.has_ended()).collect();
        for caller in &open {
            match end {
                End::Expired => caller.revoked.expire(),
                End::Revoked => caller.revoked.revoke(),
            }
            if let (Some(tokens), Some(principal), Some(rights)) =
                (&self.caller_tokens, &caller.principal, caller.rights)
            {
                tokens.forget(principal, rights);
            }
        }
        open
    }
}
