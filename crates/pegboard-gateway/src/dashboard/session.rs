//! [`BrowserSession`]: the session of one browser, and the secrets that identify it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pegboard::Secret;
use ring::digest::{SHA256, digest};

use crate::door::Caller;

/// The session of a browser.
#[derive(Clone, Debug)]
pub struct BrowserSession {
    caller: Caller,
    form_token: Secret,
}

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSession {
    /// Too many sessions or links are open.
    #[error("too many browsers are signed in; try again later")]
    TooMany,
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
}

impl BrowserSession {
    pub(super) fn new(caller: Caller, form_token: Secret) -> Self {
        Self { caller, form_token }
    }

    /// Who has signed in.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What every form must contain, so that no other page can send one.
    pub fn form_token(&self) -> &Secret {
        &self.form_token
    }

    /// Whether a form contains the token of this session.
    pub fn has_form_token(&self, sent: &str) -> bool {
        key_of(sent) == key_of(self.form_token.expose())
    }
}

/// What identifies a session or a link: the digest of its secret, so that a lookup takes the same time whatever a browser sends.
pub(super) type Key = [u8; 32];

pub(super) fn key_of(secret: &str) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    key
}

/// 256 random bits as text.
pub(super) fn random_secret() -> Result<Secret, NoSession> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| NoSession::NoRandomNumbers)?;
    Ok(Secret::from(URL_SAFE_NO_PAD.encode(bytes)))
}
