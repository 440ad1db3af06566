//! [`SecretStore`]: the secrets that the user keeps for configs, `${secret:NAME}`.
//!
//! The values are in the keyring of the system, or encrypted in the store's file if there is a key in a file: one that the user names, or on a
//! machine without a keyring one beside the store, which is as safe as its permissions. The file has the names of all.

use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pegboard_base::{
    keyring::{Keyring, KeyringEntry, KeyringError, find_in},
    private_file,
    secret::{Secret, USER_SECRETS, is_secret_name},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{sealed, store_key::FileKey};

/// The largest file that is written or read: hundreds of the longest values.
const MAX_BYTES: usize = 8 << 20;
/// The longest value. The keyring of the Linux kernel takes no longer ones.
const MAX_VALUE: usize = 32_767;
/// The most secrets.
const MAX_SECRETS: usize = 1000;
/// How long another process may change the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const VERSION: u32 = 1;

/// The user's secrets.
#[derive(Debug, Clone)]
pub struct SecretStore {
    path: PathBuf,
    keyrings: Vec<Keyring>,
    key: Option<FileKey>,
    /// The key of a machine without a keyring. There is none before [`Self::create_key`].
    own_key: FileKey,
}

/// Where the value of a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the keyring of the system.
    Keyring,
    /// In the file of the store, encrypted.
    File,
}

impl SecretPlace {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyring => "keyring",
            Self::File => "file",
        }
    }
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// Its name.
    pub name: String,
    /// Where its value is.
    pub place: SecretPlace,
    /// When it was stored last.
    pub set_at: Timestamp,
}

/// Why a secret cannot be stored, read or removed. No message has a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretStoreError {
    /// The name is not that of a secret.
    #[error("`{0}` cannot be the name of a secret: it has letters, digits, `_`, `-` and `.`, at most 64")]
    Name(String),
    /// The value cannot be stored.
    #[error("the value {0}")]
    Value(&'static str),
    /// There is neither a keyring that outlives a reboot nor a key in a file.
    #[error("there is no keyring on this machine that outlives a restart of it")]
    NoPlace,
    /// The keyring failed.
    #[error("{error}")]
    Keyring {
        /// The error.
        error: KeyringError,
        /// What a person can do.
        hint: String,
    },
    /// The store's file cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The value is encrypted, and cannot be decrypted now.
    #[error("{0}")]
    Sealed(String),
}

impl SecretStoreError {
    /// Whether the keyring did not answer in time, as it may not for the next secret.
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::Keyring {
                error: KeyringError::NoAnswer(_),
                ..
            }
        )
    }
}

impl pegboard_base::hint::Hint for SecretStoreError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoPlace => Some(
                "`pegboard secret set NAME --in-file` keeps secrets in a file that only you can read; or put the value in a variable"
                    .to_owned(),
            ),
            Self::Keyring { hint, .. } => Some(hint.clone()),
            Self::Name(_) | Self::Value(_) | Self::File { .. } | Self::Sealed(_) => None,
        }
    }
}

/// The store's file.
#[derive(Default, Serialize, Deserialize)]
struct StoredSecrets {
    version: u32,
    secrets: BTreeMap<String, Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    set_at: Timestamp,
    /// The encrypted value; the others are in the keyring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<Box<RawValue>>,
}

impl SecretStore {
    /// A store with this file, which need not exist yet. With a key in a file, values are encrypted with it; else they go to the first of the
    /// keyrings that outlives a reboot; else they are encrypted with the key of [`Self::create_key`]. They are read from all of them.
    pub fn new(path: PathBuf, keyrings: Vec<Keyring>, key_file: Option<PathBuf>) -> Self {
        Self {
            own_key: FileKey(path.with_extension("key")),
            path,
            keyrings,
            key: key_file.map(FileKey),
        }
    }

