//! What the store keeps: the session of an account, the challenge that waits for a sign-in, and registered clients.

use serde::{Deserialize, Serialize};

use super::{
    account::{OAuthAccount, server_uri},
    challenge::Challenge,
    client_auth::ClientAuth,
    clock::unix_now,
};
use pegboard_base::secret::Secret;

/// The lifetime of a token whose response does not say how long it is valid, in seconds.
pub(super) const DEFAULT_LIFETIME: u64 = 3600;
/// The longest lifetime that is believed, in seconds.
const MAX_LIFETIME: u64 = 366 * 24 * 3600;

/// One account: a server and a principal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredAccount {
    /// The URL of the server and the name of the principal, for a person who looks at the store.
    pub(super) server: String,
    pub(super) principal: Option<String>,
    /// What a sign-in, or a grant without a person, has given.
    #[serde(default)]
    pub(super) session: Option<Session>,
    /// What the server said when it refused the last token. The next sign-in starts from it.
    #[serde(default)]
    pub(super) challenge: Option<StoredChallenge>,
    /// The id of a registered client that the authorization server does not know any more. The next sign-in registers anew.
    #[serde(default)]
    pub(super) unknown_client: Option<String>,
}

impl StoredAccount {
    pub(super) fn new(account: &OAuthAccount) -> Self {
        Self {
            server: server_uri(&account.url),
            principal: account.principal.as_ref().map(ToString::to_string),
            session: None,
            challenge: None,
            unknown_client: None,
        }
    }
}

/// Tokens, and where they may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// The authorization server that issued the tokens.
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: StoredClient,
    /// The resource that the tokens are for, as the server publishes it.
    pub(super) resource: String,
    pub(super) access_token: Secret,
    #[serde(default)]
    pub(super) refresh_token: Option<Secret>,
    /// The key that token requests prove to have: refresh tokens may be bound to it.
    #[serde(default)]
    pub(super) proof_key: Option<Secret>,
    /// Whether the access token is bound to that key.
    #[serde(default)]
    pub(super) is_bound: bool,
    /// When the session began, in seconds since 1970; 0 if an older version has begun it.
    #[serde(default)]
    pub(super) began_at: u64,
    /// When the access token was issued, in seconds since 1970.
    pub(super) issued_at: u64,
    /// How long it is valid, in seconds.
    pub(super) lifetime: u64,
    /// The scopes that were requested, and those that were granted.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    /// The scopes of the last response that named any. `None` means that all requested ones were granted.
    #[serde(default)]
    pub(super) granted: Option<Vec<String>>,
    /// Why the authorization server has ended the session, if it has: the refresh token is removed then.
    #[serde(default)]
    pub(super) ended: Option<String>,
    /// Set before a refresh is sent and removed with its result. One that is found was interrupted, so the refresh token may be used up.
    #[serde(default)]
    pub(super) refreshing: bool,
    /// How often in a row the token was renewed because the server refused a token that was just issued.
    #[serde(default)]
    pub(super) refused_at_once: u8,
    /// How many sign-ins for more scopes led to this session, and how many of them asked for nothing new.
    #[serde(default)]
    pub(super) step_ups: u8,
    #[serde(default)]
    pub(super) futile_step_ups: u8,
    /// When the last of them was, in seconds since 1970.
    #[serde(default)]
    pub(super) stepped_up_at: u64,
}

impl Session {
    pub(super) fn expires_at(&self) -> u64 {
        self.issued_at.saturating_add(self.lifetime.min(MAX_LIFETIME))
    }

    /// When the token is renewed: after 80 % of its lifetime, and not before the second after: there may be many requests within it.
    pub(super) fn refresh_at(&self) -> u64 {
        let used = self.lifetime.min(MAX_LIFETIME) * 4 / 5;
        self.issued_at.saturating_add(used.max(1))
    }

    /// Whether the token should be renewed.
    pub(super) fn is_due(&self) -> bool {
        unix_now() >= self.refresh_at()
    }

    pub(super) fn has_expired(&self) -> bool {
        unix_now() >= self.expires_at()
    }
}

/// A client at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredClient {
    pub(super) id: String,
    /// The secret of a client that was registered. That of the config is not stored.
    #[serde(default)]
    pub(super) secret: Option<Secret>,
    pub(super) auth: ClientAuth,
}

impl StoredClient {
    /// No client: the grant alone says who asks.
    pub(super) fn anonymous() -> Self {
        Self {
            id: String::new(),
            secret: None,
            auth: ClientAuth::None,
        }
    }
}

/// A client that this program has registered, under its issuer and redirect address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registration {
    pub(super) issuer: String,
    pub(super) redirect_uri: String,
    pub(super) client: StoredClient,
    /// When the secret expires, in seconds since 1970; 0 for never.
    #[serde(default)]
    pub(super) secret_expires_at: u64,
    /// The scopes that the client was registered for; with none, the authorization server has chosen them.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

impl Registration {
    /// Whether the client may request these scopes.
    pub(super) fn covers(&self, scopes: &[String]) -> bool {
        self.scopes.is_empty() || scopes.iter().all(|scope| self.scopes.contains(scope))
    }

    pub(super) fn is_usable(&self) -> bool {
        self.client.secret.is_none() || self.secret_expires_at == 0 || unix_now() < self.secret_expires_at
    }
}

/// The authorization server that gets the secret of a client. It outlives sign-outs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PinnedIssuer {
    /// The URL of the server and the id of the client, for a person who looks at the store.
    pub(super) server: String,
    #[serde(default)]
    pub(super) client_id: Option<String>,
    pub(super) issuer: String,
}

impl PinnedIssuer {
    pub(super) fn new(account: &OAuthAccount, issuer: &str) -> Self {
        Self {
            server: server_uri(&account.url),
            client_id: account.settings.client_id.clone(),
            issuer: issuer.to_owned(),
        }
    }
}

/// The parts of a challenge that the next sign-in needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredChallenge {
    /// The scopes to request: those of the challenge, and for a step-up also those of the session.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    #[serde(default)]
    pub(super) resource_metadata: Option<String>,
    /// Whether the token was refused for lack of scopes.
    #[serde(default)]
    pub(super) is_step_up: bool,
    /// Whether the server takes tokens that are bound to a key.
    #[serde(default)]
    pub(super) offers_dpop: bool,
}

impl From<Challenge> for StoredChallenge {
    fn from(challenge: Challenge) -> Self {
        Self {
            is_step_up: challenge.wants_more_scopes(),
            offers_dpop: challenge.offers_dpop,
            scopes: challenge.scopes,
            resource_metadata: challenge.resource_metadata,
        }
    }
}
