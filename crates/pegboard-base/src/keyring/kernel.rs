//! The keyring of the Linux kernel: keys of the type `user` in the keyrings of the session and the user. A reboot empties it.
//!
//! `keyctl padd user SERVICE/USER @u` adds one, which it reads from its input.

use linux_keyutils::{KeyError, KeyRing, KeyRingIdentifier};

use super::entry::{KeyringEntry, KeyringError, parse_secret};
use crate::secret::Secret;

const NAME: &str = "the keyring of the kernel";

pub(super) fn find(entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
    let description = description(entry);
    let mut why = KeyringError::NoEntry;
    for place in [KeyRingIdentifier::Session, KeyRingIdentifier::User] {
        match KeyRing::from_special_id(place, false).and_then(|ring| ring.search(&description)) {
            Ok(key) => {
                let bytes = key.read_to_vec().map_err(|error| error_of(&error))?;
                return parse_secret(bytes, NAME);
            }
            Err(error) if is_absent(&error) => {}
            // Containers often forbid the system calls: such a machine has no keyring.
            Err(KeyError::AccessDenied | KeyError::OperationNotSupported) => why = KeyringError::NoKeyring,
            Err(error) => why = error_of(&error),
        }
    }
    Err(why)
}

pub(crate) fn store(entry: KeyringEntry<'_>, secret: &Secret) -> Result<(), KeyringError> {
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Session, true);
    let added = ring.and_then(|ring| ring.add_key(&description(entry), secret.expose().as_bytes()));
    added.map(drop).map_err(|error| error_of(&error))
}

pub(crate) fn remove(entry: KeyringEntry<'_>) -> Result<(), KeyringError> {
    let description = description(entry);
    let mut removed = Err(KeyringError::NoEntry);
    for place in [KeyRingIdentifier::Session, KeyRingIdentifier::User] {
        let found = KeyRing::from_special_id(place, false).and_then(|ring| ring.search(&description));
        match found.and_then(|key| key.invalidate()) {
            Ok(()) => removed = Ok(()),
            Err(error) if is_absent(&error) => {}
            Err(KeyError::AccessDenied | KeyError::OperationNotSupported) => return Err(KeyringError::NoKeyring),
            Err(error) => return Err(error_of(&error)),
        }
    }
    removed
}

/// Whether there is no such key. One that was removed is found as revoked until the kernel has discarded it.
fn is_absent(error: &KeyError) -> bool {
    matches!(
        error,
        KeyError::KeyDoesNotExist | KeyError::KeyringDoesNotExist | KeyError::KeyRevoked | KeyError::KeyExpired
    )
}

fn description(entry: KeyringEntry<'_>) -> String {
    format!("{}/{}", entry.service, entry.user)
}

fn error_of(error: &KeyError) -> KeyringError {
    KeyringError::failed(NAME, error.to_string())
}
