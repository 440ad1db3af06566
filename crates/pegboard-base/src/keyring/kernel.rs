//! The keyring of the Linux kernel: keys of the type `user` in the keyrings of the session and the user. A reboot empties it.
//!
//! `keyctl padd user SERVICE/USER @u` adds one, which it reads from its input.

use linux_keyutils::{KeyError, KeyRing, KeyRingIdentifier};

use super::{
    entry::{KeyringEntry, KeyringError, MAX_SECRET},
    program::failed,
};
use crate::secret::Secret;

const NAME: &str = "the keyring of the kernel";

pub(super) fn find(entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
    let description = description(entry);
    let mut why = KeyringError::NoEntry;
    for place in [KeyRingIdentifier::Session, KeyRingIdentifier::User] {
        match KeyRing::from_special_id(place, false).and_then(|ring| ring.search(&description)) {
            Ok(key) => {
                let bytes = key.read_to_vec().map_err(|error| error_of(&error))?;
                let text = String::from_utf8(bytes).map_err(|_| failed(NAME, "the secret is not text"))?;
                return match text.len() {
                    0 => Err(KeyringError::NoEntry),
                    length if length > MAX_SECRET => Err(failed(NAME, "the secret is longer than 64 KiB")),
                    _ => Ok(Secret::new(text)),
                };
            }
            Err(KeyError::KeyDoesNotExist | KeyError::KeyringDoesNotExist) => {}
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

fn description(entry: KeyringEntry<'_>) -> String {
    format!("{}/{}", entry.service, entry.user)
}

fn error_of(error: &KeyError) -> KeyringError {
    failed(NAME, &error.to_string())
}
