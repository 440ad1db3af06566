//! [`ResourceServer`]: admits clients with access tokens of authorization servers, as RFC 6750 and RFC 9728 say.
//!
//! A token is verified once and then found by its digest, without a lock, until it expires. What its holder has open belongs to a [`Grant`],
//! which a newer token of the same principal with the same rights goes on with.

mod claims;
mod grants;
mod introspection;
mod policy;
mod refusals;
mod resource;
mod token_table;
mod unique_names;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use pegboard::{config::ServeOAuth, credential::CallerTokens};
use ring::digest;

use self::{
    claims::Claims,
    grants::{Grant, Grants},
    introspection::{Introspected, Introspection},
    policy::{Admission, Policy},
    refusals::{Refusals, Refused},
    token_table::TokenTable,
};
use super::{
    caller::Caller,
    jwt::{IssuerKeys, Jws, MAX_TOKEN, Proof},
    token_fault::TokenFault,
};

pub(crate) use resource::{Resource, WELL_KNOWN};

/// The most tokens that are remembered.
const MAX_VERIFIED: usize = 8192;

/// Admits clients by their access tokens.
pub(crate) struct ResourceServer {
    policy: Policy,
    issuers: Vec<Arc<IssuerKeys>>,
    introspection: Option<Introspection>,
    verified: TokenTable<Verified>,
    grants: Grants,
    refusals: Refusals,
    /// The tokens of callers, for servers that exchange them.
    caller_tokens: Option<CallerTokens>,
}

/// A token that was verified.
#[derive(Debug)]
struct Verified {
    admission: Admission,
    grant: Arc<Grant>,
    /// Until when it need not be verified again.
    until: SystemTime,
    /// Whether it was kept for servers that exchange it.
    is_kept: bool,
    /// With what it was verified; `None` if the authorization server was asked about it.
    proof: Option<Proof>,
}

/// Callers that were revoked, and how long it is until the next token expires.
type Expired = (Vec<Caller>, Option<Duration>);

impl ResourceServer {
    pub(crate) fn new(settings: &ServeOAuth, public_url: Option<&str>, caller_tokens: Option<CallerTokens>) -> Self {
        let keys = |issuer: &String| IssuerKeys::new(issuer, settings.jwks_url.as_deref());
        Self {
            issuers: settings.issuers.iter().map(keys).collect(),
            introspection: settings.introspection.as_ref().and_then(Introspection::new),
            policy: Policy::new(settings.clone(), public_url),
            verified: TokenTable::new(MAX_VERIFIED),
            grants: Grants::new(caller_tokens.clone()),
            refusals: Refusals::default(),
            caller_tokens,
        }
    }

    /// Makes this the successor of `before`: keys that are known stay known, and what clients have open stays open if the new rules give them
    /// the same rights, with the limits of the new rules. Returns the callers of the others, which are revoked.
    pub(crate) fn inherit_from(&mut self, before: &Self) -> Vec<Caller> {
        for keys in &mut self.issuers {
            let jwks_url = self.policy.settings().jwks_url.as_deref();
            let is_same = |old: &&Arc<IssuerKeys>| old.is_at(keys.issuer(), jwks_url);
            if let Some(same) = before.issuers.iter().find(is_same) {
                *keys = same.clone();
            }
        }
        let now = SystemTime::now();
        let is_known = |proof: &Proof| self.issuers.iter().any(|keys| proof.is_by(keys));
        let admit = |grant: &Grant| {
            if !grant.is_key_valid(is_known) {
                return None;
            }
            let admission = self.policy.authorize(&grant.claims(), now).ok()?;
            admission.has_same_rights_as(&grant.caller).then_some(admission.limits)
        };
        before.grants.hand_over(&self.grants, admit)
    }

    /// Returns `true` if it was built from these settings.
    pub(crate) fn is_of(&self, settings: &ServeOAuth, public_url: Option<&str>) -> bool {
        self.policy.settings() == settings && self.policy.public_url() == public_url
    }

    /// What has been decided about a token before; `None` if it must be verified.
    pub(crate) fn find_verified(&self, token: &str, path: &str) -> Option<Result<Caller, TokenFault>> {
        let verified = self.verified.get(&digest_of(token))?;
        let is_current = verified.proof.as_ref().is_none_or(Proof::is_current);
        if !is_current || verified.grant.caller.revoked.has_ended() || SystemTime::now() >= verified.until {
            return None;
        }
        if !verified.is_kept && self.grants.wanted_tokens().is_some() {
            return None;
        }
        let caller = || verified.grant.caller.clone();
        let admitted = verified.admission.check_path(path).map(|()| caller());
        Some(admitted.map_err(|refused| self.refuse(&refused)))
    }

