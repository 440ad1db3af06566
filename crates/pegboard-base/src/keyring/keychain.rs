//! The keychain of macOS, through `security`.

use std::path::{Path, PathBuf};

use super::{
    entry::{KeyringEntry, KeyringError, TIMEOUT},
    program,
};
use crate::secret::Secret;

const NAME: &str = "the keychain";
/// How `security` exits if there is no such entry.
const NO_ENTRY: i32 = 44;

pub(super) fn program() -> Option<PathBuf> {
    cfg!(target_os = "macos").then(|| PathBuf::from("/usr/bin/security"))
}

pub(super) fn find(program: &Path, entry: KeyringEntry<'_>) -> Result<Secret, KeyringError> {
    let args = ["find-generic-password", "-s", entry.service, "-a", entry.user, "-w"];
    let ended = program::run(NAME, program, &args, None, TIMEOUT)?;
    match ended.status.code() {
        Some(0) => ended.secret(NAME),
        Some(NO_ENTRY) => Err(KeyringError::NoEntry),
        _ => Err(ended.failure(NAME)),
    }
}

pub(crate) fn store(program: &Path, entry: KeyringEntry<'_>, secret: &Secret) -> Result<(), KeyringError> {
    // As a command on standard input: other users can see arguments. Its words must not need quotes.
    let is_plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=._-".contains(&b))
    };
    if ![entry.service, entry.user, secret.expose()].into_iter().all(is_plain) {
        return Err(KeyringError::failed(
            NAME,
            "the entry has characters that cannot be stored from here",
        ));
    }
    let line = format!(
        "add-generic-password -U -s {} -a {} -w {}\n",
        entry.service,
        entry.user,
        secret.expose()
    );
    let ended = program::run(NAME, program, &["-i"], Some(&Secret::new(line)), TIMEOUT)?;
    match ended.status.success() && ended.has_no_stderr() {
        true => Ok(()),
        false => Err(ended.failure(NAME)),
    }
}

pub(crate) fn remove(program: &Path, entry: KeyringEntry<'_>) -> Result<(), KeyringError> {
    let args = ["delete-generic-password", "-s", entry.service, "-a", entry.user];
    let ended = program::run(NAME, program, &args, None, TIMEOUT)?;
    match ended.status.code() {
        Some(0) => Ok(()),
        Some(NO_ENTRY) => Err(KeyringError::NoEntry),
        _ => Err(ended.failure(NAME)),
    }
}
