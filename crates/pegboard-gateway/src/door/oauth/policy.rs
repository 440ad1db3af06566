//! [`Policy`]: decides by the claims of a token whether its holder is admitted, and what it may do. Signatures were verified before.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use pegboard::{
    Principal,
    config::{OAuthRule, ServeOAuth},
    credential::CallerRights,
};
use serde_json::Value;

use super::{
    claims::Claims,
    refusals::{Refused, Shown},
};
use crate::door::{
    caller::{CallLimits, Caller},
    scope::{Scope, Scopes},
    token_fault::TokenFault,
};

/// The longest name of a principal.
const MAX_NAME: usize = 255;
/// How long a token counts as valid that does not say when it expires. Only introspection admits such tokens, and asks again soon.
const WITHOUT_EXPIRY: Duration = Duration::from_secs(3600);

/// The rules of a gateway for access tokens.
#[derive(Debug)]
pub(super) struct Policy {
    settings: ServeOAuth,
    /// The URL under which clients reach the gateway.
    public_url: Option<Arc<str>>,
}

/// A client that is admitted, and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) principal: Principal,
    /// Which of the principal's tokens it is; set if a server exchanges them.
    pub(super) rights: Option<CallerRights>,
    pub(super) view: Option<Arc<str>>,
    pub(super) scopes: Scopes,
    pub(super) limits: CallLimits,
    /// When the token expires.
    pub(super) expires: SystemTime,
    /// The only paths that the token is for; `None` means all.
    paths: Option<Vec<String>>,
}

impl Policy {
    pub(super) fn new(settings: ServeOAuth, public_url: Option<&str>) -> Self {
        Self {
            settings,
            public_url: public_url.map(Arc::from),
        }
    }

    pub(super) fn settings(&self) -> &ServeOAuth {
        &self.settings
    }

    pub(super) fn public_url(&self) -> Option<&str> {
        self.public_url.as_deref()
    }

    /// Admits the holder of a token, or says why not.
    pub(super) fn authorize(&self, claims: &Claims, now: SystemTime) -> Result<Admission, TokenFault> {
        let issuer = claims.text("iss").ok_or(TokenFault::Issuer)?;
        if !self.settings.issuers.iter().any(|known| known == issuer) {
            return Err(TokenFault::Issuer);
        }
        if claims.is_bound() {
            return Err(TokenFault::Bound);
        }
        if claims.other_kind(self.settings.id_tokens).is_some() {
            return Err(TokenFault::Type);
        }
        if claims.is_introspected && !is_bearer(claims) {
            return Err(TokenFault::Type);
        }
        let expires = self.check_time(claims, now)?;
        let paths = self.check_audience(claims)?;
        let principal = principal(claims, issuer, &self.settings.principal)?;
        if !self
            .settings
            .required_scopes
            .iter()
            .all(|scope| claims.has_scope(scope))
        {
            return Err(TokenFault::Scope);
        }
        let matches = |rule: &&OAuthRule| matches(rule, claims);
        let rule = self.settings.rules.iter().find(matches).ok_or(TokenFault::NoRule)?;
        Ok(Admission {
            principal,
            rights: None,
            view: rule.view.as_deref().map(Arc::from),
            scopes: rule
                .scopes
                .iter()
                .filter_map(|scope| Scope::from_config(*scope))
                .collect(),
            limits: CallLimits {
                rate: rule.rate,
                concurrent: rule.concurrent,
            },
            expires,
            paths,
        })
    }

    /// Names what a token lacks, and what was expected.
    pub(super) fn explain(&self, claims: &Claims, fault: TokenFault) -> Refused {
        let settings = &self.settings;
        let detail = match fault {
            TokenFault::Issuer => format!(
                "`iss` is {}, `issuer` is {}",
                Shown(claims.text("iss")),
                Shown(&settings.issuers)
            ),
            TokenFault::Audience => {
                let named = claims.values("aud");
                let expected: Vec<&str> = match &*settings.audiences {
                    [] => self.public_url().into_iter().collect(),
                    audiences => audiences.iter().map(String::as_str).collect(),
                };
                format!("`aud` is {}, expected is {}", Shown(&named), Shown(&expected))
            }
            TokenFault::Expired | TokenFault::NotYet => {
                let [begins, issued, expires] = ["nbf", "iat", "exp"].map(|name| claims.values(name));
                format!(
                    "`exp` is {}, `nbf` is {}, `iat` is {}",
                    Shown(&expires),
                    Shown(&begins),
                    Shown(&issued)
                )
            }
            TokenFault::Claim => {
                let is_wrong = |name: &&str| claims.time(name).is_err();
                match ["exp", "nbf", "iat"].into_iter().find(is_wrong) {
                    Some(name) => format!("`{name}` is not a number of seconds"),
                    None if claims.find("exp").is_none() && !claims.is_introspected => "`exp` is missing".to_owned(),
                    None => format!(
                        "`{}`, which names the user, is missing or no short text",
                        settings.principal
                    ),
                }
            }
            TokenFault::Type => match claims.other_kind(settings.id_tokens) {
                Some(claim) => format!("the claim `{claim}` is one of an ID token, or of another kind of token"),
                None => "`token_type` is not `Bearer`".to_owned(),
            },
            TokenFault::Bound => "the claim `cnf` asks for a proof of possession".to_owned(),
            TokenFault::Scope => {
                let missing = settings.required_scopes.iter().filter(|scope| !claims.has_scope(scope));
                format!("missing of `required_scopes`: {}", Shown(missing))
            }
            TokenFault::NoRule => {
                let wanted = settings.rules.iter().map(|rule| {
                    let claim = rule.claim.as_deref().unwrap_or_default();
                    format!("{claim} = {}", Shown(&rule.has))
                });
                let wanted: Vec<String> = wanted.collect();
                format!("the rules ask for {}", wanted.join(", or "))
            }
            _ => return fault.into(),
        };
        Refused {
            fault,
            detail: Some(detail),
        }
    }

