//! The Secret Service of a Linux desktop (GNOME Keyring, KWallet, KeePassXC), through `secret-tool` of libsecret.
//!
//! Entries have the attributes `service` and `username`, as those of Python's `keyring` have.

use std::path::{Path, PathBuf};

use super::{
    entry::{KeyringEntry, KeyringError, TIMEOUT},
    program,
};
use crate::secret::Secret;

const NAME: &str = "the Secret Service";

/// `secret-tool`, if there is one and a session bus to reach the service.
pub(super) fn program() -> Option<PathBuf> {
    let has_bus = || {
        let of_user =
            || std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
        std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some() || of_user()
    };
    let is_here = cfg!(all(unix, not(target_os = "macos")));
    is_here
        .then(|| program::on_path("secret-tool"))
        .flatten()
        .filter(|_| has_bus())
}

pub(super) fn find(program: &Path, entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
    let args = ["lookup", "service", entry.service, "username", entry.user];
    let ended = program::run(NAME, program, &args, None, TIMEOUT)?;
    match ended.status.success() {
        true => ended.secret(NAME),
        false if ended.has_no_stderr() => Err(KeyringError::NoEntry),
        false => Err(ended.failure(NAME)),
    }
}

pub(crate) fn store(program: &Path, entry: KeyringEntry<'_>, secret: &Secret) -> Result<(), KeyringError> {
    let label = format!("--label={}", entry.service);
    let args = ["store", &label, "service", entry.service, "username", entry.user];
    // The secret is read from standard input: other users can see arguments.
    let ended = program::run(NAME, program, &args, Some(secret), TIMEOUT)?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(ended.failure(NAME)),
    }
}

pub(crate) fn remove(program: &Path, entry: KeyringEntry<'_>) -> Result<(), KeyringError> {
    // `secret-tool clear` succeeds also if there is nothing to remove.
    find(program, entry)?;
    let args = ["clear", "service", entry.service, "username", entry.user];
    let ended = program::run(NAME, program, &args, None, TIMEOUT)?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(ended.failure(NAME)),
    }
}
