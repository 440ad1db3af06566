//! [`OAuthAccount`]: one server and principal that a token is for.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use url::Url;

use pegboard_base::{
    caller::Principal,
    name::ServerName,
    secret::{SafeUrl, WithSecrets},
};
use pegboard_client::credential::CallerToken;
use pegboard_config::{Dpop, OAuthConfig, Tls};

/// A server and the principal that signs in to it.
#[derive(Debug, Clone)]
pub struct OAuthAccount {
    /// The name of the server in the config.
    pub server: ServerName,
    /// The URL of the MCP server.
    pub url: Url,
    /// `None` for the board's own connections.
    pub principal: Option<Principal>,
    /// The server's OAuth settings.
    pub settings: Arc<OAuthConfig>,
    /// The TLS settings of the server's connections. Its authorities are trusted at the authorization server too; the client certificate is not
    /// sent there.
    pub tls: Tls,
    /// The token with which the caller came to the gateway, for token exchange.
    pub subject: Option<CallerToken>,
}

impl OAuthAccount {
    /// Creates the account of the board's own connections, with default TLS settings.
    pub fn new(server: ServerName, url: Url, settings: Arc<OAuthConfig>) -> Self {
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
    pub fn key(&self) -> AccountKey {
        self.key_with(self.settings.dpop)
    }

    /// The keys of the same account with the other settings of `oauth.dpop`.
    pub(super) fn keys_of_other_dpop(&self) -> impl Iterator<Item = AccountKey> {
        let others = [Dpop::Auto, Dpop::Required, Dpop::Off].into_iter();
        others
            .filter(|dpop| *dpop != self.settings.dpop)
            .map(|dpop| self.key_with(dpop))
    }

    fn key_with(&self, dpop: Dpop) -> AccountKey {
        let settings = &self.settings;
        let document = address(settings.client_metadata_url.as_ref());
        let token_url = address(settings.token_url.as_ref());
        let authorization_url = address(settings.authorization_url.as_ref());
        // With what is exchanged: another subject has other tokens. The key is a hash.
        let grant = serde_json::to_string(&WithSecrets::new(&settings.grant)).unwrap_or_default();
        let uri = server_uri(&self.url);
        let mut parts: Vec<&str> = vec![
            "account",
            &uri,
            self.principal.as_ref().map_or("", Principal::as_str),
            if self.principal.is_some() { "principal" } else { "board" },
            settings.issuer.as_deref().unwrap_or_default(),
            settings.resource.as_deref().unwrap_or_default(),
            settings.client_id.as_deref().unwrap_or_default(),
            &document,
            &token_url,
            &authorization_url,
            settings.audience.as_deref().unwrap_or_default(),
            &grant,
            // Tenants may differ in the query alone.
            self.url.query().unwrap_or_default(),
        ];
        // A token that is bound to a key cannot be used without one, nor the other way round.
        parts.extend(match dpop {
            Dpop::Auto => None,
            Dpop::Required => Some("dpop"),
            Dpop::Off => Some("no dpop"),
        });
        // What a caller's token was exchanged for belongs to that token.
        let entry = self
            .subject
            .as_ref()
            .map(|subject| format!("caller {}", subject.generation));
        parts.extend(entry.as_deref());
        AccountKey::new(&parts)
    }

    /// The key of the issuer that gets the secret of the config's client. All principals have the same client.
    pub(super) fn pin_key(&self) -> AccountKey {
        let settings = &self.settings;
        AccountKey::new(&[
            "issuer",
            &server_uri(&self.url),
            settings.client_id.as_deref().unwrap_or_default(),
            &address(settings.client_metadata_url.as_ref()),
        ])
    }
}

fn address(url: Option<&SafeUrl>) -> String {
    url.map_or_else(String::new, |url| url.expose().to_string())
}

/// The URL of a server as a resource identifier (RFC 8707): without credentials, query and fragment, and without the slash of an empty path. Queries
/// have API keys in them, and a resource identifier is shown in browsers and logs.
pub(super) fn server_uri(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.set_query(None);
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let text = url.to_string();
    match url.path() {
        "/" => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

/// Names a file of the store: a hash of everything that must not be mixed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountKey(String);

impl AccountKey {
    pub(super) fn new(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The key of a file with this name, if it is one.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let is_hash = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| Self(name.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_config::{OAuthGrant, TokenExchange, TokenInput};

    fn account(url: &str, settings: OAuthConfig) -> OAuthAccount {
        OAuthAccount::new("fx".parse().unwrap(), url.parse().unwrap(), Arc::new(settings))
    }

    #[test]
    fn every_setting_that_leads_to_other_tokens_has_a_key_of_its_own() {
        let url = |text: &str| Some(SafeUrl::parse(text).unwrap());
        let text = |text: &str| Some(text.to_owned());
        let exchange = |subject: &str| OAuthGrant::TokenExchange(TokenExchange::new(TokenInput::Value(subject.into())));
        let with = |change: &dyn Fn(&mut OAuthConfig)| {
            let mut settings = OAuthConfig::default();
            change(&mut settings);
            account("https://mcp.example/mcp", settings).key()
        };
        let mut keys = vec![
            with(&|_| {}),
            with(&|settings| settings.issuer = text("https://as.example")),
            with(&|settings| settings.resource = text("https://as.example")),
            with(&|settings| settings.client_id = text("https://as.example")),
            with(&|settings| settings.audience = text("https://as.example")),
            with(&|settings| settings.client_metadata_url = url("https://as.example/")),
            with(&|settings| settings.token_url = url("https://as.example/")),
            with(&|settings| settings.authorization_url = url("https://as.example/")),
            with(&|settings| settings.grant = OAuthGrant::ClientCredentials),
            with(&|settings| settings.grant = exchange("one")),
            with(&|settings| settings.grant = exchange("two")),
            account("https://mcp.example/mcp?tenant=1", OAuthConfig::default()).key(),
        ];
        // A principal without a name is not the board.
        keys.extend(["", "ada", "bob"].map(|principal| {
            let board = account("https://mcp.example/mcp", OAuthConfig::default());
            let principal = Some(Principal::new(principal));
            OAuthAccount { principal, ..board }.key()
        }));
        let all = keys.len();
        keys.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn the_query_and_the_credentials_of_a_url_are_no_part_of_the_resource() {
        for (url, expected) in [
            ("https://mcp.example/mcp?api_key=s3cret", "https://mcp.example/mcp"),
            ("https://mcp.example?api_key=s3cret#part", "https://mcp.example"),
            ("https://me:s3cret@mcp.example/", "https://mcp.example"),
            ("https://mcp.example/a/", "https://mcp.example/a/"),
        ] {
            assert_eq!(server_uri(&url.parse().unwrap()), expected);
        }
    }
}
