//! [`Folder`]: where the files of a store are, and the locks around their changes.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use pegboard_base::private_file;
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::record::{self, Record, State};
use crate::{
    error::{Refusal, StoreError},
    key::{Key, hex},
    limits::{Limits, MAX_LOG_BYTES, MAX_LOG_ENTRIES},
    value::{Listing, Value},
};

/// What the file `format` says.
const FORMAT: &str = "pegboard-store 1";

/// The number of lock files. Keys that share one wait for each other.
const LOCKS: u8 = 64;

/// How often a lock of another process is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(1);

/// The largest file that is read to learn the format.
const MAX_FORMAT: usize = 256;

/// What an entry is. Each sort has its own folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Value,
    Log,
    Bucket,
    Lease,
}

impl Sort {
    pub(super) const ALL: [Self; 4] = [Self::Value, Self::Log, Self::Bucket, Self::Lease];

    fn folder(self) -> &'static str {
        match self {
            Self::Value => "values",
            Self::Log => "logs",
            Self::Bucket => "buckets",
            Self::Lease => "leases",
        }
    }
}

/// The folder of a store.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    address: Arc<str>,
    limits: Limits,
}

/// The right to change the entries of some keys.
pub(super) struct Locked<'a> {
    folder: &'a Folder,
    _locks: Vec<File>,
}

impl Folder {
    pub(super) fn new(path: &Path, limits: Limits) -> Self {
        Self {
            path: path.to_owned(),
            address: format!("file:{}", path.display()).into(),
            limits,
        }
    }

    /// Creates the folder if needed, and checks that it is private and in our format.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path).map_err(|error| self.unreachable(error))?;
        #[cfg(unix)]
        {
            let meta = fs::metadata(&self.path).map_err(|error| self.unreachable(error))?;
            // A sticky folder, such as /tmp, is one of others too.
            let is_sticky = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o1000 != 0;
            let problem = private_file::foreign_control(&meta);
            if let Some(problem) = problem.or(is_sticky.then_some("it is shared with other users")) {
                return Err(self.refused(Refusal::NotPrivate(problem)));
            }
        }
        self.check_format()
    }

    fn check_format(&self) -> Result<(), StoreError> {
        let path = self.path.join("format");
        match private_file::read(&path, MAX_FORMAT) {
            Ok(found) if found.trim_ascii() == FORMAT.as_bytes() => Ok(()),
            Ok(found) => {
                let found = String::from_utf8_lossy(found.trim_ascii()).chars().take(40).collect();
                Err(self.refused(Refusal::OtherFormat { found, known: FORMAT }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.refuse_foreign_files()?;
                private_file::replace(&path, format!("{FORMAT}\n").as_bytes()).map_err(|error| self.unreachable(error))
            }
            Err(error) => Err(self.unreachable(error)),
        }
    }

    fn refuse_foreign_files(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.path)
            .map_err(|error| self.unreachable(error))?
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            // Another process may write the format at this moment, and go on.
            let is_ours =
                name.starts_with("format") || name == "locks" || Sort::ALL.iter().any(|sort| sort.folder() == name);
            if !is_ours {
                return Err(self.refused(Refusal::ForeignData(name)));
            }
        }
        Ok(())
    }

    /// Waits until no other task or process holds a lock on these keys.
    pub(super) fn lock(&self, keys: &[&Key], deadline: Instant) -> Result<Locked<'_>, StoreError> {
        let mut numbers: Vec<u8> = keys.iter().map(|key| lock_number(key.as_str())).collect();
        // All take locks in the same order, so that they cannot wait for each other.
        numbers.sort_unstable();
        numbers.dedup();
        let mut locks = Vec::with_capacity(numbers.len());
        for number in numbers {
            let file = self.lock_file(number).map_err(|error| self.unreachable(error))?;
            loop {
                match file.try_lock() {
                    Ok(()) => break,
                    Err(TryLockError::Error(error)) => return Err(self.unreachable(error)),
                    Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(self.timed_out()),
                    Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
                }
            }
            locks.push(file);
        }
        Ok(Locked {
            folder: self,
            _locks: locks,
        })
    }

    /// Takes the lock of a file of the store if it is free.
    pub(super) fn try_lock_file(&self, file_name: &str) -> Option<File> {
        let name_hash = file_name.split_once('-')?.1;
        let first = u8::from_str_radix(name_hash.get(..2)?, 16).ok()?;
        let file = self.lock_file(first % LOCKS).ok()?;
        file.try_lock().ok().map(|()| file)
    }

    fn lock_file(&self, number: u8) -> io::Result<File> {
        private_file::edit(&self.path.join("locks").join(format!("{number:02}")))
    }

    /// The content of an entry, unless it has expired.
    pub(super) fn read(&self, sort: Sort, key: &Key, now_micros: u64) -> Result<Option<Bytes>, StoreError> {
        let Some(record) = self.read_record(&self.path_of(sort, key), sort, key.as_str())? else {
            return Ok(None);
        };
        if record.name != key.as_str() {
            return Err(self.damaged(key.as_str(), "its file is that of another name"));
        }
        Ok((record.expires_micros > now_micros).then_some(record.content))
    }

    pub(super) fn read_state<T: State>(&self, sort: Sort, key: &Key, now_micros: u64) -> Result<Option<T>, StoreError> {
        let Some(content) = self.read(sort, key, now_micros)? else {
            return Ok(None);
        };
        let state = T::decode(content);
        state
            .map(Some)
            .ok_or_else(|| self.damaged(key.as_str(), "its file cannot be read"))
    }

    /// Reads a file. `shown` is what an error calls it.
    fn read_record(&self, path: &Path, sort: Sort, shown: &str) -> Result<Option<Record>, StoreError> {
        let content = match sort {
            Sort::Log => MAX_LOG_BYTES + self.limits.value_bytes + 4 * MAX_LOG_ENTRIES,
            Sort::Value | Sort::Bucket | Sort::Lease => self.limits.value_bytes.max(1024),
        };
        match private_file::read(path, content + record::OVERHEAD) {
            Ok(bytes) => match record::decode(bytes) {
                Some(record) => Ok(Some(record)),
                None => Err(self.damaged(shown, "its file was changed, or not written to its end")),
            },
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
                    Err(self.damaged(shown, "its file is not one that this program wrote"))
                }
                _ => Err(self.unreachable(error)),
            },
        }
    }

    /// The values of the keys that have one part more than `parent`.
    pub(super) fn list(
        &self,
        parent: &Key,
        max: usize,
        max_bytes: usize,
        deadline: Instant,
        now_micros: u64,
    ) -> Result<Listing, StoreError> {
        let hash = parent_hash(parent.as_str());
        let folder = self.path.join(Sort::Value.folder()).join(&hash[..2]);
        let mut listing = Listing::default();
        let mut bytes = 0;
        let files = match fs::read_dir(folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
            Err(error) => return Err(self.unreachable(error)),
        };
        for file in files {
            let file = file.map_err(|error| self.unreachable(error))?;
            if Instant::now() >= deadline {
                return Err(self.timed_out());
            }
            let name = file.file_name();
            if !name
                .to_str()
                .is_some_and(|name| name.starts_with(&hash) && !name.ends_with(".tmp"))
            {
                continue;
            }
            let (key, value) = match self.read_record(&file.path(), Sort::Value, parent.as_str()) {
                Ok(None) => continue,
                Ok(Some(record)) if record.expires_micros <= now_micros => continue,
                Ok(Some(record)) => match Key::parse(&record.name) {
                    Some(key) if self.path_of(Sort::Value, &key) == file.path() => (key, record.content),
                    _ => {
                        listing.damaged += 1;
                        continue;
                    }
                },
                Err(StoreError::Damaged { .. }) => {
                    listing.damaged += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            bytes += value.len();
            if listing.values.len() == max || bytes > max_bytes {
                listing.more = true;
                break;
            }
            listing.values.push((key, Value::plain(value)));
        }
        listing.values.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(listing)
    }

    /// The folders in which files are, one after the other: `number` counts them.
    pub(super) fn shelf(&self, number: usize) -> PathBuf {
        let sort = Sort::ALL[number / 256 % Sort::ALL.len()];
        self.path.join(sort.folder()).join(format!("{:02x}", number % 256))
    }

    fn path_of(&self, sort: Sort, key: &Key) -> PathBuf {
        let parent = parent_hash(key.parent().unwrap_or_default());
        let file = format!("{parent}-{}", name_hash(key.as_str()));
        self.path.join(sort.folder()).join(&parent[..2]).join(file)
    }

    pub(super) fn unreachable(&self, cause: io::Error) -> StoreError {
        if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return self.refused(Refusal::Full);
        }
        StoreError::Unreachable {
            address: self.address.clone(),
            cause: Arc::new(cause),
        }
    }

    pub(super) fn timed_out(&self) -> StoreError {
        StoreError::TimedOut {
            address: self.address.clone(),
            limit: self.limits.time,
        }
    }

    fn refused(&self, refusal: Refusal) -> StoreError {
        StoreError::Refused {
            address: self.address.clone(),
            refusal,
        }
    }

    fn damaged(&self, name: &str, reason: &'static str) -> StoreError {
        StoreError::Damaged {
            address: self.address.clone(),
            key: name.into(),
            reason,
        }
    }
}

