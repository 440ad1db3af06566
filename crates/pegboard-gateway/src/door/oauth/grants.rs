//! [`Grants`]: what clients have open by access tokens. A grant is one principal with certain rights; it ends when the last token for it
//! expires.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use pegboard::Principal;

use super::{Expired, claims::Claims, policy::Admission};
use crate::door::{caller::Caller, scope::Scopes};

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
}

type Key = (Principal, Option<Arc<str>>, Scopes);

/// All grants of a gateway.
#[derive(Debug, Default)]
pub(super) struct Grants {
    open: Mutex<HashMap<Key, Arc<Grant>>>,
}

impl Grant {
    fn new(admission: &Admission, claims: Claims) -> Self {
        let caller = Caller {
            principal: Some(admission.principal.clone()),
            view: admission.view.clone(),
            scopes: admission.scopes,
            has_access_token: true,
            ..Caller::default()
        };
        let last = LastToken {
            expires: admission.expires,
            claims,
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

    fn expires(&self) -> SystemTime {
        self.last.load().expires
    }

    fn key(&self) -> Option<Key> {
        let caller = &self.caller;
        Some((caller.principal.clone()?, caller.view.clone(), caller.scopes))
    }
}

impl Grants {
    /// The grant of a token that was admitted: the one that is open, which then lasts as long as the token, or a new one.
    pub(super) fn enter(&self, admission: &Admission, claims: Claims) -> Arc<Grant> {
        let key = (admission.principal.clone(), admission.view.clone(), admission.scopes);
        let mut open = self.open();
        if let Some(grant) = open.get(&key)
            && !grant.caller.revoked.is_cancelled()
        {
            if grant.expires() < admission.expires {
                let expires = admission.expires;
                grant.last.store(Arc::new(LastToken { expires, claims }));
            }
            return grant.clone();
        }
        let grant = Arc::new(Grant::new(admission, claims));
        let mut gone = open.insert(key, grant.clone());
        if open.len() > MAX_GRANTS {
            let others = open.iter().filter(|(_, other)| !Arc::ptr_eq(other, &grant));
            let first = others
                .min_by_key(|(_, other)| other.expires())
                .map(|(key, _)| key.clone());
            gone = first.and_then(|first| open.remove(&first));
        }
        drop(open);
        if let Some(gone) = gone {
            gone.caller.revoked.cancel();
        }
        grant
    }

    /// Revokes the grants that have expired. Returns their callers, and how long it is until the next one expires.
    pub(super) fn expire(&self, now: SystemTime) -> Expired {
        let mut open = self.open();
        let expired: Vec<_> = open.extract_if(|_, grant| grant.expires() <= now).collect();
        let lasting = open
            .values()
            .filter_map(|grant| grant.expires().duration_since(now).ok());
        let next: Option<Duration> = lasting.min();
        drop(open);
        (revoke(expired.into_iter().map(|(_, grant)| grant)), next)
    }

    /// Revokes all grants.
    pub(super) fn end(&self) -> Vec<Caller> {
        let open = std::mem::take(&mut *self.open());
        revoke(open.into_values())
    }

    /// Gives `successor` the grants that it admits, and revokes the others.
    pub(super) fn hand_over(&self, successor: &Self, admits: impl Fn(&Grant) -> bool) -> Vec<Caller> {
        let open: Vec<_> = self.open().values().cloned().collect();
        let (kept, gone): (Vec<_>, Vec<_>) = open.into_iter().partition(|grant| admits(grant));
        let kept = kept.into_iter().filter_map(|grant| Some((grant.key()?, grant)));
        successor.open().extend(kept);
        revoke(gone.into_iter())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Key, Arc<Grant>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn revoke(grants: impl Iterator<Item = Arc<Grant>>) -> Vec<Caller> {
    let callers = grants.map(|grant| grant.caller.clone());
    let open: Vec<Caller> = callers.filter(|caller| !caller.revoked.is_cancelled()).collect();
    open.iter().for_each(|caller| caller.revoked.cancel());
    open
}