    /// Creates the key with which secrets are kept in the store's file on a machine without a keyring, unless there is one.
    pub fn create_key(&self) -> Result<(), SecretStoreError> {
        let path = &self.own_key.0;
        let _lock = self.lock()?;
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| self.failed(&error))?;
        let text = STANDARD.encode(key) + "\n";
        private_file::replace_durably(path, text.as_bytes()).map_err(|error| SecretStoreError::File {
            path: path.clone(),
            reason: error.to_string(),
        })
    }

    /// The key that new secrets are encrypted with; `None` if they go to a keyring.
    fn sealing_key(&self) -> Option<&FileKey> {
        let has_own = || self.lasting().is_err() && self.own_key.0.symlink_metadata().is_ok();
        self.key.as_ref().or_else(|| has_own().then_some(&self.own_key))
    }

    /// Fails if a text cannot be the name of a secret.
    pub fn check_name(name: &str) -> Result<(), SecretStoreError> {
        match is_secret_name(name) {
            true => Ok(()),
            false => Err(SecretStoreError::Name(name.chars().take(80).collect())),
        }
    }

    /// The file that changes with every secret.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a new secret would be stored.
    pub fn place(&self) -> Result<SecretPlace, SecretStoreError> {
        match self.sealing_key() {
            Some(_) => Ok(SecretPlace::File),
            None => self.lasting().map(|_| SecretPlace::Keyring),
        }
    }

    fn lasting(&self) -> Result<&Keyring, SecretStoreError> {
        let mut keyrings = self.keyrings.iter();
        keyrings
            .find(|keyring| keyring.is_lasting())
            .ok_or(SecretStoreError::NoPlace)
    }

    /// The secret of this name; `None` if there is none.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, SecretStoreError> {
        Self::check_name(name)?;
        let stored = self.read()?;
        if let Some(Entry { sealed: Some(text), .. }) = stored.secrets.get(name) {
            return self.open(name, text).map(Some);
        }
        let entry = entry(name);
        match find_in(&self.keyrings, entry) {
            Ok(secret) => Ok(Some(secret)),
            Err(KeyringError::NoEntry | KeyringError::NoKeyring) => Ok(None),
            Err(error) => Err(keyring_error(error, entry)),
        }
    }

    fn open(&self, name: &str, text: &RawValue) -> Result<Secret, SecretStoreError> {
        let has_own = self.own_key.0.symlink_metadata().is_ok();
        let keys = self.key.iter().chain(has_own.then_some(&self.own_key));
        let mut opened = Err(match has_own {
            true => "it is encrypted with another key".to_owned(),
            false => "it is encrypted with the key in the file that `PEGBOARD_TOKEN_KEY_FILE` named, and that is not set here: \
                      `export PEGBOARD_TOKEN_KEY_FILE=FILE`, also for hosts that start `pegboard mcp`"
                .to_owned(),
        });
        for key in keys {
            opened = sealed::open(text.get().as_bytes(), &bound_name(name), key).map_err(|problem| problem.why());
            if opened.is_ok() {
                break;
            }
        }
        let bytes = opened.map_err(SecretStoreError::Sealed)?;
        let text: String = serde_json::from_slice(&bytes)
            .map_err(|_| SecretStoreError::Sealed("what was encrypted is not text".to_owned()))?;
        Ok(Secret::new(text))
    }

    /// Stores a secret, in place of the one of this name.
    pub fn set(&self, name: &str, value: &Secret) -> Result<SecretPlace, SecretStoreError> {
        Self::check_name(name)?;
        check_value(value)?;
        let place = self.place()?;
        let sealed = match self.sealing_key() {
            Some(key) => {
                let text = serde_json::to_vec(value.expose()).map_err(|error| self.failed(&error))?;
                let sealed = sealed::seal(text, &bound_name(name), key).map_err(SecretStoreError::Sealed)?;
                let text = String::from_utf8(sealed).map_err(|error| self.failed(&error))?;
                Some(RawValue::from_string(text).map_err(|error| self.failed(&error))?)
            }
            None => {
                let (keyring, entry) = (self.lasting()?, entry(name));
                let kept = keyring.store(entry, value).and_then(|()| keyring.read(entry));
                if kept.map_err(|error| keyring_error(error, entry))? != *value {
                    return Err(SecretStoreError::Value(
                        "is not the same when it is read from the keyring again",
                    ));
                }
                None
            }
        };
        self.change(|secrets| {
            if secrets.len() >= MAX_SECRETS && !secrets.contains_key(name) {
                return Err(self.failed(&"it has 1000 secrets already"));
            }
            let set_at = Timestamp::now();
            secrets.insert(name.to_owned(), Entry { set_at, sealed });
            Ok(())
        })?;
        Ok(place)
    }

    /// Removes a secret. Returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, SecretStoreError> {
        Self::check_name(name)?;
        let mut was_there = self.read()?.secrets.contains_key(name);
        let entry = entry(name);
        for keyring in &self.keyrings {
            match keyring.remove(entry) {
                Ok(()) => was_there = true,
                Err(KeyringError::NoEntry | KeyringError::NoKeyring) => {}
                Err(error) => return Err(keyring_error(error, entry)),
            }
        }
        if was_there {
            self.change(|secrets| {
                secrets.remove(name);
                Ok(())
            })?;
        }
        Ok(was_there)
    }

    /// The secrets that were stored from here, without their values. No keyring is asked.
    pub fn list(&self) -> Result<Vec<StoredSecret>, SecretStoreError> {
        let secrets = self.read()?.secrets.into_iter();
        let stored = secrets.map(|(name, entry)| StoredSecret {
            name,
            place: match entry.sealed {
                Some(_) => SecretPlace::File,
                None => SecretPlace::Keyring,
            },
            set_at: entry.set_at,
        });
        Ok(stored.collect())
    }

    /// Whether a secret of this name was stored from here. No keyring is asked.
    pub fn has(&self, name: &str) -> bool {
        self.read().is_ok_and(|stored| stored.secrets.contains_key(name))
    }

    fn read(&self) -> Result<StoredSecrets, SecretStoreError> {
        let content = match private_file::read(&self.path, MAX_BYTES) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredSecrets::default()),
            Err(error) => return Err(self.failed(&error)),
        };
        let stored: StoredSecrets = serde_json::from_slice(&content).map_err(|error| self.failed(&error))?;
        match stored.version {
            VERSION => Ok(stored),
            _ => Err(self.failed(&"a newer version of this program has written it")),
        }
    }

    /// Changes the file, which no other process changes meanwhile.
    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Entry>) -> Result<(), SecretStoreError>,
    ) -> Result<(), SecretStoreError> {
        let _lock = self.lock()?;
        let mut stored = self.read()?;
        change(&mut stored.secrets)?;
        stored.version = VERSION;
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| self.failed(&error))?;
        if text.len() > MAX_BYTES {
            return Err(self.failed(&"it would become larger than 8 MiB"));
        }
        private_file::replace_durably(&self.path, &text).map_err(|error| self.failed(&error))
    }

    /// Keeps other processes from changing the files until it is dropped.
    fn lock(&self) -> Result<File, SecretStoreError> {
        let lock = private_file::edit(&self.path.with_extension("lock")).map_err(|error| self.failed(&error))?;
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn failed(&self, reason: &dyn ToString) -> SecretStoreError {
        SecretStoreError::File {
            path: self.path.clone(),
            reason: reason.to_string(),
        }
    }
}

