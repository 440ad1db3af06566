//! How tokens for a remote server are obtained: the client's registration, the grant, and what the server cannot be asked for.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choice::words;
use pegboard_base::secret::{SafeUrl, Secret, WithSecrets};

/// OAuth settings of a remote server. With the default, everything is discovered and a person signs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OAuthConfig {
    /// The id of a client that was registered by hand. Without one, `client_metadata_url` is used, or a client is registered.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
    /// The private key of that client, for `private_key_jwt`.
    pub private_key: Option<ClientKey>,
    /// The URL of a client-id metadata document. It is the client id at authorization servers that support such documents.
    pub client_metadata_url: Option<SafeUrl>,
    /// The scopes to request. With none, the server says which it needs.
    pub scopes: Vec<String>,
    /// How a token is obtained.
    pub grant: OAuthGrant,
    /// The issuer of the authorization server. Without it, the server names its authorization servers.
    pub issuer: Option<String>,
    /// The authorization endpoint, in place of that in the metadata of the authorization server.
    pub authorization_url: Option<SafeUrl>,
    /// The token endpoint, in place of that in the metadata of the authorization server.
    pub token_url: Option<SafeUrl>,
    /// Where the authorization server sends the browser after a sign-in.
    pub redirect: RedirectConfig,
    /// The resource that tokens are requested for. Without it, the one in the server's metadata, or the URL of the server.
    pub resource: Option<String>,
    /// The `audience` parameter of token requests, for authorization servers that need one.
    pub audience: Option<String>,
    /// Whether tokens are bound to a key of this program.
    pub dpop: Dpop,
}

impl OAuthConfig {
    /// The secrets in the settings.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets: Vec<Secret> = self.client_secret.iter().cloned().collect();
        secrets.extend(self.private_key.iter().map(|key| key.pem.clone()));
        let mut add = |input: &TokenInput| match input {
            TokenInput::Value(token) => secrets.push(token.clone()),
            TokenInput::File(_) | TokenInput::Caller => {}
        };
        match &self.grant {
            OAuthGrant::AuthorizationCode | OAuthGrant::ClientCredentials => {}
            OAuthGrant::TokenExchange(exchange) => add(&exchange.subject),
            OAuthGrant::JwtBearer(bearer) => {
                add(&bearer.assertion);
                let provider = bearer.identity_provider.as_ref();
                secrets.extend(provider.and_then(|provider| provider.client_secret.clone()));
            }
        }
        secrets
    }

    /// Whether the config says which authorization server gets the credentials. If it does not, the server says it.
    #[cfg(feature = "oauth")]
    #[doc(hidden)]
    pub fn names_authorization_server(&self) -> bool {
        self.issuer.is_some() || self.token_url.is_some()
    }

    /// The setting that would be sent wherever the server says, and what is missing.
    #[doc(hidden)]
    pub fn open_destination(&self) -> Option<(&'static str, &'static str)> {
        if self.issuer.is_some() {
            return None;
        }
        match (&self.grant, &self.authorization_url, &self.token_url) {
            (OAuthGrant::AuthorizationCode, Some(_), None) => Some((
                "authorization_url",
                "needs `token_url` or `issuer`: without them the server would choose who gets the codes of this page",
            )),
            (OAuthGrant::AuthorizationCode, None, Some(_)) => Some((
                "token_url",
                "needs `authorization_url` or `issuer`: without them the server would choose where a person signs in",
            )),
            (OAuthGrant::TokenExchange(_), _, None) => Some((
                "grant",
                "`token_exchange` needs `issuer` or `token_url`: without them the server would choose who gets the subject token",
            )),
            // What an identity provider issues is of use only at the authorization server that it is for.
            (OAuthGrant::JwtBearer(bearer), _, None) if bearer.identity_provider.is_none() => Some((
                "grant",
                "`jwt_bearer` needs `issuer` or `token_url`: without them the server would choose who gets the assertion",
            )),
            _ => None,
        }
    }

    /// Differs between settings that lead to other tokens.
    pub(crate) fn fingerprint(&self) -> String {
        serde_json::to_string(&WithSecrets::new(self)).unwrap_or_default()
    }
}

words! {
    /// Whether tokens are bound to a key of this program (DPoP, RFC 9449), so that a stolen token is of no use without the key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Dpop as "use of DPoP" default Auto {
        /// If the server and the authorization server support it.
        Auto = "auto",
        /// Always. A token that is not bound is refused.
        Required = "required",
        /// Never.
        Off = "off",
    }
}

