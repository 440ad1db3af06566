//! The builder of an authorization server.

use std::time::Duration;

use serde_json::Value;

use super::{
    clients::Client,
    fault::{AuthFault, AuthRule},
    jws::Algorithm,
};

/// Where an authorization server has its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataPlace {
    /// `/.well-known/oauth-authorization-server`, then the issuer's path (RFC 8414).
    OAuth,
    /// `/.well-known/openid-configuration`, then the issuer's path.
    OpenIdInserted,
    /// The issuer's path, then `/.well-known/openid-configuration` (OpenID Connect).
    OpenIdAppended,
}

/// The builder of an authorization server, which then starts it on a loopback port.
#[derive(Debug, Clone)]
pub struct AuthorizationServer {
    pub(super) path: String,
    pub(super) places: Vec<MetadataPlace>,
    pub(super) lifetime: Duration,
    pub(super) algorithm: Algorithm,
    pub(super) tokens: TokenForm,
    pub(super) scopes: Vec<String>,
    pub(super) clients: Vec<Client>,
    pub(super) documents: bool,
    pub(super) registration: bool,
    pub(super) refresh: Refresh,
    pub(super) reuse_grace: Duration,
    pub(super) states_issuer: bool,
    pub(super) proofs: UseOfProofs,
    pub(super) trusted: Vec<Value>,
    pub(super) faults: Vec<AuthRule>,
}

/// What access tokens are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenForm {
    Signed,
    Opaque,
}

/// What proofs of possession are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UseOfProofs {
    Ignored,
    BindTokens,
}

/// Whether refresh tokens are issued and replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refresh {
    Never,
    Kept,
    Rotated,
}

impl Default for AuthorizationServer {
    fn default() -> Self {
        Self {
            path: String::new(),
            places: vec![
                MetadataPlace::OAuth,
                MetadataPlace::OpenIdInserted,
                MetadataPlace::OpenIdAppended,
            ],
            lifetime: Duration::from_secs(3600),
            algorithm: Algorithm::default(),
            tokens: TokenForm::Signed,
            scopes: vec!["read".into(), "write".into()],
            clients: Vec::new(),
            documents: true,
            registration: true,
            refresh: Refresh::Rotated,
            reuse_grace: Duration::ZERO,
            states_issuer: true,
            proofs: UseOfProofs::Ignored,
            trusted: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl AuthorizationServer {
    /// A healthy server with every endpoint: signed access tokens for an hour, and refresh tokens that rotate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the issuer a path, for example `/tenant`.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// Has its metadata at these places only; at none with an empty list.
    #[must_use]
    pub fn metadata_at(mut self, places: &[MetadataPlace]) -> Self {
        self.places = places.to_vec();
        self
    }

    /// Issues access tokens that live this long.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Signs with keys of this kind.
    #[must_use]
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Issues access tokens that only introspection can read.
    #[must_use]
    pub fn opaque(mut self) -> Self {
        self.tokens = TokenForm::Opaque;
        self
    }

    /// Knows exactly these scopes instead of `read` and `write`.
    #[must_use]
    pub fn scopes(mut self, scopes: &[&str]) -> Self {
        self.scopes = scopes.iter().map(|scope| (*scope).into()).collect();
        self
    }

    /// Knows this client.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.clients.push(client);
        self
    }

    /// Does not support client-id metadata documents.
    #[must_use]
    pub fn without_documents(mut self) -> Self {
        self.documents = false;
        self
    }

    /// Has no registration endpoint.
    #[must_use]
    pub fn without_registration(mut self) -> Self {
        self.registration = false;
        self
    }

    /// Issues no refresh tokens.
    #[must_use]
    pub fn without_refresh(mut self) -> Self {
        self.refresh = Refresh::Never;
        self
    }

    /// Does not replace refresh tokens: a refresh returns an access token alone.
    #[must_use]
    pub fn keeps_refresh_tokens(mut self) -> Self {
        self.refresh = Refresh::Kept;
        self
    }

    /// Accepts a replaced refresh token for this long, as servers do whose responses may be lost. Later use revokes the session.
    #[must_use]
    pub fn reuse_grace(mut self, grace: Duration) -> Self {
        self.reuse_grace = grace;
        self
    }

    /// Sends no `iss` in redirects, and says so (RFC 9207).
    #[must_use]
    pub fn without_iss(mut self) -> Self {
        self.states_issuer = false;
        self
    }

    /// Binds tokens to the key of the request's proof (RFC 9449), and lists that in its metadata. Requests without a proof get bearer tokens.
    #[must_use]
    pub fn dpop(mut self) -> Self {
        self.proofs = UseOfProofs::BindTokens;
        self
    }

    pub(super) fn binds_tokens(&self) -> bool {
        self.proofs == UseOfProofs::BindTokens
    }

    /// Accepts assertions and subject tokens that this JSON Web Key signed.
    #[must_use]
    pub fn trusts(mut self, key: Value) -> Self {
        self.trusted.push(key);
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn fault(mut self, fault: AuthFault) -> Self {
        self.faults.push(AuthRule { fault, left: None });
        self
    }
}
