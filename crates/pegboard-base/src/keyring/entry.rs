//! [`KeyringEntry`]: the name of a secret in a keyring, and why it cannot be read or stored.

use std::time::Duration;

use crate::secret::Secret;

/// How long a keyring may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest secret.
pub(super) const MAX_SECRET: usize = 64 << 10;

/// The name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyringEntry<'a> {
    /// The service or program that the secret belongs to.
    pub service: &'a str,
    /// The account at that service.
    pub user: &'a str,
}

/// Why a secret cannot be read or stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is no keyring, or none that this program supports.
    #[error("this machine has no keyring that this program can use")]
    NoKeyring,
    /// The keyring answered that it has no secret of this name.
    #[error("the keyring has no such entry")]
    NoEntry,
    /// The keyring with this name did not answer within the timeout.
    #[error("{0} did not answer within {limit} s; it may be locked", limit = TIMEOUT.as_secs())]
    NoAnswer(&'static str),
    /// The keyring reported an error, or its answer cannot be used.
    #[error("{keyring} failed: {reason}")]
    Failed {
        /// The name of the keyring.
        keyring: &'static str,
        /// The error, as the keyring reports it.
        reason: String,
    },
}

/// The secret that a keyring returned.
pub(super) fn parse_secret(bytes: Vec<u8>, keyring: &'static str) -> Result<Secret, KeyringError> {
    let text = String::from_utf8(bytes).map_err(|_| KeyringError::failed(keyring, "the secret is not text"))?;
    match text.len() {
        0 => Err(KeyringError::NoEntry),
        length if length > MAX_SECRET => Err(KeyringError::failed(keyring, "the secret is longer than 64 KiB")),
        _ => Ok(Secret::new(text)),
    }
}

impl KeyringError {
    pub(super) fn failed(keyring: &'static str, reason: impl Into<String>) -> Self {
        Self::Failed {
            keyring,
            reason: reason.into(),
        }
    }

    /// What a person can do.
    pub fn hint(&self, entry: KeyringEntry<'_>) -> String {
        let KeyringEntry { service, user } = entry;
        match self {
            Self::NoKeyring if cfg!(target_os = "linux") => {
                "run it in a desktop session with `secret-tool` (libsecret), add the secret to the kernel's keyring with `keyctl`, or put it in a variable or a file"
                    .to_owned()
            }
            Self::NoKeyring if cfg!(target_os = "macos") => {
                "check that `security` is on the PATH and the login keychain is unlocked, or put the secret in a variable or a file".to_owned()
            }
            Self::NoKeyring => "put the secret in a variable or a file".to_owned(),
            Self::NoEntry if cfg!(target_os = "macos") => {
                format!("add it with `security add-generic-password -s {service} -a {user} -w`")
            }
            Self::NoEntry => {
                format!(
                    "add it with `secret-tool store --label={service} service {service} username {user}`, or on a machine without a desktop with \
                     `keyctl padd user {service}/{user} @u`"
                )
            }
            Self::NoAnswer(_) => "unlock the keyring and try again".to_owned(),
            Self::Failed { .. } => "check that the keyring works in this session".to_owned(),
        }
    }
}
