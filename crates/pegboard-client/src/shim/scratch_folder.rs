//! The private folder for temporary files of a sandboxed server. It is removed with the server.

use std::{
    fs::{DirBuilder, remove_dir_all},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::folder_lock::{FolderLock, remove_unlocked};

/// The name prefix of all such folders, by which those of killed guards are found.
const PREFIX: &str = "pegboard-tmp-";
/// The least age of a folder that is removed because no guard has locked it.
const STALE: Duration = Duration::from_secs(60);

/// How long the guard waits for removals before it exits. A server may leave many files behind.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// How many removals run.
static REMOVALS: AtomicUsize = AtomicUsize::new(0);

/// A folder that only its user may enter. Dropping it removes it.
#[derive(Debug)]
pub(super) struct ScratchFolder {
    path: PathBuf,
    /// `None` where the file system has no locks. Such a folder is not removed if this process is killed.
    _lock: Option<FolderLock>,
}

impl ScratchFolder {
    /// Creates a folder with a random name.
    pub(super) fn create(base: &Path) -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let path = base.join(format!("{PREFIX}{random:016x}"));
        // Fails if anything of that name exists.
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = FolderLock::hold(&path).ok();
        Ok(Self { path, _lock: lock })
    }

    /// Removes the folders in `base` that killed guards have left, the first time that it is called, on a thread of its own.
    pub(super) fn remove_stale(base: &Path) {
        static REMOVED: Once = Once::new();
        let base = base.to_owned();
        REMOVED.call_once(|| {
            // If no thread can be started, the next guard removes them.
            let _ = std::thread::Builder::new().spawn(move || remove_unlocked(&base, PREFIX, STALE));
        });
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        REMOVALS.fetch_add(1, Ordering::Relaxed);
        // On a thread of its own: the number of files in it is up to the server, and the guard must not wait.
        let removing = std::thread::Builder::new().spawn(move || {
            // Links in it are removed and not followed.
            let _ = remove_dir_all(path);
            REMOVALS.fetch_sub(1, Ordering::Relaxed);
        });
        if removing.is_err() {
            REMOVALS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Waits until all removals are done, for at most [`REMOVAL_TIMEOUT`].
pub(super) fn wait_for_removals() {
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    while REMOVALS.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
}
