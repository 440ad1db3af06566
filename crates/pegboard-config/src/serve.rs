//! The settings of a gateway: where it listens, whom it lets in, and its limits.

pub(crate) mod access_log;
pub(crate) mod metrics;
pub(crate) mod oauth;
pub(crate) mod replicas;
mod state_key;
pub(crate) mod telemetry;
pub(crate) mod token;
pub(crate) mod web_address;

pub use access_log::AccessLogTarget;
pub use metrics::ServeMetrics;
pub use oauth::{JwtAlgorithm, OAuthIntrospection, OAuthRule, ServeOAuth};
pub use replicas::ServeReplicas;
pub use state_key::{BadStateKey, StateKey};
pub use telemetry::{Compression, ServeTelemetry, TraceSampler};
pub use token::{BadTokenDigest, TokenConfig, TokenDigest, TokenScope};

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    choice::words,
    duration_text,
    field::{DefaultValue, ValueKind},
    from_setting::address,
    key::{Nested, choice, count, flag, limit, map, parse_problem, secret, size, table, text, text_or, texts, unless},
    setting::Text,
    settings::settings,
};

use metrics::serve_metrics;
use oauth::serve_oauth;
use replicas::serve_replicas;
use telemetry::serve_telemetry;

use pegboard_base::secret::Secret;

settings! {
    /// Where a gateway listens, whom it lets in, and its limits.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ServeConfig in serve = "serve" {
        /// The addresses that the gateway listens on. Beyond loopback it needs tokens.
        listen: Vec<SocketAddr> = texts()
            .syntax(|text| unless(address(text).is_some(), "must be an IP address and a port"), "write `127.0.0.1:7337`, `[::1]:7337` or `localhost:7337`")
            .default_by(|| vec![LISTEN])
            .shown(DefaultValue::Texts(&[LISTEN_TEXT]));
        /// Further names that clients may use for the gateway in `Host`, such as `gateway.example.com`.
        hosts: Vec<String> = texts()
            .syntax(
                |text| unless(web_address::is_host(text), "must be a host name, with or without a port"),
                "write `gateway.example.com` or `gateway.example.com:8443`",
            )
            .aka(&["allowed_hosts"])
            .via(web_address::hosts);
        /// Web origins whose pages may use the gateway, such as `https://app.example.com`.
        origins: Vec<String> = texts()
            .syntax(
                |text| unless(web_address::is_origin(text), "must be the origin of a web page"),
                "write `https://app.example.com`, without a path",
            )
            .aka(&["allowed_origins"])
            .via(web_address::origins);
        /// The URL under which clients reach the gateway, such as `https://mcp.example.com`, if a proxy stands before it. Its host counts as one of
        /// `hosts`.
        public_url: Option<String> = text()
            .syntax(
                |text| unless(web_address::parse_public_url(text).is_some(), "must be an http or https URL without user, query and fragment"),
                "write `https://mcp.example.com`, or `https://example.com/mcp-gateway` for one below a path",
            )
            .aka(&["external_url", "base_url"])
            .via(web_address::public_url);
        /// The most open connections; further ones wait.
        max_connections: usize = count((1, 1_000_000), 12_000);
        /// The most requests that are handled at once; further ones are refused with `Retry-After`. Streams on which a client only listens do not
        /// count.
        max_in_flight: usize = count((1, 1_000_000), 4096);
        /// The largest body of a request.
        max_body: usize = size((1024, 1 << 30), 8 << 20);
        /// The most sessions of clients with a handshake; further ones are refused.
        max_sessions: usize = count((1, 1_000_000), 1024);
        /// How long a session without a request or a stream is kept.
        session_idle: Duration as "duration_text" = limit(30 * 60);
        /// 32 random bytes in base64, such as `openssl rand -base64 32` prints: the key that seals what clients keep between two requests. Replicas
        /// of a gateway need the same one. Without it a key is made and kept in the folder of the user's state.
        state_key: Option<StateKey> = secret().syntax(
            |text| parse_problem(StateKey::parse(text)),
            "`openssl rand -base64 32` prints one; keep it in a variable, `state_key = \"${PEGBOARD_STATE_KEY}\"`",
        );
        /// The key that was `state_key` before. What it has sealed is opened, and nothing is sealed with it any more. To change the key of replicas, add
        /// the new one here at all of them, then swap the two, then leave the old one out after a month.
        previous_state_key: Option<StateKey> = secret().syntax(
            |text| parse_problem(StateKey::parse(text)),
            "it is the former value of `state_key`",
        );
        /// Where replicas of the gateway keep what they share: a Redis or Valkey, such as `rediss://user:password@store.example:6379`, or a shared folder,
        /// `file:/srv/pegboard`. It needs `state_key`. Without it each process has its own state.
        store: Option<Text> => Option<Secret> = secret().syntax(
            |text| unless(replicas::is_store_address(text), "must be the address of a store"),
            "write `redis://store.example:6379`, or `file:/srv/pegboard` for a folder that all replicas share",
        );
        /// Whether clients with the scope `admin` may add servers, and change their settings, over the HTTP API. Such a client can start any program
        /// as the gateway's user.
        allow_new_servers: bool = flag(false);
        /// Whether a client that cannot open pages for its user gets the one-time link to a sign-in page in the text of a result or an error, which a
        /// model reads. With `false` the text says how to get the link, and only clients with URL elicitation and the HTTP API get links.
        links_in_text: bool = flag(true);
        /// Whether browsers get the dashboard at `/`. With `false` nothing is served there. It takes effect at the next start.
        dashboard: bool = flag(true);
        /// When the dashboard records calls, with masked arguments and results in memory, to show them: while its pages are in use, always, or
        /// never.
        dashboard_calls: DashboardCalls = choice();
        /// Where each request of HTTP has a line after its response: `off`, `stderr`, or a file, relative to the config file, that is opened again at
        /// SIGHUP. It takes effect at the next start.
        access_log: AccessLogTarget = text_or(AccessLogTarget::Off, "off")
            .syntax(access_log::problem, "write `off`, `stderr` or the path of a file");
        /// The certificate with which the gateway speaks HTTPS. Without it, it speaks HTTP.
        tls: Nested<serve_tls::In> => Option<ServeTls> = table(ValueKind::Table(&serve_tls::SECTION));
        /// Whose access tokens (OAuth 2.0) the gateway accepts besides its own tokens.
        oauth: Nested<serve_oauth::In> => Option<ServeOAuth> = table(ValueKind::Table(&serve_oauth::SECTION));
        /// How replicas of the gateway send requests to each other.
        replicas: Nested<serve_replicas::In> => ServeReplicas = table(ValueKind::Table(&serve_replicas::SECTION));
        /// Where traces, metrics and log records are sent (OpenTelemetry). It is read when the gateway starts.
        telemetry: Nested<serve_telemetry::In> => ServeTelemetry = table(ValueKind::Table(&serve_telemetry::SECTION));
        /// What `/metrics` counts by name. It is read when the gateway starts.
        metrics: Nested<serve_metrics::In> => ServeMetrics = table(ValueKind::Table(&serve_metrics::SECTION));
        /// The tokens of clients, by name. As soon as there is one, every request needs one.
        tokens: BTreeMap<String, Nested<token::token::In>> => BTreeMap<String, TokenConfig> = map(&ValueKind::Table(&token::token::SECTION));
    }
    fields {
        /// The names of tokens whose settings have errors. No client can use them, and they do not make the gateway an open one.
        unusable_tokens: BTreeSet<String> = BTreeSet::new();
    }
}