fn entry(name: &str) -> KeyringEntry<'_> {
    KeyringEntry {
        service: USER_SECRETS,
        user: name,
    }
}

/// The name that an encrypted value is bound to, so that values cannot be swapped in the file.
fn bound_name(name: &str) -> String {
    format!("secret:{name}")
}

fn keyring_error(error: KeyringError, entry: KeyringEntry<'_>) -> SecretStoreError {
    let hint = error.hint(entry);
    SecretStoreError::Keyring { error, hint }
}

fn check_value(value: &Secret) -> Result<(), SecretStoreError> {
    match value.expose() {
        "" => Err(SecretStoreError::Value("is empty")),
        text if text.len() > MAX_VALUE => Err(SecretStoreError::Value("is longer than 32,767 bytes")),
        text if text.contains('\0') => Err(SecretStoreError::Value("has a zero byte, which no variable can hold")),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use tempfile::TempDir;

    use super::*;

    /// A keyring whose program keeps every secret in a file of the folder.
    fn keyring(folder: &TempDir) -> Keyring {
        let path = folder.path().join("secret-tool");
        let script = "#!/bin/sh\nverb=$1; shift; case $verb in store) shift;; esac\nfile=$(dirname $0)/kept-$4\n\
                      case $verb in lookup) test -f $file || exit 1; cat $file;; store) cat > $file;; clear) rm -f $file;; esac\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Keyring::SecretService(path)
    }

    fn names(store: &SecretStore) -> Vec<(String, SecretPlace)> {
        let listed = store.list().unwrap().into_iter();
        listed.map(|secret| (secret.name, secret.place)).collect()
    }

    #[test]
    fn a_secret_is_stored_in_the_keyring_and_only_its_name_in_the_file() {
        let folder = TempDir::new().unwrap();
        let store = SecretStore::new(folder.path().join("s/secrets.json"), vec![keyring(&folder)], None);
        assert_eq!(store.get("TOKEN").unwrap(), None);
        assert_eq!(store.set("TOKEN", &"s3cr3t".into()).unwrap(), SecretPlace::Keyring);
        assert_eq!(store.set("TOKEN", &"n3w-value".into()).unwrap(), SecretPlace::Keyring);
        assert_eq!(store.get("TOKEN").unwrap(), Some("n3w-value".into()));
        assert_eq!(names(&store), [("TOKEN".to_owned(), SecretPlace::Keyring)]);
        assert!(!fs::read_to_string(store.path()).unwrap().contains("n3w-value"));
        assert!(store.remove("TOKEN").unwrap() && !store.remove("TOKEN").unwrap());
        assert_eq!((store.get("TOKEN").unwrap(), names(&store).len()), (None, 0));
    }

    #[test]
    fn with_a_key_in_a_file_a_secret_is_encrypted_in_the_store() {
        let folder = TempDir::new().unwrap();
        let key = folder.path().join("key");
        fs::write(&key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
        let path = folder.path().join("secrets.json");
        let store = SecretStore::new(path.clone(), Vec::new(), Some(key));
        let value = Secret::new("two lines\nof a \"s3cr3t\"");
        assert_eq!(store.set("A", &value).unwrap(), SecretPlace::File);
        store.set("B", &"other".into()).unwrap();
        assert_eq!(store.get("A").unwrap().unwrap(), value);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
        // A value that is moved to another name is not believed.
        fs::write(&path, text.replace("\"A\"", "\"X\"").replace("\"B\"", "\"A\"")).unwrap();
        assert!(store.get("A").unwrap_err().to_string().contains("cannot be decrypted"));
        let without_key = SecretStore::new(path, Vec::new(), None);
        let error = without_key.get("A").unwrap_err().to_string();
        assert!(error.contains("PEGBOARD_TOKEN_KEY_FILE"), "{error}");
    }

    #[test]
    fn without_a_place_that_lasts_nothing_is_stored() {
        use pegboard_base::hint::Hint as _;

        let folder = TempDir::new().unwrap();
        let store = SecretStore::new(folder.path().join("secrets.json"), Vec::new(), None);
        let error = store.set("A", &"x".into()).unwrap_err();
        assert!(matches!(error, SecretStoreError::NoPlace), "{error}");
        assert!(error.hint().unwrap().contains("--in-file"));
        assert!(!store.path().exists());
    }

    #[test]
    fn without_a_keyring_a_key_beside_the_store_is_a_place_for_secrets() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("secrets.json");
        let store = SecretStore::new(path.clone(), Vec::new(), None);
        store.create_key().unwrap();
        let key = fs::read(folder.path().join("secrets.key")).unwrap();
        assert_eq!(store.set("A", &"s3cr3t".into()).unwrap(), SecretPlace::File);
        // A second start makes no other key, and needs no variable.
        store.create_key().unwrap();
        assert_eq!(fs::read(folder.path().join("secrets.key")).unwrap(), key);
        let other = SecretStore::new(path.clone(), Vec::new(), None);
        assert_eq!(other.get("A").unwrap().unwrap(), "s3cr3t".into());
        assert!(!fs::read_to_string(&path).unwrap().contains("s3cr3t"));
        // A key that the user names later does not hide what was stored before.
        let named = folder.path().join("named");
        fs::write(&named, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
        let with_named = SecretStore::new(path.clone(), Vec::new(), Some(named));
        assert_eq!(with_named.get("A").unwrap().unwrap(), "s3cr3t".into());
        // A keyring that lasts comes first, and what is in the file stays readable.
        let with_keyring = SecretStore::new(path, vec![keyring(&folder)], None);
        assert_eq!(with_keyring.place().unwrap(), SecretPlace::Keyring);
        assert_eq!(with_keyring.get("A").unwrap().unwrap(), "s3cr3t".into());
    }

    #[test]
    fn names_and_values_are_checked_before_anything_is_asked() {
        let folder = TempDir::new().unwrap();
        let store = SecretStore::new(folder.path().join("secrets.json"), vec![keyring(&folder)], None);
        for name in ["", "../x", "-o"] {
            assert!(
                matches!(store.set(name, &"x".into()), Err(SecretStoreError::Name(_))),
                "{name}"
            );
            assert!(store.get(name).is_err() && store.remove(name).is_err());
        }
        for value in ["", "a\0b", &"x".repeat(MAX_VALUE + 1)] {
            assert!(matches!(store.set("A", &value.into()), Err(SecretStoreError::Value(_))));
        }
        fs::write(store.path(), "{\"version\":9,\"secrets\":{}}").unwrap();
        assert!(store.list().unwrap_err().to_string().contains("newer version"));
    }
}
