//! [`KeyringKey`]: the key of the token store, in the keyring of the operating system.

use std::{
    fmt,
    fs::TryLockError,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::time::Instant;

use super::store_key::StoreKey;
use pegboard_base::sync::Mutex;
use pegboard_base::{
    keyring::{Keyring, KeyringEntry, KeyringError},
    private_file,
    secret::Secret,
};

/// Where the key is in the keyring.
const ENTRY: KeyringEntry<'static> = KeyringEntry {
    service: "pegboard",
    user: "token-store",
};
/// For how long a keyring that failed is not asked again.
const RETRY: Duration = Duration::from_secs(30);
/// How long another process may take to create the key.
const CREATE_TIMEOUT: Duration = Duration::from_secs(15);

/// The key in a keyring. It is created with the first file that is written.
pub struct KeyringKey {
    keyring: Option<Keyring>,
    /// The folder of the store, for a lock.
    folder: PathBuf,
    known: Mutex<Option<KeyringAnswer>>,
}

/// What the keyring answered.
enum KeyringAnswer {
    Key([u8; 32]),
    /// There is no key to be had here now.
    Nothing(Instant),
    Failed(Instant, String),
}

impl KeyringKey {
    /// The key in the keyring of this machine that lasts, if it has one.
    pub fn for_system(folder: &Path) -> Self {
        Self::new(Keyring::persistent(), folder)
    }

    fn new(keyring: Option<Keyring>, folder: &Path) -> Self {
        Self {
            keyring,
            folder: folder.to_owned(),
            known: Mutex::default(),
        }
    }

    /// Asks the keyring. `is_known` says that it had no key before, which is not told again.
    fn ask(&self, keyring: &Keyring, is_known: bool) -> KeyringAnswer {
        let failed =
            |error: KeyringError| KeyringAnswer::Failed(Instant::now(), format!("{error}; {}", error.hint(ENTRY)));
        let found = match keyring.read(ENTRY) {
            // It answers. If it takes no key now, it is locked, and files must not be left unencrypted for that.
            Err(KeyringError::NoEntry) => match self.create(keyring) {
                Err(error) => return failed(error),
                created => created,
            },
            Err(error @ KeyringError::NoAnswer(_)) => return failed(error),
            Err(error) => Err(error),
            Ok(secret) => match decode(&secret) {
                // Files that can be read again with the right key must not lose it.
                Err(_) if self.has_sealed_files() => {
                    return KeyringAnswer::Failed(Instant::now(), self.describe_lost());
                }
                key => key,
            },
        };
        match found {
            Ok(key) => KeyringAnswer::Key(key),
            // It had a key once, and may have it again: files must not be left unencrypted meanwhile.
            Err(error) if self.has_sealed_files() => failed(error),
            Err(error) => {
                if !is_known {
                    tracing::warn!("the tokens of sign-ins are not encrypted, because {error}");
                }
                KeyringAnswer::Nothing(Instant::now())
            }
        }
    }

    /// What is told of a key that is not in the keyring any more.
    fn describe_lost(&self) -> String {
        format!(
            "the files in {} are encrypted with a key that the keyring does not have any more (`{}/{}`); restore it, or remove these files and sign in again",
            self.folder.display(),
            ENTRY.service,
            ENTRY.user
        )
    }

    /// Whether files of the store are encrypted.
    fn has_sealed_files(&self) -> bool {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files = entries.map(|entry| entry.path());
        files.any(|path| path.extension().is_some_and(|ending| ending == "json") && is_sealed(&path))
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
        match keyring.read(ENTRY) {
            Err(KeyringError::NoEntry) => {}
            found => return decode(&found?),
        }
        if self.has_sealed_files() {
            return Err(failed(self.describe_lost()));
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        keyring.store(ENTRY, &Secret::new(STANDARD.encode(key)))?;
        decode(&keyring.read(ENTRY)?)
    }
}

/// Whether a file begins like one that is encrypted.
fn is_sealed(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = private_file::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && String::from_utf8_lossy(&start).contains("\"sealed\":")
}

fn decode(secret: &Secret) -> Result<[u8; 32], KeyringError> {
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
        let mut known = self.known.lock();
        let is_old = |known: &KeyringAnswer| matches!(known, KeyringAnswer::Nothing(at) | KeyringAnswer::Failed(at, _) if at.elapsed() >= RETRY);
        if known.as_ref().is_none_or(is_old) {
            let is_known = matches!(&*known, Some(KeyringAnswer::Nothing(_)));
            *known = Some(self.ask(keyring, is_known));
        }
        match &*known {
            Some(KeyringAnswer::Key(key)) => Ok(Some(*key)),
            Some(KeyringAnswer::Failed(_, why)) => Err(why.clone()),
            Some(KeyringAnswer::Nothing(_)) | None => Ok(None),
        }
    }