/// How a token is obtained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// A person signs in with a browser: authorization code with PKCE.
    #[default]
    AuthorizationCode,
    /// The client's own credentials, without a person.
    ClientCredentials,
    /// Another token is exchanged (RFC 8693).
    TokenExchange(TokenExchange),
    /// A signed assertion is exchanged (RFC 7523), such as the token of a workload.
    JwtBearer(JwtBearer),
}

impl OAuthGrant {
    /// Whether a person has to sign in.
    pub fn needs_person(&self) -> bool {
        matches!(self, Self::AuthorizationCode)
    }

    /// Whether the token of a gateway's caller is exchanged.
    pub fn exchanges_caller(&self) -> bool {
        match self {
            Self::AuthorizationCode | Self::ClientCredentials => false,
            Self::TokenExchange(exchange) => exchange.subject == TokenInput::Caller,
            Self::JwtBearer(bearer) => bearer.assertion == TokenInput::Caller,
        }
    }
}

/// A token exchange (RFC 8693).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenExchange {
    /// The token that is exchanged.
    pub subject: TokenInput,
    /// Its type, such as `urn:ietf:params:oauth:token-type:access_token`.
    #[serde(default = "access_token_type")]
    pub subject_type: String,
    /// The type of the wanted token; the authorization server chooses without one.
    #[serde(default)]
    pub requested_type: Option<String>,
}

impl TokenExchange {
    /// Exchanges an access token.
    pub fn new(subject: TokenInput) -> Self {
        Self {
            subject,
            subject_type: access_token_type(),
            requested_type: None,
        }
    }
}

fn access_token_type() -> String {
    "urn:ietf:params:oauth:token-type:access_token".to_owned()
}

/// A JWT bearer grant (RFC 7523).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JwtBearer {
    /// The assertion, or the identity token that an identity provider exchanges for it.
    pub assertion: TokenInput,
    /// The identity provider that exchanges an identity token for the assertion; `None` if `assertion` is the assertion itself.
    #[serde(default)]
    pub identity_provider: Option<IdentityProvider>,
}

impl JwtBearer {
    /// Sends the assertion as it is.
    pub fn new(assertion: TokenInput) -> Self {
        Self {
            assertion,
            identity_provider: None,
        }
    }
}

/// An identity provider that issues assertions for the authorization servers of an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityProvider {
    /// Its token endpoint.
    pub token_url: SafeUrl,
    /// The id of the client there.
    #[serde(default)]
    pub client_id: Option<String>,
    /// The secret of that client.
    #[serde(default)]
    pub client_secret: Option<Secret>,
}

impl IdentityProvider {
    /// An identity provider with this token endpoint.
    pub fn new(token_url: SafeUrl) -> Self {
        Self {
            token_url,
            client_id: None,
            client_secret: None,
        }
    }
}

/// Where a token that is exchanged comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenInput {
    /// The value itself.
    Value(Secret),
    /// A file, which is read for every exchange. Kubernetes and other platforms replace such files before the token expires.
    File(PathBuf),
    /// The token with which the caller came to the gateway.
    Caller,
}

/// A private key that signs assertions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientKey {
    /// The key in PEM.
    pub pem: Secret,
    /// The id of the key, if the authorization server knows several.
    #[serde(default)]
    pub kid: Option<String>,
    /// The algorithm; by default the first one that fits the key.
    #[serde(default)]
    pub alg: Option<SigningAlg>,
}

impl ClientKey {
    /// A key without an id.
    pub fn new(pem: Secret) -> Self {
        Self {
            pem,
            kid: None,
            alg: None,
        }
    }
}

words! {
    /// An algorithm for signing assertions.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum SigningAlg as "algorithm" {
        /// RSA with PKCS #1 v1.5 and SHA-256.
        Rs256 = "RS256",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

impl SigningAlg {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];
}

/// Where the authorization server sends the browser after a sign-in: an address of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RedirectConfig {
    /// The host: `127.0.0.1` or `localhost`.
    pub host: String,
    /// The port; any free one without it.
    pub port: Option<u16>,
    /// The path.
    pub path: String,
}

impl Default for RedirectConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: None,
            path: "/callback".to_owned(),
        }
    }
}
