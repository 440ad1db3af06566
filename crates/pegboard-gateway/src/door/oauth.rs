//! [`ResourceServer`]: admits clients with access tokens of authorization servers, as RFC 6750 and RFC 9728 say.
//!
//! A token is verified once and then found by its digest, without a lock, until it expires. What its holder has open belongs to a [`Grant`],
//! which a newer token of the same principal with the same rights goes on with.

mod claims;
mod grants;
mod introspection;
mod policy;
mod resource;
mod subject_tokens;
mod token_table;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use pegboard::{Secret, config::ServeOAuth};
use ring::digest;

use self::{
    claims::Claims,
    grants::{Grant, Grants},
    introspection::{Introspected, Introspection},
    policy::{Admission, Policy},
    token_table::TokenTable,
};
use super::{
    caller::Caller,
    jwt::{IssuerKeys, Jws, MAX_TOKEN},
    token_fault::TokenFault,
};

pub(crate) use resource::{Resource, WELL_KNOWN};
pub use subject_tokens::SubjectTokens;

/// The most tokens that are remembered.
const MAX_VERIFIED: usize = 8192;

/// Admits clients by their access tokens.
pub(crate) struct ResourceServer {
    policy: Policy,
    issuers: Vec<Arc<IssuerKeys>>,
    introspection: Option<Introspection>,
    verified: TokenTable<Verified>,
    grants: Grants,
    subject_tokens: Option<SubjectTokens>,
}

/// A token that was verified.
#[derive(Debug)]
struct Verified {
    admission: Admission,
    grant: Arc<Grant>,
    /// Until when it need not be verified again.
    until: SystemTime,
    /// The keys it was verified with, and their epoch.
    keys: Option<(Arc<IssuerKeys>, u64)>,
}

/// Callers that were revoked, and how long it is until the next token expires.
type Expired = (Vec<Caller>, Option<Duration>);

impl ResourceServer {
    pub(crate) fn new(settings: &ServeOAuth, public_url: Option<&str>, subject_tokens: Option<SubjectTokens>) -> Self {
        let keys = |issuer: &String| IssuerKeys::new(issuer, settings.jwks_url.as_deref());
        Self {
            issuers: settings.issuers.iter().map(keys).collect(),
            introspection: settings.introspection.as_ref().and_then(Introspection::new),
            policy: Policy::new(settings.clone(), public_url),
            verified: TokenTable::new(MAX_VERIFIED),
            grants: Grants::default(),
            subject_tokens,
        }
    }

    /// Makes this the successor of `before`: keys that are known stay known, and what clients have open stays open if the new rules give them
    /// the same rights. Returns the callers of the others, which are revoked.
    pub(crate) fn succeed(&mut self, before: &Self) -> Vec<Caller> {
        for keys in &mut self.issuers {
            let jwks_url = self.policy.settings().jwks_url.as_deref();
            let is_same = |old: &&Arc<IssuerKeys>| old.is_at(keys.issuer(), jwks_url);
            if let Some(same) = before.issuers.iter().find(is_same) {
                *keys = same.clone();
            }
        }
        let now = SystemTime::now();
        let admits = |grant: &Grant| {
            let admission = self.policy.admit(&grant.claims(), now).ok();
            admission.is_some_and(|admission| admission.is_for(&grant.caller))
        };
        before.grants.hand_over(&self.grants, admits)
    }

    /// Returns `true` if it was built from these settings.
    pub(crate) fn is_of(&self, settings: &ServeOAuth, public_url: Option<&str>) -> bool {
        self.policy.settings() == settings && self.policy.public_url() == public_url
    }

    /// What has been decided about a token before; `None` if it must be verified.
    pub(crate) fn known(&self, token: &str, path: &str) -> Option<Result<Caller, TokenFault>> {
        let verified = self.verified.get(&digest_of(token))?;
        let is_current = verified
            .keys
            .as_ref()
            .is_none_or(|(keys, epoch)| keys.epoch() == *epoch);
        if !is_current || verified.grant.caller.revoked.is_cancelled() || SystemTime::now() >= verified.until {
            return None;
        }
        Some(verified.admission.at(path).map(|()| verified.grant.caller.clone()))
    }

    /// Verifies a token.
    pub(crate) async fn verify(&self, token: &str, path: &str) -> Result<Caller, TokenFault> {
        if token.len() > MAX_TOKEN {
            return Err(TokenFault::TooLong);
        }
        let digest = digest_of(token);
        let now = SystemTime::now();
        let (claims, until, keys) = match Jws::parse(token) {
            Some(parsed) => {
                let (claims, keys) = self.verify_jwt(&parsed?).await?;
                (claims, None, Some(keys))
            }
            None => {
                let introspected = self.introspect(token, digest).await?;
                (introspected.claims, Some(introspected.until), None)
            }
        };
        let admission = self.policy.admit(&claims, now)?;
        admission.at(path)?;
        let until = until.map_or(admission.expires, |until| until.min(admission.expires));
        let grant = self.grants.enter(&admission, claims);
        if let Some(subject_tokens) = &self.subject_tokens {
            subject_tokens.keep(&admission.principal, Secret::from(token), admission.expires);
        }
        let caller = grant.caller.clone();
        let verified = Verified {
            admission,
            grant,
            until,
            keys,
        };
        self.verified.put(digest, Arc::new(verified), |old| now >= old.until);
        Ok(caller)
    }

    /// Verifies the signature of a JWT with the keys of the issuer that it names.
    async fn verify_jwt(&self, token: &Jws<'_>) -> Result<(Claims, (Arc<IssuerKeys>, u64)), TokenFault> {
        if !self.policy.settings().algorithms.contains(&token.algorithm()) {
            return Err(TokenFault::Algorithm);
        }
        let claims = Claims::parse(&token.payload).ok_or(TokenFault::Malformed)?;
        let is_issuer = |keys: &&Arc<IssuerKeys>| claims.text("iss") == Some(keys.issuer());
        let keys = self.issuers.iter().find(is_issuer).ok_or(TokenFault::Issuer)?;
        // Before a signature is verified or keys are fetched: most wrong tokens are old ones.
        self.policy.check_time(&claims, SystemTime::now())?;
        let epoch = keys.epoch();
        keys.verify(token).await?;
        Ok((claims, (keys.clone(), epoch)))
    }

    async fn introspect(&self, token: &str, digest: [u8; 32]) -> Result<Introspected, TokenFault> {
        let introspection = self.introspection.as_ref().ok_or(TokenFault::Opaque)?;
        let issuer = self.issuers.first().ok_or(TokenFault::Issuer)?.issuer();
        let outcome = introspection.check(token, digest, issuer).await;
        // A token that was withdrawn at its server ends what was opened with it.
        if let Err(TokenFault::Inactive) = outcome
            && let Some(verified) = self.verified.get(&digest)
        {
            verified.grant.caller.revoked.cancel();
        }
        outcome
    }

    /// Revokes what was opened with tokens that have expired.
    pub(crate) fn expire(&self, now: SystemTime) -> Expired {
        if let Some(subject_tokens) = &self.subject_tokens {
            subject_tokens.expire(now);
        }
        self.grants.expire(now)
    }

    /// Revokes everything that was opened with access tokens.
    pub(crate) fn end(&self) -> Vec<Caller> {
        self.grants.end()
    }

    pub(crate) fn settings(&self) -> &ServeOAuth {
        self.policy.settings()
    }
}

fn digest_of(token: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").finish_non_exhaustive()
    }
}
