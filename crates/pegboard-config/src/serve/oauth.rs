//! How the gateway admits clients with access tokens of an authorization server.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::token::TokenScope;
use crate::{duration_text, policy::Rate};
use pegboard_base::secret::Secret;

/// Whose access tokens the gateway accepts, and what their holders may do.
///
/// Without issuers it accepts no access token at all. Settings with errors become such a value, so that they never open the gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServeOAuth {
    /// The authorization servers, as their tokens name them in `iss`.
    pub issuers: Vec<String>,
    /// The audiences, of which a token must name one in `aud`. Empty means the URL under which clients reach the gateway.
    pub audiences: Vec<String>,
    /// Where the issuer's keys are. Without it, the issuer's metadata says so.
    pub jwks_url: Option<String>,
    /// The algorithms that a token may be signed with.
    pub algorithms: BTreeSet<JwtAlgorithm>,
    /// By how much the clocks of the issuer and of the gateway may differ.
    #[serde(with = "duration_text")]
    pub clock_skew: Duration,
    /// The scopes that every token must have.
    pub required_scopes: Vec<String>,
    /// The scopes that clients are told to request. Empty means the required ones and those that rules name.
    pub scopes_supported: Vec<String>,
    /// The claim that identifies the client. Its principal is the issuer, `#` and this claim.
    pub principal: String,
    /// Whether ID tokens of OpenID Connect are accepted like access tokens.
    pub id_tokens: bool,
    /// What the holders of tokens may do. The first rule that matches decides; without one the token is refused.
    pub rules: Vec<OAuthRule>,
    /// Where opaque tokens are checked.
    pub introspection: Option<OAuthIntrospection>,
}

/// What holders of tokens with a certain claim may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OAuthRule {
    /// The claim that is looked at; dots lead into objects. `None` matches every token.
    pub claim: Option<String>,
    /// The values, of which the claim must have one. A claim may be a list; `scope` is a list of words. Empty means any value.
    pub has: Vec<String>,
    /// The only view that they may use.
    pub view: Option<String>,
    /// What they may do.
    #[serde(default = "TokenScope::of_a_client")]
    pub scopes: BTreeSet<TokenScope>,
    /// How often each of them may call tools.
    pub rate: Option<Rate>,
    /// The most calls of each of them in flight at once.
    pub concurrent: Option<usize>,
}

/// The introspection endpoint of an authorization server (RFC 7662).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OAuthIntrospection {
    /// Its URL.
    pub url: String,
    /// The id of the gateway at the authorization server.
    pub client_id: String,
    /// The secret that belongs to the id.
    pub client_secret: Secret,
}

/// An algorithm of signatures. Those with a shared secret, and none at all, do not exist here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum JwtAlgorithm {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PKCS #1 v1.5 and SHA-384.
    Rs384,
    /// RSA with PKCS #1 v1.5 and SHA-512.
    Rs512,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// RSA with PSS and SHA-384.
    Ps384,
    /// RSA with PSS and SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl JwtAlgorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];
}

impl ServeOAuth {
    /// The default of `clock_skew`.
    pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(60);
    /// The default of `principal`.
    #[doc(hidden)]
    pub const PRINCIPAL: &str = "sub";

    /// Accepts tokens of one issuer, with default settings. It has no rule yet, so nobody is admitted.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuers: vec![issuer.into()],
            ..Self::default()
        }
    }

    /// The scopes that clients should request.
    pub fn advertised_scopes(&self) -> Vec<&str> {
        if !self.scopes_supported.is_empty() {
            return self.scopes_supported.iter().map(String::as_str).collect();
        }
        let of_rules = self.rules.iter().filter(|rule| rule.is_about_scopes());
        let named = of_rules.flat_map(|rule| &rule.has);
        let mut scopes: Vec<&str> = Vec::new();
        for scope in self.required_scopes.iter().chain(named) {
            if !scopes.contains(&scope.as_str()) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

impl Default for ServeOAuth {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            audiences: Vec::new(),
            jwks_url: None,
            algorithms: JwtAlgorithm::ALL.into(),
            clock_skew: Self::CLOCK_SKEW,
            required_scopes: Vec::new(),
            scopes_supported: Vec::new(),
            principal: Self::PRINCIPAL.to_owned(),
            id_tokens: false,
            rules: Vec::new(),
            introspection: None,
        }
    }
}

impl OAuthRule {
    /// A rule for every token: its holder may list and call all tools.
    pub fn for_everyone() -> Self {
        Self {
            scopes: TokenScope::of_a_client(),
            ..Self::default()
        }
    }

    /// A rule for tokens whose claim has this value: their holders may list and call all tools.
    pub fn claim(claim: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            claim: Some(claim.into()),
            has: vec![value.into()],
            ..Self::for_everyone()
        }
    }

    /// Whether it looks at the scopes of tokens.
    fn is_about_scopes(&self) -> bool {
        matches!(self.claim.as_deref(), Some("scope" | "scp"))
    }
}

impl OAuthIntrospection {
    /// An endpoint, and the credentials of the gateway there.
    pub fn new(url: impl Into<String>, client_id: impl Into<String>, client_secret: impl Into<Secret>) -> Self {
        Self {
            url: url.into(),
            client_id: client_id.into(),
            client_secret: client_secret.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_the_scopes_that_tokens_need_and_those_that_rules_name() {
        let mut oauth = ServeOAuth::new("https://login.example.com");
        oauth.required_scopes = vec!["mcp".to_owned()];
        oauth.rules = vec![
            OAuthRule::claim("scope", "mcp:admin"),
            OAuthRule::claim("groups", "sre"),
            OAuthRule::claim("scp", "mcp"),
            OAuthRule::for_everyone(),
        ];
        assert_eq!(oauth.advertised_scopes(), ["mcp", "mcp:admin"]);
        oauth.scopes_supported = vec!["api://gateway/.default".to_owned()];
        assert_eq!(oauth.advertised_scopes(), ["api://gateway/.default"]);
    }
}
