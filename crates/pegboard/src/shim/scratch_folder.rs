//! The private folder for temporary files of a sandboxed server. It is removed with the server.

use std::{
    fs::{DirBuilder, remove_dir_all},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// How long the guard waits for removals before it exits. A server may leave many files behind.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);

/// How many removals run.
static REMOVALS: AtomicUsize = AtomicUsize::new(0);

/// A folder that only its user may enter. Dropping it removes it.
#[derive(Debug)]
pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Creates a folder with a random name.
    pub(super) fn create(base: &Path) -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let path = base.join(format!("pegboard-{random:016x}"));
        // Fails if anything of that name exists.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.0);
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