    fn is_there(&self) -> Result<bool, String> {
        let Some(keyring) = &self.keyring else {
            return Ok(false);
        };
        match keyring.read(ENTRY) {
            Ok(secret) => Ok(decode(&secret).is_ok() || self.has_sealed_files()),
            Err(error @ KeyringError::NoAnswer(_)) => Err(format!("{error}; {}", error.hint(ENTRY))),
            Err(_) => Ok(self.has_sealed_files()),
        }
    }

    fn encrypts(&self) -> Result<bool, String> {
        let Some(keyring) = &self.keyring else {
            return Ok(false);
        };
        match keyring.read(ENTRY) {
            Ok(secret) => Ok(decode(&secret).is_ok()),
            Err(KeyringError::NoEntry) if self.has_sealed_files() => Err(self.describe_lost()),
            Err(KeyringError::NoEntry) => Ok(true),
            Err(error) if matches!(error, KeyringError::NoAnswer(_)) || self.has_sealed_files() => {
                Err(format!("{error}; {}", error.hint(ENTRY)))
            }
            Err(_) => Ok(false),
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
        assert_eq!(KeyringKey::new(Some(keyring.clone()), &store).encrypts(), Ok(true));
        assert!(!kept.exists(), "the question creates no key");
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
        assert_eq!(KeyringKey::new(None, folder.path()).encrypts(), Ok(false));
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

    #[test]
    fn a_key_that_files_are_encrypted_with_is_never_replaced() {
        let folder = TempDir::new().unwrap();
        let kept = folder.path().join("kept");
        let script = format!(
            "case $1 in lookup) test -f {0} || exit 1; cat {0};; store) cat > {0};; esac",
            kept.display()
        );
        let keyring = keyring(&folder, &script);
        let tokens = folder.path().join("tokens");
        let sealed = r#"{"version":1,"sealed":"AAAA"}"#;
        private_file::replace(&tokens.join("a.json"), sealed.as_bytes()).unwrap();
        let key = || KeyringKey::new(Some(keyring.clone()), &tokens).key();
        let error = key().unwrap_err();
        assert!(KeyringKey::new(Some(keyring.clone()), &tokens).encrypts().is_err());
        assert!(error.contains("restore it, or remove these files"), "{error}");
        assert!(!kept.exists(), "no other key was stored");
        fs::write(&kept, "bm8ga2V5").unwrap();
        assert!(key().is_err(), "an entry that is no key does not lead to plain files");
        fs::write(&kept, STANDARD.encode([7; 32])).unwrap();
        assert_eq!(key(), Ok(Some([7; 32])));
        fs::remove_file(&kept).unwrap();
        fs::remove_file(tokens.join("a.json")).unwrap();
        assert!(key().unwrap().is_some(), "without such files a new key is made");
    }

    #[tokio::test(start_paused = true)]
    async fn a_keyring_that_fails_for_a_while_is_asked_again_and_leaves_no_file_unencrypted() {
        let folder = TempDir::new().unwrap();
        let broken = folder.path().join("broken");
        fs::write(&broken, "").unwrap();
        let script = format!(
            "test -f {} && {{ echo 'no such service' >&2; exit 1; }}; echo {}",
            broken.display(),
            STANDARD.encode([7; 32])
        );
        let keyring = keyring(&folder, &script);
        let tokens = folder.path().join("tokens");
        let empty = KeyringKey::new(Some(keyring.clone()), &tokens);
        assert_eq!(empty.key(), Ok(None));
        private_file::replace(&tokens.join("a.json"), br#"{"version":1,"sealed":"AAAA"}"#).unwrap();
        let key = KeyringKey::new(Some(keyring), &tokens);
        assert!(key.key().is_err() && key.encrypts().is_err());
        fs::remove_file(&broken).unwrap();
        tokio::time::advance(RETRY).await;
        assert_eq!(key.key(), Ok(Some([7; 32])));
        assert_eq!(
            empty.key(),
            Ok(Some([7; 32])),
            "that there was none is not remembered for ever"
        );
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
