//! [`KeyringKey`]: the key of the token store, in the keyring of the operating system.

use std::{
    fmt,
    fs::TryLockError,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::time::Instant;

use super::store_key::StoreKey;
use crate::{
    keyring::{Entry, Keyring, KeyringError},
    private_file,
    secret::Secret,
};

/// Where the key is in the keyring.
const ENTRY: Entry<'static> = Entry {
    service: "pegboard",
    user: "token-store",
};
/// For how long a keyring that failed is not asked again.
const RETRY: Duration = Duration::from_secs(30);
/// How long another process may take to create the key.
const CREATE_TIMEOUT: Duration = Duration::from_secs(15);

/// The key in a keyring. It is created with the first file that is written.
pub(crate) struct KeyringKey {
    keyring: Option<Keyring>,
    /// The folder of the store, for a lock.
    folder: PathBuf,
    known: Mutex<Option<Known>>,
}

/// What the keyring answered.
enum Known {
    Key([u8; 32]),
    /// There is no key to be had here.
    Nothing,
    Failed(Instant, String),
}

impl KeyringKey {
    /// The key in the keyring of this machine that lasts, if it has one.
    pub(crate) fn of_system(folder: &Path) -> Self {
        Self::new(Keyring::lasting(), folder)
    }

    fn new(keyring: Option<Keyring>, folder: &Path) -> Self {
        Self {
            keyring,
            folder: folder.to_owned(),
            known: Mutex::default(),
        }
    }

    fn ask(&self, keyring: &Keyring) -> Known {
        let failed = |error: KeyringError| Known::Failed(Instant::now(), format!("{error}; {}", error.hint(ENTRY)));
        let found = match keyring.find(ENTRY) {
            // It answers. If it takes no key now, it is locked, and files must not be left unencrypted for that.
            Err(KeyringError::NoEntry) => match self.create(keyring) {
                Err(error) => return failed(error),
                created => created,
            },
            Err(error @ KeyringError::NoAnswer(_)) => return failed(error),
            found => found.and_then(|secret| decoded(&secret)),
        };
        match found {
            Ok(key) => Known::Key(key),
            Err(error) => {
                tracing::warn!("the tokens of sign-ins are not encrypted, because {error}");
                Known::Nothing
            }
        }
    }

    fn create(&self, keyring: &Keyring) -> Result<[u8; 32], KeyringError> {
        let failed = |reason: String| KeyringError::Failed {
            keyring: "the key of the token store",
            reason,
        };
        // Two processes must not create a key each.
        let lock = private_file::edit(&self.folder.join("key.lock")).map_err(|error| failed(error.to_string()))?;
        let end = Instant::now() + CREATE_TIMEOUT;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(failed(error.to_string())),
            }
        }
        match keyring.find(ENTRY) {
            Err(KeyringError::NoEntry) => {}
            found => return decoded(&found?),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        keyring.store(ENTRY, &Secret::new(STANDARD.encode(key)))?;
        decoded(&keyring.find(ENTRY)?)
    }
}

fn decoded(secret: &Secret) -> Result<[u8; 32], KeyringError> {
    let bytes = STANDARD.decode(secret.expose().trim()).unwrap_or_default();
    bytes.try_into().map_err(|_| KeyringError::Failed {
        keyring: "the key of the token store",
        reason: "the entry `pegboard/token-store` of the keyring is not 32 bytes in base64".to_owned(),
    })
}

impl StoreKey for KeyringKey {
    fn key(&self) -> Result<Option<[u8; 32]>, String> {
        let Some(keyring) = &self.keyring else {
            return Ok(None);
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |known: &Known| matches!(known, Known::Failed(at, _) if at.elapsed() >= RETRY);
        if known.as_ref().is_none_or(is_old) {
            *known = Some(self.ask(keyring));
        }
        match &*known {
            Some(Known::Key(key)) => Ok(Some(*key)),
            Some(Known::Failed(_, why)) => Err(why.clone()),
            Some(Known::Nothing) | None => Ok(None),
        }
    }
}

impl fmt::Debug for KeyringKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyringKey")
            .field("keyring", &self.keyring)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use tempfile::TempDir;

    use super::*;

    /// A keyring whose program is a script.
    fn keyring(folder: &TempDir, script: &str) -> Keyring {
        let path = folder.path().join("secret-tool");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Keyring::SecretService(path)
    }

    #[test]
    fn a_key_is_created_once_and_found_by_all() {
        let folder = TempDir::new().unwrap();
        let kept = folder.path().join("kept");
        let script = format!(
            "case $1 in lookup) test -f {0} || exit 1; cat {0};; store) cat > {0};; esac",
            kept.display()
        );
        let keyring = keyring(&folder, &script);
        let store = folder.path().join("tokens");
        let keys: Vec<_> = thread::scope(|scope| {
            let asking = || KeyringKey::new(Some(keyring.clone()), &store).key();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = keys[0].clone().unwrap().unwrap();
        assert!(keys.iter().all(|key| *key == Ok(Some(first))));
        assert!(!format!("{:?}", KeyringKey::new(Some(keyring), &store)).contains(&STANDARD.encode(first)));
    }

    #[test]
    fn without_a_keyring_there_is_no_key() {
        let folder = TempDir::new().unwrap();
        assert_eq!(KeyringKey::new(None, folder.path()).key(), Ok(None));
        for script in ["echo 'no such service' >&2; exit 1", "echo bm8ga2V5"] {
            let keyring = keyring(&folder, script);
            assert_eq!(
                KeyringKey::new(Some(keyring), folder.path()).key(),
                Ok(None),
                "{script}"
            );
        }
    }

    #[test]
    fn a_keyring_that_is_locked_leaves_no_file_unencrypted() {
        let folder = TempDir::new().unwrap();
        let locked = "case $1 in lookup) exit 1;; *) echo 'the collection is locked' >&2; exit 1;; esac";
        let key = KeyringKey::new(Some(keyring(&folder, locked)), folder.path()).key();
        assert!(key.is_err_and(|error| error.contains("is locked")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_keyring_of_the_kernel_holds_a_key() {
        let folder = TempDir::new().unwrap();
        let key = KeyringKey::new(Some(Keyring::Kernel), folder.path());
        // `None` where a container forbids the system calls.
        let Some(first) = key.key().unwrap() else { return };
        assert_eq!(
            KeyringKey::new(Some(Keyring::Kernel), folder.path()).key(),
            Ok(Some(first))
        );
    }
}
