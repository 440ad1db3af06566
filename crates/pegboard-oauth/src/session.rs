//! How a session begins and changes with the responses of the token endpoint.

use std::time::SystemTime;

use super::{
    challenge::{OFFLINE_ACCESS, add_scopes},
    clock::unix_now,
    discovery::Discovered,
    stored::{Session, StoredAccount, StoredClient},
    token_answer::TokenAnswer,
};

/// What is known of a session besides its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The issuer of the authorization server that issued the tokens.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// When the session began, in seconds since 1970; `None` if that was not noted.
    pub began_at: Option<u64>,
    /// The scopes that were requested in vain.
    pub not_granted: Vec<String>,
    /// When the access token expires, in seconds since 1970.
    pub expires_at: u64,
    /// Whether there is a refresh token.
    pub is_renewable: bool,
    /// Whether the tokens are of no more use, so that a person must sign in again.
    pub needs_sign_in: bool,
}

impl SessionSummary {
    /// The session of an account, if it has one.
    pub(super) fn from_stored(stored: StoredAccount) -> Option<Self> {
        let session = stored.session?;
        let is_refused = stored.challenge.is_some_and(|challenge| !challenge.is_step_up);
        let is_over = session.refresh_token.is_none() && session.has_expired();
        Some(Self {
            needs_sign_in: stored.unknown_client.is_some() || is_refused || is_over,
            began_at: Some(session.began_at).filter(|began| *began > 0),
            expires_at: session.expires_at(),
            is_renewable: session.refresh_token.is_some(),
            scopes: session.granted_scopes().to_vec(),
            not_granted: session.missing_scopes(),
            issuer: session.issuer,
        })
    }
}

impl Session {
    /// The session that a token request began.
    pub(super) fn new(found: &Discovered, client: StoredClient, scopes: Vec<String>, answer: TokenAnswer) -> Self {
        let mut session = Self {
            issuer: found.server.issuer.clone(),
            token_endpoint: found.server.token_endpoint.to_string(),
            revocation_endpoint: found.server.revocation_endpoint.as_ref().map(ToString::to_string),
            client,
            resource: found.resource.clone(),
            access_token: answer.access_token.clone(),
            refresh_token: None,
            proof_key: None,
            is_bound: false,
            began_at: unix_now(),
            issued_at: 0,
            lifetime: 0,
            scopes,
            granted: None,
            ended: None,
            refreshing: false,
            refused_at_once: 0,
            step_ups: 0,
            futile_step_ups: 0,
            stepped_up_at: 0,
        };
        session.renew(answer);
        session
    }

    /// Takes the tokens of a response. A refresh token that was not replaced stays valid.
    pub(super) fn renew(&mut self, answer: TokenAnswer) {
        self.access_token = answer.access_token;
        self.is_bound = answer.is_bound;
        if let Some(refresh_token) = answer.refresh_token {
            self.refresh_token = Some(refresh_token);
        }
        self.issued_at = unix_now();
        self.lifetime = answer.lifetime;
        if let Some(granted) = answer.scopes {
            add_scopes(&mut self.scopes, granted.iter().map(String::as_str));
            self.granted = Some(granted);
        }
        self.ended = None;
        self.refreshing = false;
    }

    /// The scopes that the tokens have.
    pub(super) fn granted_scopes(&self) -> &[String] {
        self.granted.as_ref().unwrap_or(&self.scopes)
    }

    /// The scopes that were requested and not granted. With a refresh token, `offline_access` was granted even if the response leaves it out.
    pub(super) fn missing_scopes(&self) -> Vec<String> {
        let granted = self.granted_scopes();
        let is_missing = |scope: &&String| {
            let is_implied = *scope == OFFLINE_ACCESS && self.refresh_token.is_some();
            !is_implied && !granted.contains(scope)
        };
        self.scopes.iter().filter(is_missing).cloned().collect()
    }

    /// Shortens the lifetime of the access token to this time.
    pub(super) fn end_by(&mut self, end: SystemTime) {
        let end = end
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        self.lifetime = self.lifetime.min(end.saturating_sub(self.issued_at));
        self.refresh_token = None;
    }

    /// Counts a step-up that led from `before` to this session.
    pub(super) fn count_step_up(&mut self, before: &Self, is_futile: bool) {
        self.step_ups = before.step_ups.saturating_add(1);
        self.futile_step_ups = before.futile_step_ups.saturating_add(u8::from(is_futile));
        self.stepped_up_at = unix_now();
    }
}
