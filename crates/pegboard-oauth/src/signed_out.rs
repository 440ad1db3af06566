//! What a sign-out did: [`SignedOut`], and [`Forgotten`] before it is done.

use super::stored::Session;

/// What a sign-out did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedOut {
    /// There was nothing to sign out of.
    WasNot,
    /// The tokens are forgotten, and the authorization server has revoked them.
    Revoked,
    /// The tokens are forgotten. Why the authorization server has not revoked them.
    OnlyForgotten(String),
}

impl SignedOut {
    /// What two sign-outs did together. Tokens that are not revoked are what a person has to know.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::WasNot, other) | (Self::Revoked, other @ Self::OnlyForgotten(_)) => other,
            (first, _) => first,
        }
    }
}

/// What was forgotten of an account, and is still to be revoked.
#[derive(Debug)]
pub struct Forgotten(pub(super) What);

/// What it is.
#[derive(Debug)]
pub(super) enum What {
    /// Nobody was signed in.
    Nothing,
    /// Tokens that could not be read, so nobody can revoke them.
    Unreadable,
    /// The session with the tokens.
    Session(Box<Session>),
}
