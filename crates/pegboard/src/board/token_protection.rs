//! [`TokenProtection`]: how the tokens of sign-ins are kept on this machine.

use super::Pegboard;

/// How the tokens of sign-ins are kept on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenProtection {
    /// In memory only.
    InMemory,
    /// In files that only the user can read, encrypted with a key in the keyring of the operating system.
    Encrypted,
    /// In files that only the user can read.
    NotEncrypted,
    /// Nothing can be read or written now.
    #[non_exhaustive]
    Unavailable {
        /// Why the key cannot be had.
        reason: String,
    },
}

impl TokenProtection {
    /// The name in text and JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InMemory => "in_memory",
            Self::Encrypted => "encrypted",
            Self::NotEncrypted => "not_encrypted",
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

impl Pegboard {
    /// How the tokens of sign-ins are kept. Asks the keyring, which may take some seconds.
    pub async fn token_protection(&self) -> TokenProtection {
        match self.0.factory.sign_ins.client().store().encrypts().await {
            None => TokenProtection::InMemory,
            Some(Ok(true)) => TokenProtection::Encrypted,
            Some(Ok(false)) => TokenProtection::NotEncrypted,
            Some(Err(reason)) => TokenProtection::Unavailable { reason },
        }
    }
}
