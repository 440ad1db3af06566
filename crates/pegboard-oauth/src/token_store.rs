//! [`TokenStore`]: the tokens of accounts and the registered clients, in files that only the user can read.
//!
//! Each account has a file, named by a hash of its key. Files are replaced atomically, and encrypted if there is a key.

mod changes;
mod listing;
mod set_aside;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Once},
    time::{Duration, SystemTime},
};

use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{Semaphore, watch};

use self::changes::{Changes, Files, files_in};
use super::{
    account::AccountKey,
    sealed,
    store_key::{PlainText, StoreKey},
    store_lock::StoreLock,
    stored::{PinnedIssuer, Registration, StoredAccount},
};
use pegboard_base::sync::Mutex;
use pegboard_base::{hint::Hint, private_file};

/// The largest file that is written or read.
const MAX_BYTES: usize = 1 << 20;
/// How often the folder is looked at for changes by other processes.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// Within this time of a change of the folder there may be another one with the same time.
const RECENT: Duration = Duration::from_secs(1);
/// After this time a draft of a file is that of a process which was killed.
const DRAFT_AGE: Duration = Duration::from_secs(3600);
/// The most accounts that are kept in memory because their files cannot be written.
const MAX_UNSAVED: usize = 10_000;

/// The tokens of all accounts in a folder. Clones share it.
#[derive(Debug, Clone)]
pub struct TokenStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    storage: Storage,
    key: Arc<dyn StoreKey>,
    changes: Changes,
    /// What could not be written, until it can be.
    unsaved: Mutex<HashMap<String, Unsaved>>,
    /// Done before the first file is written.
    tidied: Once,
    #[cfg(test)]
    is_broken: std::sync::atomic::AtomicBool,
    /// The locks that tasks of this process hold or wait for.
    locks: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[derive(Debug)]
enum Storage {
    Folder(PathBuf),
    Memory {
        files: Mutex<HashMap<String, Vec<u8>>>,
        /// Beyond so many, all are forgotten.
        most: usize,
    },
}

/// What happens to the content of a file that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    /// It is used in this process until it can be written.
    Kept,
    Dropped,
}

/// The content of a file that could not be written.
#[derive(Debug)]
struct Unsaved {
    content: Vec<u8>,
    /// What the file had instead. A file that has changed since is newer.
    instead_of: Option<Vec<u8>>,
}

impl TokenStore {
    /// A store in `folder`, which is created with the first file.
    pub fn open(folder: PathBuf, key: Arc<dyn StoreKey>) -> Self {
        Self::new(Storage::Folder(folder), key)
    }

    /// A store that ends with the program.
    pub fn in_memory() -> Self {
        Self::in_memory_of(usize::MAX)
    }

    /// A store of at most so many accounts that ends with the program.
    pub(super) fn in_memory_of(most: usize) -> Self {
        let files = Mutex::default();
        Self::new(Storage::Memory { files, most }, Arc::new(PlainText))
    }

    /// Removes an account of a store in memory.
    pub(super) fn forget_in_memory(&self, key: &AccountKey) {
        if let Storage::Memory { files, .. } = &self.inner.storage {
            files.lock().remove(key.as_str());
        }
    }

