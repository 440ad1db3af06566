//! How the gateway admits clients with access tokens of an authorization server.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::{token::TokenScope, web_address::is_endpoint};
use crate::{
    choice::words,
    duration_text,
    field::{DefaultValue, ValueKind},
    from_setting::one_or_more,
    key::{
        Nested, ONE_OR_MORE, choices, duration, either, flag, list, optional_count, required_text, secret, table, text,
        texts, unless,
    },
    policy::Rate,
    setting::Text,
    settings::settings,
};
use pegboard_base::secret::Secret;

settings! {
    /// Whose access tokens the gateway accepts, and what their holders may do.
    ///
    /// Without issuers it accepts no access token at all. Settings with errors become such a value, so that they never open the gateway.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ServeOAuth in serve_oauth = "serve.oauth" {
        /// The authorization server whose tokens are accepted, exactly as they name it in `iss`, or a list of several.
        issuers: Vec<String> = either(ONE_OR_MORE, Vec::new(), DefaultValue::None)
            .syntax(|text| wrong_url(text).or_else(|| text.contains('?').then(|| WRONG_URL.to_owned())), HTTP_HINT)
            .called("issuer")
            .aka(&["issuers"])
            .via(one_or_more);
        /// What tokens must name in `aud`: one value, or a list of which they must name one. Without it, the URLs of the gateway under
        /// `serve.public_url`.
        audiences: Vec<String> = either(ONE_OR_MORE, Vec::new(), DefaultValue::None)
            .called("audience")
            .aka(&["audiences"])
            .via(one_or_more);
        /// The URL of the issuer's keys (JWKS). Without it, the issuer's metadata names it.
        jwks_url: Option<String> = text().syntax(wrong_url, HTTP_HINT).aka(&["jwks_uri"]);
        /// The algorithms that tokens may be signed with.
        algorithms: BTreeSet<JwtAlgorithm> = choices(|| JwtAlgorithm::ALL.into())
            .shown(DefaultValue::Texts(&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]));
        /// By how much the clocks of the issuer and of the gateway may differ.
        clock_skew: Duration as "duration_text" = duration(SKEW, 60).aka(&["leeway"]);
        /// The scopes that every token must have.
        required_scopes: Vec<String> = texts();
        /// The scopes that clients are told to request. Without it, `required_scopes` and those that rules name.
        scopes_supported: Vec<String> = texts();
        /// The claim that identifies a client. Its principal is the issuer, `#` and this claim, so that equal names of two issuers differ. A token
        /// without it is refused.
        principal: String = required_text(|| ServeOAuth::PRINCIPAL.to_owned())
            .aka(&["principal_claim"])
            .shown(DefaultValue::Text(ServeOAuth::PRINCIPAL));
        /// Whether ID tokens of OpenID Connect are accepted like access tokens, for issuers that make no others, such as Dex. An ID token is meant
        /// for the program that asked for it, so set it only if `audience` names none but the gateway.
        id_tokens: bool = flag(false);
        /// What holders of tokens may do. The first rule that matches decides; a token that no rule matches is refused.
        rules: Vec<Nested<serve_oauth_rule::In>> => Vec<OAuthRule> = list(&ValueKind::Table(&serve_oauth_rule::SECTION))
            .aka(&["rule"])
            .shown(DefaultValue::EmptyList);
        /// Where tokens are checked that are no JWT (RFC 7662).
        introspection: Nested<serve_oauth_introspection::In> => Option<OAuthIntrospection> = table(ValueKind::Table(&serve_oauth_introspection::SECTION));
    }
}

const WRONG_URL: &str = "must be an https URL without user and fragment";
const HTTP_HINT: &str = "http is for a server on this machine only";

fn wrong_url(text: &str) -> Option<String> {
    unless(is_endpoint(text), WRONG_URL)
}

/// Ten minutes at most: a larger difference is a wrong clock.
const SKEW: ValueKind = ValueKind::Duration { min: 0, max: 600_000 };

settings! {
    serve_oauth_rule = "serve.oauth.rule" {
        /// The claim of the token that the rule looks at, such as `groups`; dots lead into objects, as in `realm_access.roles`. A rule without it
        /// matches every token.
        claim: Option<String> = text();
        /// The value that the claim must have or contain, or a list of which one is enough. Without it, any value will do.
        has: Vec<String> = either(ONE_OR_MORE, Vec::new(), DefaultValue::None).aka(&["contains", "value"]).via(one_or_more);
        /// The view that holders of such tokens use. Without it, they use the whole board, every server and every view.
        view: Option<String> = text();
        /// What holders of such tokens may do: `read`, `call`, `admin`. No scope includes another.
        scopes: BTreeSet<TokenScope> = choices(TokenScope::default_scopes).shown(DefaultValue::Texts(&["read", "call"]));
        /// How often each holder of such tokens may call tools, such as `60/min`.
        rate: Option<Rate> = text().syntax(Rate::problem, "").aka(&["rate_limit"]);
        /// The most calls of each holder of such tokens in flight at once; further ones are refused.
        concurrent: Option<usize> = optional_count((1, 1_000_000)).aka(&["max_concurrent", "concurrency"]);
    }
}

settings! {
    serve_oauth_introspection = "serve.oauth.introspection" {
        /// The introspection endpoint of the authorization server.
        url: Option<Text> = text().syntax(wrong_url, HTTP_HINT).aka(&["endpoint"]);
        /// The id of the gateway at the authorization server.
        client_id: Option<Text> = text();
        /// The secret that belongs to `client_id`.
        client_secret: Option<Text> = secret();
    }
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
    #[serde(default = "TokenScope::default_scopes")]
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

words! {
    /// An algorithm of signatures. Those with a shared secret, and none at all, do not exist here.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum JwtAlgorithm as "algorithm" {
        /// RSA with PKCS #1 v1.5 and SHA-256.
        Rs256 = "RS256",
        /// RSA with PKCS #1 v1.5 and SHA-384.
        Rs384 = "RS384",
        /// RSA with PKCS #1 v1.5 and SHA-512.
        Rs512 = "RS512",
        /// RSA with PSS and SHA-256.
        Ps256 = "PS256",
        /// RSA with PSS and SHA-384.
        Ps384 = "PS384",
        /// RSA with PSS and SHA-512.
        Ps512 = "PS512",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// ECDSA on P-384 with SHA-384.
        Es384 = "ES384",
        /// Ed25519.
        EdDsa = "EdDSA" | "ed25519",
    }
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

impl OAuthRule {
    /// A rule for every token: its holder may list and call all tools.
    pub fn for_everyone() -> Self {
        Self {
            scopes: TokenScope::default_scopes(),
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
