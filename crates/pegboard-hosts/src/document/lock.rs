//! [`EditLock`]: what lets one process at a time edit the files of a folder.
//!
//! The folder itself is locked, so that nothing is left beside the files. The system frees the lock when the process ends, however that
//! happens. Where a folder cannot be locked there is no lock; what another process has written meanwhile is still seen when a file is saved.

use std::{
    collections::HashMap,
    fmt,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use pegboard_base::deadline::Deadline;
use pegboard_base::sync::Mutex;

/// The longest wait for the edits of other processes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// What this process has locked: it may lock it again.
static HELD: Mutex<Option<HashMap<PathBuf, Weak<File>>>> = Mutex::new(None);

/// What ends all waits of this process. Global, because edits happen far below the command, which has one deadline.
static LIMIT: Mutex<Option<Limit>> = Mutex::new(None);

/// Asked between two tries whether to wait no longer.
type Limit = Box<dyn FnMut() -> Option<CutShort> + Send>;

/// Ends all waits of this process for the edits of other processes as soon as `limit` returns a reason. It is called every few milliseconds
/// during a wait, on the thread that waits.
pub fn limit_waits(limit: impl FnMut() -> Option<CutShort> + Send + 'static) {
    *LIMIT.lock() = Some(Box::new(limit));
}

/// Why the edits of another process were waited for no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutShort {
    /// The deadline of the command has passed.
    TimeUp,
    /// A signal has asked the process to end.
    Interrupted,
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another process is editing files of its folder")
    }
}

impl std::error::Error for CutShort {}

/// Keeps other processes from editing the files of a folder while it lives.
#[derive(Debug, Clone)]
pub struct EditLock {
    #[expect(dead_code, reason = "held until the edit is done")]
    file: Option<Arc<File>>,
}

impl EditLock {
    /// No lock, for what cannot be edited anyway.
    pub(super) const NONE: Self = Self { file: None };

    /// Locks a folder, after the edits of other processes.
    pub(super) fn take(folder: &Path) -> io::Result<Self> {
        Self::within(folder, LONGEST_WAIT)
    }

    pub(super) fn within(folder: &Path, longest: Duration) -> io::Result<Self> {
        let Ok(path) = locked_path(folder) else {
            return Ok(Self::NONE);
        };
        let mut held = HELD.lock();
        let held = held.get_or_insert_default();
        if let Some(known) = held.get(&path).and_then(Weak::upgrade) {
            return Ok(Self { file: Some(known) });
        }
        let file = lock(&path, longest)?.map(Arc::new);
        if let Some(file) = &file {
            held.insert(path, Arc::downgrade(file));
        }
        Ok(Self { file })
    }
}

/// The locked file, `None` where there are no such locks.
fn lock(path: &Path, longest: Duration) -> io::Result<Option<File>> {
    let Ok(file) = open(path) else { return Ok(None) };
    let wait = Deadline::within(longest);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            // Some file systems have no locks, or none of folders.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        let mut limit = LIMIT.lock();
        if let Some(cut_short) = limit.as_mut().and_then(|limit| limit()) {
            return Err(io::Error::other(cut_short));
        }
        drop(limit);
        if wait.has_passed() {
            return Err(io::Error::other(format!(
                "another process has been editing files of its folder for {} s; try again",
                longest.as_secs()
            )));
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

#[cfg(unix)]
fn locked_path(folder: &Path) -> io::Result<PathBuf> {
    folder.canonicalize()
}

/// Folders cannot be locked here: one file of the user stands for all of them.
#[cfg(not(unix))]
fn locked_path(_folder: &Path) -> io::Result<PathBuf> {
    Ok(std::env::temp_dir().join("pegboard-edit.lock"))
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}