words! {
    /// When the dashboard records calls.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum DashboardCalls as "recording of calls" default Open {
        /// While a page of the dashboard is open, and an hour longer.
        Open = "open",
        /// From the start on.
        Always = "always",
        /// Never.
        Off = "off",
    }
}

/// The default of `listen`.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7337));
/// The same as it is shown.
const LISTEN_TEXT: &str = "127.0.0.1:7337";

settings! {
    serve_tls = "serve.tls" {
        /// A PEM file with the certificate chain of the gateway, its own certificate first, relative to the config file.
        cert: Option<Text> = text().aka(&["cert_file", "certificate"]);
        /// A PEM file with the private key of the certificate. Only the user that runs the gateway should be able to read it.
        key: Option<Text> = text().aka(&["key_file", "private_key"]);
    }
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
    /// Whether clients must present a token. They must as soon as a token or an authorization server is configured, even one with errors,
    /// and on loopback too: a reverse proxy on this machine connects from there.
    pub fn requires_token(&self) -> bool {
        !self.tokens.is_empty() || !self.unusable_tokens.is_empty() || self.oauth.is_some()
    }

    /// The token that a client presents, with its name. `None` if it is unknown or has expired.
    ///
    /// Every token is compared, each in constant time, so the time tells nothing about which of them is near.
    pub fn token(&self, presented: &str) -> Option<(&str, &TokenConfig)> {
        let digest = TokenDigest::compute(presented);
        let mut found = None;
        for (name, token) in &self.tokens {
            if token.sha256.is_same(&digest) {
                found = Some((name.as_str(), token));
            }
        }
        found.filter(|(_, token)| !token.has_expired())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_text_until_it_expires() {
        let mut serve = ServeConfig::default();
        assert!(!serve.requires_token());
        let alice = TokenConfig::new(TokenDigest::compute("pgb_alice"));
        let mut past = TokenConfig::new(TokenDigest::compute("pgb_past"));
        past.expires = Some("2020-01-01T00:00:00Z".parse().unwrap());
        let mut future = TokenConfig::new(TokenDigest::compute("pgb_future"));
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
        assert_eq!(LISTEN.to_string(), LISTEN_TEXT);
    }
}
