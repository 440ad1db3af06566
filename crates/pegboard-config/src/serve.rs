//! The settings of a gateway: where it listens, whom it lets in, and its limits.

mod oauth;
mod state_key;
mod token;

pub use oauth::{JwtAlgorithm, OAuthIntrospection, OAuthRule, ServeOAuth};
pub use state_key::{BadStateKey, StateKey};
pub use token::{BadTokenDigest, TokenConfig, TokenDigest, TokenScope};

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::duration_text;

/// Where a gateway listens, whom it lets in, and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServeConfig {
    /// The addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Further names that clients may use in `Host`, besides those of loopback and the addresses of `listen`.
    pub hosts: Vec<String>,
    /// Further values of `Origin` that are accepted, such as `https://app.example.com`.
    pub origins: Vec<String>,
    /// The URL under which clients reach the gateway, without a slash at its end. `None` means that it is the one they use.
    pub public_url: Option<String>,
    /// The most open connections.
    pub max_connections: usize,
    /// The most requests that are handled at once. Streams on which a client only listens do not count.
    pub max_in_flight: usize,
    /// The largest body of a request.
    pub max_body: usize,
    /// The most sessions of clients with a handshake.
    pub max_sessions: usize,
    /// How long a session without a request or a stream is kept.
    #[serde(with = "duration_text")]
    pub session_idle: Duration,
    /// The key that seals what clients keep between two requests. Gateways with the same key serve each other's clients; without one, each
    /// process has a random key.
    pub state_key: Option<StateKey>,
    /// Whether clients with the scope `admin` may add servers over the HTTP API.
    pub allow_new_servers: bool,
    /// Whether links to sign-in pages are written into texts that a model reads.
    pub links_in_text: bool,
    /// The certificate with which it speaks HTTPS; `None` means HTTP.
    pub tls: Option<ServeTls>,
    /// The tokens that clients may present, by name.
    pub tokens: BTreeMap<String, TokenConfig>,
    /// The names of tokens whose settings have errors. No client can use them, and they do not make the gateway an open one.
    pub unusable_tokens: BTreeSet<String>,
    /// Whose access tokens are accepted besides.
    pub oauth: Option<ServeOAuth>,
}

/// The files of a gateway's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServeTls {
    /// A PEM file with the certificate chain, the gateway's own certificate first.
    pub cert: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
}

impl ServeTls {
    /// The files of a certificate chain and of its private key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            cert: cert.into(),
            key: key.into(),
        }
    }
}

impl ServeConfig {
    /// The default of `listen`.
    pub(super) const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7337));
    /// The same as it is shown in the table of fields.
    pub(super) const LISTEN_TEXT: &str = "127.0.0.1:7337";
    /// The default of `max_connections`.
    pub(super) const MAX_CONNECTIONS: usize = 12_000;
    /// The default of `max_in_flight`.
    pub(super) const MAX_IN_FLIGHT: usize = 4096;
    /// The default of `max_body`.
    pub(super) const MAX_BODY: usize = 8 << 20;
    /// The default of `max_sessions`.
    pub(super) const MAX_SESSIONS: usize = 1024;
    /// The default of `session_idle`.
    pub(super) const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);

    /// Whether clients must present a token. They must as soon as a token or an authorization server is configured, even one with errors,
    /// and on loopback too: a reverse proxy on this machine connects from there.
    pub fn requires_token(&self) -> bool {
        !self.tokens.is_empty() || !self.unusable_tokens.is_empty() || self.oauth.is_some()
    }

    /// The token that a client presents, with its name. `None` if it is unknown or has expired.
    ///
    /// Every token is compared, each in constant time, so the time tells nothing about which of them is near.
    pub fn token(&self, presented: &str) -> Option<(&str, &TokenConfig)> {
        let digest = TokenDigest::of(presented);
        let mut found = None;
        for (name, token) in &self.tokens {
            if token.sha256.is_same(&digest) {
                found = Some((name.as_str(), token));
            }
        }
        found.filter(|(_, token)| !token.has_expired())
    }
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            listen: vec![Self::LISTEN],
            hosts: Vec::new(),
            origins: Vec::new(),
            public_url: None,
            max_connections: Self::MAX_CONNECTIONS,
            max_in_flight: Self::MAX_IN_FLIGHT,
            max_body: Self::MAX_BODY,
            max_sessions: Self::MAX_SESSIONS,
            session_idle: Self::SESSION_IDLE,
            state_key: None,
            allow_new_servers: false,
            links_in_text: true,
            tls: None,
            tokens: BTreeMap::new(),
            unusable_tokens: BTreeSet::new(),
            oauth: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_text_until_it_expires() {
        let mut serve = ServeConfig::default();
        assert!(!serve.requires_token());
        let alice = TokenConfig::new(TokenDigest::of("pgb_alice"));
        let mut past = TokenConfig::new(TokenDigest::of("pgb_past"));
        past.expires = Some("2020-01-01T00:00:00Z".parse().unwrap());
        let mut future = TokenConfig::new(TokenDigest::of("pgb_future"));
        future.expires = Some("2900-01-01T00:00:00Z".parse().unwrap());
        serve.tokens = BTreeMap::from([
            ("alice".to_owned(), alice),
            ("past".to_owned(), past),
            ("future".to_owned(), future),
        ]);
        let name = |presented| serve.token(presented).map(|(name, _)| name);
        assert_eq!(name("pgb_alice"), Some("alice"));
        assert_eq!(name("pgb_future"), Some("future"));
        assert_eq!(name("pgb_past"), None);
        for unknown in ["", "alice", "pgb_alic", "pgb_alice ", "PGB_ALICE"] {
            assert_eq!(name(unknown), None, "{unknown}");
        }
        assert!(serve.requires_token());
    }

    #[test]
    fn a_token_with_errors_opens_no_door() {
        let serve = ServeConfig {
            unusable_tokens: BTreeSet::from(["typo".to_owned()]),
            ..ServeConfig::default()
        };
        assert!(serve.requires_token());
        assert_eq!(serve.token(""), None);
    }

    #[test]
    fn the_default_address_is_shown_as_it_is() {
        assert_eq!(ServeConfig::LISTEN.to_string(), ServeConfig::LISTEN_TEXT);
    }
}