impl Locked<'_> {
    pub(super) fn read(&self, sort: Sort, key: &Key, now_micros: u64) -> Result<Option<Bytes>, StoreError> {
        self.folder.read(sort, key, now_micros)
    }

    pub(super) fn read_state<T: State>(&self, sort: Sort, key: &Key, now_micros: u64) -> Result<Option<T>, StoreError> {
        self.folder.read_state(sort, key, now_micros)
    }

    pub(super) fn write(&self, sort: Sort, key: &Key, content: &[u8], expires_micros: u64) -> Result<(), StoreError> {
        let file = record::encode(key.as_str(), expires_micros, content);
        let written = private_file::replace(&self.folder.path_of(sort, key), &file);
        written.map_err(|error| self.folder.unreachable(error))
    }

    pub(super) fn write_state<T: State>(
        &self,
        sort: Sort,
        key: &Key,
        state: &T,
        expires: u64,
    ) -> Result<(), StoreError> {
        self.write(sort, key, &state.encode(), expires)
    }

    pub(super) fn remove(&self, sort: Sort, key: &Key) -> Result<(), StoreError> {
        match fs::remove_file(self.folder.path_of(sort, key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.folder.unreachable(error)),
            _ => Ok(()),
        }
    }
}

fn parent_hash(parent: &str) -> String {
    hex(&digest(&SHA256, parent.as_bytes()).as_ref()[..8])
}

fn name_hash(name: &str) -> String {
    hex(&digest(&SHA256, name.as_bytes()).as_ref()[..16])
}

/// Which lock a name has. It is the first byte of the name's hash, so that it can be read out of the name of a file too.
fn lock_number(name: &str) -> u8 {
    digest(&SHA256, name.as_bytes()).as_ref()[0] % LOCKS
}
