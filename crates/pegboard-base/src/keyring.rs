//! Secrets in the keyring of the operating system: the Secret Service of a Linux desktop, the keychain of macOS, or the keyring of the Linux
//! kernel.
//!
//! The first two are used through their own programs. No call takes longer than 5 s: a keyring that is locked may wait for a person.

mod entry;
#[cfg(target_os = "linux")]
mod kernel;
mod keychain;
mod program;
mod secret_service;

use std::path::PathBuf;

pub use entry::{KeyringEntry, KeyringError};

use crate::secret::Secret;

/// A keyring of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyring {
    /// The Secret Service, through `secret-tool`.
    SecretService(PathBuf),
    /// The keychain of macOS, through `security`.
    Keychain(PathBuf),
    /// The keyring of the kernel, which a reboot empties.
    #[cfg(target_os = "linux")]
    Kernel,
}

impl Keyring {
    /// The keyrings of this machine, in the order in which they are asked.
    pub fn all() -> Vec<Self> {
        let desktop = secret_service::program().map(Self::SecretService);
        let keychain = keychain::program().map(Self::Keychain);
        let all = desktop.into_iter().chain(keychain);
        #[cfg(target_os = "linux")]
        let all = all.chain([Self::Kernel]);
        all.collect()
    }

    /// The keyring that keeps secrets over a reboot, if there is one.
    pub fn persistent() -> Option<Self> {
        Self::all().into_iter().find(Self::is_lasting)
    }

    /// Whether it keeps secrets over a reboot.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::SecretService(_) | Self::Keychain(_) => true,
            #[cfg(target_os = "linux")]
            Self::Kernel => false,
        }
    }

    /// Reads a secret.
    pub fn read(&self, entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
        match self {
            Self::SecretService(program) => secret_service::find(program, entry),
            Self::Keychain(program) => keychain::find(program, entry),
            #[cfg(target_os = "linux")]
            Self::Kernel => kernel::find(entry),
        }
    }

    /// Stores a secret, in place of the one before.
    pub fn store(&self, entry: KeyringEntry<'_>, secret: &Secret) -> Result<(), KeyringError> {
        match self {
            Self::SecretService(program) => secret_service::store(program, entry, secret),
            Self::Keychain(program) => keychain::store(program, entry, secret),
            #[cfg(target_os = "linux")]
            Self::Kernel => kernel::store(entry, secret),
        }
    }

    /// Removes a secret. Fails with [`KeyringError::NoEntry`] if there is none.
    pub fn remove(&self, entry: KeyringEntry<'_>) -> Result<(), KeyringError> {
        match self {
            Self::SecretService(program) => secret_service::remove(program, entry),
            Self::Keychain(program) => keychain::remove(program, entry),
            #[cfg(target_os = "linux")]
            Self::Kernel => kernel::remove(entry),
        }
    }
}

/// Reads a secret from the first of these keyrings that has it.
pub fn find_in(keyrings: &[Keyring], entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
    let mut why = KeyringError::NoKeyring;
    for keyring in keyrings {
        match keyring.read(entry) {
            Ok(secret) => return Ok(secret),
            // A keyring that fails says more than one that has no entry.
            Err(KeyringError::NoEntry) if why != KeyringError::NoKeyring => {}
            Err(error) => why = error,
        }
    }
    Err(why)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
