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
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use futures_util::FutureExt as _;
use pegboard::deadline::Deadline;
use tokio::{task::unconstrained, time::Instant};

use crate::signals::Signals;

/// The longest wait for the edits of other processes.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// What this process has locked: it may lock it again.
static HELD: Mutex<Option<HashMap<PathBuf, Weak<File>>>> = Mutex::new(None);

/// What ends all waits of this process. Global, because edits happen far below the command, which has one deadline.
static LIMIT: Mutex<Option<Limit>> = Mutex::new(None);

/// Ends waits for the edits of other processes at the deadline of the command, and when one of these signals has arrived.
pub(crate) fn limit_waits(deadline: Deadline, signals: Signals) {
    *LIMIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Limit {
        deadline,
        signals,
        is_interrupted: false,
    });
}

struct Limit {
    deadline: Deadline,
    signals: Signals,
    is_interrupted: bool,
}

impl Limit {
    fn cut_short(&mut self) -> Option<CutShort> {
        // The edits are not async, so the signals are polled. A used-up budget of the task must not hide one.
        self.is_interrupted |= unconstrained(self.signals.heard()).now_or_never().is_some();
        match self.is_interrupted {
            true => Some(CutShort::Interrupted),
            false => self.deadline.has_passed().then_some(CutShort::TimeUp),
        }
    }
}

/// Why the edits of another process were waited for no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutShort {
    TimeUp,
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
pub(crate) struct EditLock {
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
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.get_or_insert_default();
        if let Some(known) = held.get(&path).and_then(Weak::upgrade) {
            return Ok(Self { file: Some(known) });
        }
        let file = locked(&path, longest)?.map(Arc::new);
        if let Some(file) = &file {
            held.insert(path, Arc::downgrade(file));
        }
        Ok(Self { file })
    }
}

/// The locked file, `None` where there are no such locks.
fn locked(path: &Path, longest: Duration) -> io::Result<Option<File>> {
    let Ok(file) = opened(path) else { return Ok(None) };
    let end = Instant::now() + longest;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            // Some file systems have no locks, or none of folders.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cut_short) = limit.as_mut().and_then(Limit::cut_short) {
            return Err(io::Error::other(cut_short));
        }
        drop(limit);
        if Instant::now() >= end {
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
fn opened(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
fn opened(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}
