//! [`StoreLock`]: one process at a time changes an account.

use std::{
    fs::{File, TryLockError},
    io,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use pegboard_base::private_file;

/// How long an account may be held by another task or process. A refresh takes at most half of it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a lock of another process is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(25);

/// The exclusive right to change an account. It ends when it is dropped, or with the process.
#[derive(Debug)]
pub(crate) struct StoreLock {
    /// Held for the other tasks of this process.
    _permit: OwnedSemaphorePermit,
    /// Locked for other processes; `None` if the store is in memory.
    _file: Option<File>,
}

impl StoreLock {
    /// Waits for the lock.
    pub(super) async fn acquire(tasks: Arc<Semaphore>, file: Option<PathBuf>) -> io::Result<Self> {
        let too_long = || io::Error::new(io::ErrorKind::TimedOut, "another process holds it for too long");
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let permit = tokio::time::timeout_at(deadline, tasks.acquire_owned())
            .await
            .map_err(|_| too_long())?
            .map_err(io::Error::other)?;
        let Some(path) = file else {
            return Ok(Self {
                _permit: permit,
                _file: None,
            });
        };
        let file = tokio::task::spawn_blocking(move || private_file::edit(&path))
            .await
            .map_err(io::Error::other)??;
        loop {
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        _permit: permit,
                        _file: Some(file),
                    });
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Err(too_long()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_INTERVAL).await,
            }
        }
    }
}
