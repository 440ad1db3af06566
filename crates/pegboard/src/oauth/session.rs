//! How a session begins and changes with the responses of the token endpoint.

use std::time::SystemTime;

use super::{
    challenge::add_scopes,
    clock::unix_now,
    discovery::Discovered,
    stored::{Session, StoredClient},
    token_answer::TokenAnswer,
};

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
        let granted = answer.scopes.iter().flatten();
        add_scopes(&mut self.scopes, granted.map(String::as_str));
        self.refreshing = false;
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