    /// Checks that a token is valid now. Returns when it expires.
    pub(super) fn check_time(&self, claims: &Claims, now: SystemTime) -> Result<SystemTime, TokenFault> {
        let time = |name: &str| claims.time(name).map_err(|()| TokenFault::Claim);
        let skew = self.settings.clock_skew;
        for begin in ["nbf", "iat"] {
            if time(begin)?.is_some_and(|begin| begin > now + skew) {
                return Err(TokenFault::NotYet);
            }
        }
        let expires = match time("exp")? {
            Some(at) => at.checked_add(skew).ok_or(TokenFault::Claim)?,
            None if claims.is_introspected => now + WITHOUT_EXPIRY,
            None => return Err(TokenFault::Claim),
        };
        match now < expires {
            true => Ok(expires),
            false => Err(TokenFault::Expired),
        }
    }

    /// Checks that a token is for this gateway. Returns the only paths that it is for.
    fn check_audience(&self, claims: &Claims) -> Result<Option<Vec<String>>, TokenFault> {
        let named = claims.values("aud");
        let configured = &self.settings.audiences;
        if !configured.is_empty() {
            let is_ours = named.iter().any(|aud| configured.iter().any(|known| known == aud));
            return is_ours.then_some(None).ok_or(TokenFault::Audience);
        }
        let base = self.public_url().ok_or(TokenFault::Audience)?;
        let own = named.iter().filter_map(|aud| path_below(aud, base));
        let own: Vec<&str> = own.collect();
        if own.iter().any(|path| matches!(*path, "" | "/mcp" | "/sse")) {
            return Ok(None);
        }
        match own.is_empty() {
            true => Err(TokenFault::Audience),
            false => Ok(Some(own.into_iter().map(str::to_owned).collect())),
        }
    }
}

impl Admission {
    /// Fails if the token is for other paths only.
    pub(super) fn check_path(&self, path: &str) -> Result<(), Refused> {
        let Some(paths) = &self.paths else { return Ok(()) };
        let path = path.strip_suffix('/').unwrap_or(path);
        // A stream of HTTP+SSE and the messages to it are one resource.
        let stream = path.strip_suffix("/messages").map(|server| format!("{server}/sse"));
        let is_named = |named: &String| named == path || stream.as_ref() == Some(named);
        paths.iter().any(is_named).then_some(()).ok_or_else(|| Refused {
            fault: TokenFault::Audience,
            detail: Some(format!(
                "`aud` names the paths {} only, the request is for {}",
                Shown(paths),
                Shown([path])
            )),
        })
    }

    /// Returns `true` if the caller has the same rights. Its limits may be others.
    pub(super) fn has_same_rights_as(&self, caller: &Caller) -> bool {
        caller.principal.as_ref() == Some(&self.principal) && caller.view == self.view && caller.scopes == self.scopes
    }
}

/// The path of an audience below the URL of the gateway.
fn path_below<'a>(audience: &'a str, base: &str) -> Option<&'a str> {
    let path = audience.strip_prefix(base)?;
    let path = path.strip_suffix('/').unwrap_or(path);
    (path.is_empty() || path.starts_with('/')).then_some(path)
}

/// The principal of a token. The issuer has no `#`, so no two pairs have the same name; tokens of the config have no colon in theirs.
fn principal(claims: &Claims, issuer: &str, claim: &str) -> Result<Principal, TokenFault> {
    let name = claims
        .find(claim)
        .and_then(|value| value.as_str())
        .ok_or(TokenFault::Claim)?;
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(TokenFault::Claim);
    }
    Ok(Principal::new(format!("{issuer}#{name}")))
}

/// Returns `false` if the authorization server says that the token needs more than to be shown.
fn is_bearer(claims: &Claims) -> bool {
    match claims.find("token_type") {
        None | Some(Value::Null) => true,
        Some(kind) => kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")),
    }
}

fn matches(rule: &OAuthRule, claims: &Claims) -> bool {
    let Some(claim) = &rule.claim else { return true };
    let values = claims.values(claim);
    match rule.has.is_empty() {
        true => !values.is_empty(),
        false => values.iter().any(|value| rule.has.iter().any(|wanted| wanted == value)),
    }
}

#[cfg(test)]
mod tests;
