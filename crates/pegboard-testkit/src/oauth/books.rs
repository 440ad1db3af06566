//! What an authorization server has issued: codes, sessions with their refresh tokens, and access tokens.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use super::jws::random_text;

/// Who may do what where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) subject: String,
    pub(super) client: String,
    pub(super) scope: String,
    pub(super) resource: Option<String>,
    /// The sign-in that this comes from. Its refresh tokens are revoked together.
    pub(super) session: Option<u64>,
    /// The thumbprint of the key that its tokens are bound to.
    pub(super) key: Option<String>,
}

#[derive(Debug)]
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) redirect: String,
    pub(super) challenge: String,
}

#[derive(Debug)]
struct RefreshToken {
    grant: Grant,
    /// When it was replaced.
    replaced: Option<Instant>,
}

#[derive(Debug)]
struct AccessToken {
    grant: Grant,
    ends: Instant,
}

/// Everything issued and not forgotten.
#[derive(Debug, Default)]
pub(super) struct Books {
    codes: HashMap<String, Code>,
    refresh: HashMap<String, RefreshToken>,
    access: HashMap<String, AccessToken>,
    revoked: HashSet<u64>,
    sessions: u64,
    reuses: usize,
}

impl Books {
    /// A new session.
    pub(super) fn open_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    pub(super) fn add_code(&mut self, code: Code) -> String {
        let text = random_text("code-");
        self.codes.insert(text.clone(), code);
        text
    }

    /// A code works once.
    pub(super) fn take_code(&mut self, code: &str) -> Option<Code> {
        self.codes.remove(code)
    }

    pub(super) fn add_refresh(&mut self, grant: Grant) -> String {
        let text = random_text("rt-");
        self.refresh
            .insert(text.clone(), RefreshToken { grant, replaced: None });
        text
    }

    pub(super) fn add_access(&mut self, token: &str, grant: Grant, lifetime: Duration) {
        let ends = Instant::now() + lifetime;
        self.access.insert(token.to_owned(), AccessToken { grant, ends });
    }

    /// The grant of a refresh token that may be used now. Use of a replaced one after the grace revokes the session.
    pub(super) fn use_refresh(&mut self, token: &str, rotates: bool, grace: Duration) -> Result<Grant, &'static str> {
        let known = self.refresh.get_mut(token).ok_or("unknown refresh token")?;
        let session = known.grant.session.unwrap_or_default();
        if self.revoked.contains(&session) {
            return Err("the session was revoked");
        }
        let now = Instant::now();
        if known.replaced.is_some_and(|at| now > at + grace) {
            self.reuses += 1;
            self.revoked.insert(session);
            return Err("the refresh token was used before; the session is revoked");
        }
        if rotates {
            known.replaced.get_or_insert(now);
        }
        Ok(known.grant.clone())
    }

    /// The thumbprint of the key that a refresh token is bound to.
    pub(super) fn key_of_refresh(&self, token: &str) -> Option<String> {
        self.refresh.get(token)?.grant.key.clone()
    }

    /// The grant of an opaque or signed access token that was issued here and is still good.
    pub(super) fn access(&self, token: &str) -> Result<Grant, &'static str> {
        let known = self.access.get(token).ok_or("unknown access token")?;
        if known
            .grant
            .session
            .is_some_and(|session| self.revoked.contains(&session))
        {
            return Err("the access token was revoked");
        }
        if known.ends <= Instant::now() {
            return Err("the access token has expired");
        }
        Ok(known.grant.clone())
    }

    pub(super) fn knows_access(&self, token: &str) -> bool {
        self.access.contains_key(token)
    }

    /// Revokes a token: a refresh token with its whole session.
    pub(super) fn revoke(&mut self, token: &str) {
        if let Some(refresh) = self.refresh.get(token) {
            self.revoked.extend(refresh.grant.session);
        }
        if let Some(access) = self.access.get_mut(token) {
            access.ends = Instant::now();
        }
    }

    pub(super) fn revoke_all(&mut self) {
        self.revoked.extend(1..=self.sessions);
    }

    pub(super) fn expire_all(&mut self) {
        let now = Instant::now();
        for access in self.access.values_mut() {
            access.ends = now;
        }
    }

    pub(super) fn reuses(&self) -> usize {
        self.reuses
    }
}

/// Seconds since 1970.
pub(super) fn now_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