    /// Verifies a token.
    pub(crate) async fn verify(&self, token: &str, path: &str) -> Result<Caller, TokenFault> {
        let outcome = self.verify_uncached(token, path).await;
        outcome.map_err(|refused| self.refuse(&refused))
    }

    /// Writes why a token is refused to the log.
    fn refuse(&self, refused: &Refused) -> TokenFault {
        if refused.fault != TokenFault::Superseded {
            self.refusals.report(refused);
        }
        refused.fault
    }

    async fn verify_uncached(&self, token: &str, path: &str) -> Result<Caller, Refused> {
        if token.len() > MAX_TOKEN {
            return Err(TokenFault::TooLong.into());
        }
        let digest = digest_of(token);
        let now = SystemTime::now();
        let (claims, until, proof) = match Jws::parse(token) {
            Some(parsed) => {
                let (claims, proof) = self.verify_jwt(&parsed?).await?;
                (claims, None, Some(proof))
            }
            None => {
                let introspected = self.introspect(token, digest).await?;
                (introspected.claims, Some(introspected.until), None)
            }
        };
        let explained = |fault| self.policy.explain(&claims, fault);
        let mut admission = self.policy.authorize(&claims, now).map_err(explained)?;
        admission.check_path(path)?;
        let is_kept = self.grants.wanted_tokens().is_some();
        admission.rights = is_kept.then(|| claims.rights());
        let until = until.map_or(admission.expires, |until| until.min(admission.expires));
        let grant = self.grants.open(&admission, claims, proof.clone(), token)?;
        let caller = grant.caller.clone();
        let verified = Verified {
            admission,
            grant,
            until,
            is_kept,
            proof,
        };
        self.verified.put(digest, Arc::new(verified), |old| now >= old.until);
        Ok(caller)
    }

    /// Verifies the signature of a JWT with the keys of the issuer that it names.
    async fn verify_jwt(&self, token: &Jws<'_>) -> Result<(Claims, Proof), Refused> {
        if !self.policy.settings().algorithms.contains(&token.algorithm()) {
            return Err(TokenFault::Algorithm.into());
        }
        let claims = Claims::parse(&token.payload, token.is_access_token).ok_or(TokenFault::Malformed)?;
        let explained = |fault| self.policy.explain(&claims, fault);
        let is_issuer = |keys: &&Arc<IssuerKeys>| claims.text("iss") == Some(keys.issuer());
        let keys = self.issuers.iter().find(is_issuer);
        let keys = keys.ok_or_else(|| explained(TokenFault::Issuer))?;
        // Before a signature is verified or keys are fetched: most wrong tokens are old ones.
        self.policy.check_time(&claims, SystemTime::now()).map_err(explained)?;
        let proof = keys.verify(token).await?;
        Ok((claims, proof))
    }

    async fn introspect(&self, token: &str, digest: [u8; 32]) -> Result<Introspected, TokenFault> {
        let introspection = self.introspection.as_ref().ok_or(TokenFault::Opaque)?;
        let issuer = self.issuers.first().ok_or(TokenFault::Issuer)?.issuer();
        let outcome = introspection.introspect(token, digest, issuer).await;
        // A token that was withdrawn at its server ends what was opened with it. One that has only expired may have a successor.
        if let Err(TokenFault::Inactive) = outcome {
            let verified = self.verified.get(&digest);
            let is_over = |verified: &Arc<Verified>| verified.admission.expires <= SystemTime::now();
            if !verified.as_ref().is_some_and(is_over) {
                self.grants
                    .withdraw(verified.as_ref().map(|verified| &verified.grant), &digest);
            }
        }
        outcome
    }

    /// Whether callers were revoked whose open streams and sessions nobody has ended yet: [`ResourceServer::expire`] returns them.
    pub(crate) fn has_revoked(&self) -> bool {
        self.grants.have_ended()
    }

    /// Revokes what was opened with tokens that have expired, or whose keys were withdrawn. Also returns what was revoked before.
    pub(crate) fn expire(&self, now: SystemTime) -> Expired {
        if let Some(tokens) = &self.caller_tokens {
            tokens.expire(now);
        }
        if !self.grants.is_empty() {
            // Clients that only listen send no requests that would do it.
            self.issuers.iter().for_each(|keys| keys.fetch_if_old());
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