    fn new(place: Storage, key: Arc<dyn StoreKey>) -> Self {
        let inner = Inner {
            storage: place,
            key,
            changes: Changes::default(),
            unsaved: Mutex::default(),
            tidied: Once::new(),
            #[cfg(test)]
            is_broken: false.into(),
            locks: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether the files are encrypted, or why that is not known now. `None` if there are no files.
    pub async fn encrypts(&self) -> Option<Result<bool, String>> {
        let Storage::Folder(_) = &self.inner.storage else {
            return None;
        };
        let inner = self.inner.clone();
        let encrypts = tokio::task::spawn_blocking(move || inner.key.encrypts()).await;
        Some(encrypts.unwrap_or_else(|_| Err("the program is ending".to_owned())))
    }

    /// Changes whenever an account changes, in this process or, while [`watch_folder`](Self::watch_folder) runs, in another one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// The number of the last change.
    pub fn last_change(&self) -> u64 {
        self.inner.changes.last()
    }

    /// Whether an account may have changed after the change with this number. Nothing is read for that.
    pub(super) fn has_changed_since(&self, key: &AccountKey, number: u64) -> bool {
        self.inner.changes.has_changed_since(key.as_str(), number)
    }

    /// Looks for changes by other processes now.
    pub async fn look(&self) {
        if let Storage::Folder(folder) = &self.inner.storage {
            let files = files(folder).await;
            self.inner.changes.look(files);
        }
    }

    /// Notices changes by other processes until it is dropped. The owner of the store runs it as a task.
    pub async fn watch_folder(&self) {
        let Storage::Folder(folder) = &self.inner.storage else {
            return std::future::pending().await;
        };
        let mut seen = modification_time(folder).await;
        self.inner.changes.begin(files(folder).await);
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let now = modification_time(folder).await;
            // The clock of files is coarse: two changes may have the same time.
            let is_recent = now.is_some_and(|now| now.elapsed().is_ok_and(|age| age < RECENT));
            if now != seen || is_recent {
                seen = now;
                self.look().await;
            }
        }
    }

    pub(super) async fn account(&self, key: &AccountKey) -> Result<Option<StoredAccount>, StoreError> {
        self.read_undamaged(key).await
    }

    pub(super) async fn put_account(&self, key: &AccountKey, account: &StoredAccount) -> Result<(), StoreError> {
        self.write(key, account).await?;
        self.inner.changes.note(key.as_str());
        Ok(())
    }

    /// Stores an account before it is changed elsewhere. If its file cannot be written, nothing changes.
    pub(super) async fn mark_account(&self, key: &AccountKey, account: &StoredAccount) -> Result<(), StoreError> {
        self.write_or(key, account, Unwritten::Dropped).await?;
        self.inner.changes.note(key.as_str());
        Ok(())
    }

    /// Stores what was just obtained. An account whose file cannot be written is used in this process until it can.
    pub(super) async fn keep_account(&self, key: &AccountKey, account: &StoredAccount) {
        if let Err(error) = self.write(key, account).await {
            tracing::warn!(server = %account.server, %error, "new tokens are only in memory");
        }
        self.inner.changes.note(key.as_str());
    }

    /// The issuer that gets the secret of a client.
    pub(super) async fn pinned_issuer(&self, key: &AccountKey) -> Result<Option<PinnedIssuer>, StoreError> {
        self.read_undamaged(key).await
    }

    pub(super) async fn pin_issuer(&self, key: &AccountKey, issuer: &PinnedIssuer) -> Result<(), StoreError> {
        self.write(key, issuer).await
    }

    pub(super) async fn registration(
        &self,
        issuer: &str,
        redirect_uri: &str,
    ) -> Result<Option<Registration>, StoreError> {
        let key = registration_key(issuer, redirect_uri);
        let found: Option<Registration> = self.read_undamaged(&key).await.unwrap_or_else(|error| {
            // Another client can be registered in its place.
            tracing::warn!(%error, "a registered client is not used");
            None
        });
        let is_ours = |found: &Registration| found.issuer == issuer && found.redirect_uri == redirect_uri;
        Ok(found.filter(is_ours).filter(Registration::is_usable))
    }

    pub(super) async fn put_registration(&self, registration: &Registration) -> Result<(), StoreError> {
        let key = registration_key(&registration.issuer, &registration.redirect_uri);
        self.write(&key, registration).await
    }

    pub(super) async fn remove_registration(&self, issuer: &str, redirect_uri: &str) -> Result<(), StoreError> {
        self.delete(&registration_key(issuer, redirect_uri)).await.map(drop)
    }

    /// Removes an account. Returns whether there was one.
    pub(super) async fn remove_account(&self, key: &AccountKey) -> Result<bool, StoreError> {
        let existed = self.delete(key).await?;
        self.remove_damaged_file(key).await;
        if existed {
            self.inner.changes.note(key.as_str());
        }
        Ok(existed)
    }

    /// Waits until no other task or process changes the account.
    pub(super) async fn lock(&self, key: &AccountKey) -> Result<StoreLock, StoreError> {
        let tasks = {
            let mut locks = self.inner.locks.lock();
            locks.retain(|_, tasks| Arc::strong_count(tasks) > 1);
            let tasks = locks.entry(key.as_str().to_owned());
            tasks.or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        let file = match &self.inner.storage {
            Storage::Folder(folder) => Some(folder.join(format!("{}.lock", key.as_str()))),
            Storage::Memory { .. } => None,
        };
        let failed = |error: io::Error| StoreError::Lock(error.to_string());
        StoreLock::acquire(tasks, file).await.map_err(failed)
    }

    async fn read<T: DeserializeOwned + Send + 'static>(&self, key: &AccountKey) -> Result<Option<T>, StoreError> {
        let inner = self.inner.clone();
        let key = key.clone();
        run_blocking(move || {
            let Some(content) = inner.load(&key)? else {
                return Ok(None);
            };
            let damaged = |why: String| StoreError::Damaged {
                file: inner.display_file(&key),
                why,
            };
            let opened = sealed::open(&content, key.as_str(), &*inner.key);
            let text = opened.map_err(|problem| match problem {
                sealed::Problem::Damaged(why) => damaged(why),
                sealed::Problem::NotNow(why) => inner.read_error(&key, why),
            })?;
            serde_json::from_slice(&text)
                .map(Some)
                // Without the error's own text, which may repeat a part of the content.
                .map_err(|error| {
                    damaged(format!(
                        "it does not fit at line {}, column {}",
                        error.line(),
                        error.column()
                    ))
                })
        })
        .await
    }

    async fn write<T: Serialize>(&self, key: &AccountKey, value: &T) -> Result<(), StoreError> {
        self.write_or(key, value, Unwritten::Kept).await
    }

    async fn write_or<T: Serialize>(&self, key: &AccountKey, value: &T, or: Unwritten) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&pegboard_base::secret::WithSecrets::new(value))
            .map_err(|error| self.inner.write_error(key, error.to_string()))?;
        let inner = self.inner.clone();
        let key = key.clone();
        run_blocking(move || {
            let failed = |why: String| inner.write_error(&key, why);
            let content = sealed::seal(text, key.as_str(), &*inner.key).map_err(failed)?;
            if content.len() > MAX_BYTES {
                return Err(failed("it is too long".to_owned()));
            }
            inner.save(&key, content, or)
        })
        .await
    }

    async fn delete(&self, key: &AccountKey) -> Result<bool, StoreError> {
        let inner = self.inner.clone();
        let key = key.clone();
        run_blocking(move || {
            let was_unsaved = inner.unsaved.lock().remove(key.as_str()).is_some();
            match &inner.storage {
                Storage::Memory { files, .. } => Ok(files.lock().remove(key.as_str()).is_some()),
                Storage::Folder(folder) => match std::fs::remove_file(file(folder, &key)) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(was_unsaved),
                    Err(error) => Err(inner.write_error(&key, error.to_string())),
                },
            }
        })
        .await
    }

    /// Makes all writes fail, as on a full disk.
    #[cfg(test)]
    pub(super) fn break_writes(&self, is_broken: bool) {
        self.inner
            .is_broken
            .store(is_broken, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Inner {
    fn load(&self, key: &AccountKey) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.storage {
            Storage::Memory { files, .. } => Ok(files.lock().get(key.as_str()).cloned()),
            Storage::Folder(folder) => {
                let found = match private_file::read(&file(folder, key), MAX_BYTES) {
                    Ok(content) => Ok(Some(content)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(self.read_error(key, error.to_string())),
                };
                let mut unsaved = self.unsaved.lock();
                match (unsaved.get(key.as_str()), &found) {
                    (None, _) => found,
                    (Some(unsaved), Ok(found)) if unsaved.instead_of == *found => Ok(Some(unsaved.content.clone())),
                    (Some(unsaved), Err(_)) => Ok(Some(unsaved.content.clone())),
                    (Some(_), Ok(_)) => {
                        unsaved.remove(key.as_str());
                        found
                    }
                }
            }
        }
    }

    fn save(&self, key: &AccountKey, content: Vec<u8>, or: Unwritten) -> Result<(), StoreError> {
        match &self.storage {
            Storage::Memory { files, most } => {
                let mut files = files.lock();
                if files.len() >= *most && !files.contains_key(key.as_str()) {
                    files.clear();
                }
                files.insert(key.as_str().to_owned(), content);
                Ok(())
            }
            Storage::Folder(folder) => {
                self.tidied
                    .call_once(|| private_file::remove_old_drafts(folder, DRAFT_AGE));
                let path = file(folder, key);
                match self.replace(&path, &content) {
                    Ok(()) => {
                        self.unsaved.lock().remove(key.as_str());
                        Ok(())
                    }
                    Err(error) => {
                        let instead_of = private_file::read(&path, MAX_BYTES).ok();
                        let mut unsaved = self.unsaved.lock();
                        let has_place = unsaved.len() < MAX_UNSAVED || unsaved.contains_key(key.as_str());
                        if or == Unwritten::Kept && has_place {
                            unsaved.insert(key.as_str().to_owned(), Unsaved { content, instead_of });
                        }
                        Err(self.write_error(key, error.to_string()))
                    }
                }
            }
        }
    }

    fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        if self.is_broken.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        private_file::replace_durably(path, content)
    }

    fn display_file(&self, key: &AccountKey) -> String {
        match &self.storage {
            Storage::Memory { .. } => "memory".to_owned(),
            Storage::Folder(folder) => file(folder, key).display().to_string(),
        }
    }

    fn read_error(&self, key: &AccountKey, why: String) -> StoreError {
        StoreError::Read {
            file: self.display_file(key),
            why,
        }
    }

    fn write_error(&self, key: &AccountKey, why: String) -> StoreError {
        StoreError::Write {
            file: self.display_file(key),
            why,
        }
    }
}

fn file(folder: &Path, key: &AccountKey) -> PathBuf {
    folder.join(format!("{}.json", key.as_str()))
}

async fn files(folder: &Path) -> Option<Files> {
    let folder = folder.to_owned();
    run_blocking(move || Ok(files_in(&folder))).await.ok().flatten()
}

fn registration_key(issuer: &str, redirect_uri: &str) -> AccountKey {
    AccountKey::new(&["client", issuer, redirect_uri])
}

/// A file that is replaced changes the time of its folder.
async fn modification_time(folder: &Path) -> Option<SystemTime> {
    let folder = folder.to_owned();
    let time = move || Ok(std::fs::metadata(folder).and_then(|meta| meta.modified()).ok());
    run_blocking(time).await.ok().flatten()
}

/// Runs file operations on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(StoreError::Lock("the program is ending".to_owned())),
    }
}

/// Why the store cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the tokens in {file} cannot be read: {why}")]
    Read { file: String, why: String },
    #[error("the tokens in {file} are damaged: {why}")]
    Damaged { file: String, why: String },
    #[error("the tokens cannot be written to {file}: {why}")]
    Write { file: String, why: String },
    #[error("the store of tokens cannot be locked: {0}")]
    Lock(String),
}

impl StoreError {
    /// Whether the store may work later: a full disk, a lock that is held, a file that is not readable now.
    pub(super) fn is_temporary(&self) -> bool {
        !matches!(self, Self::Damaged { .. })
    }
}

impl Hint for StoreError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { file, .. } | Self::Damaged { file, .. } => {
                Some(format!("sign out and sign in again, or remove the file {file}"))
            }
            Self::Write { .. } => Some("check that the folder is writable and belongs to you alone".to_owned()),
            Self::Lock(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
