//! [`OAuthAccount`]: one server and principal that a token is for.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use url::Url;

use crate::{
    caller::Principal,
    config::{Dpop, OAuthConfig, Tls},
    credential::CallerToken,
    name::ServerName,
};

/// A server and the principal that signs in to it.
#[derive(Debug, Clone)]
pub(crate) struct OAuthAccount {
    pub(crate) server: ServerName,
    /// The URL of the MCP server.
    pub(crate) url: Url,
    /// `None` for the board's own connections.
    pub(crate) principal: Option<Principal>,
    pub(crate) settings: Arc<OAuthConfig>,
    /// The TLS settings of the server's connections. Its authorities are trusted at the authorization server too; the client certificate is not
    /// sent there.
    pub(crate) tls: Tls,
    /// The token with which the caller came to the gateway, for token exchange.
    pub(crate) subject: Option<CallerToken>,
}

impl OAuthAccount {
    pub(crate) fn new(server: ServerName, url: Url, settings: Arc<OAuthConfig>) -> Self {
        Self {
            server,
            url,
            principal: None,
            settings,
            tls: Tls::default(),
            subject: None,
        }
    }

    /// The key under which the account is stored.
    pub(super) fn key(&self) -> AccountKey {
        let settings = &self.settings;
        let document = settings.client_metadata_url.as_ref();
        let document = document.map_or("", |url| url.expose().as_str());
        let uri = server_uri(&self.url);
        let mut parts = vec![
            "account",
            &uri,
            self.principal.as_ref().map_or("", Principal::as_str),
            if self.principal.is_some() { "principal" } else { "board" },
            settings.issuer.as_deref().unwrap_or_default(),
            settings.resource.as_deref().unwrap_or_default(),
            settings.client_id.as_deref().unwrap_or_default(),
            document,
            grant_name(settings),
        ];
        // A token that is bound to a key cannot be used without one, nor the other way round.
        parts.extend(match settings.dpop {
            Dpop::Auto => None,
            Dpop::Required => Some("dpop"),
            Dpop::Off => Some("no dpop"),
        });
        AccountKey::of(&parts)
    }
}

fn grant_name(settings: &OAuthConfig) -> &'static str {
    use crate::config::OAuthGrant;
    match settings.grant {
        OAuthGrant::AuthorizationCode => "authorization_code",
        OAuthGrant::ClientCredentials => "client_credentials",
        OAuthGrant::TokenExchange(_) => "token_exchange",
        OAuthGrant::JwtBearer(_) => "jwt_bearer",
    }
}

/// The URL of a server as a resource identifier (RFC 8707): without credentials and fragment, and without the slash of an empty path.
pub(super) fn server_uri(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let text = url.to_string();
    match url.path() {
        "/" if url.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

/// Names a file of the store: a hash of everything that must not be mixed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AccountKey(String);

impl AccountKey {
    pub(super) fn of(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
