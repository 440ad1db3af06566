//! [`Lock`]: the file by which a daemon is the only one of its identity. The kernel frees it when the process ends, however that happens.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    process::{Pid, test_kill_process},
};

use super::folder::user;

/// The longest text in a lock file.
const MAX_TEXT: u64 = 64;

/// How often, and how far apart, a lock is tried whose holder has ended. A server that the holder was just starting has the
/// lock too, until its program runs.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A locked file with the process id of its holder.
#[derive(Debug)]
pub(super) struct Lock {
    #[expect(dead_code, reason = "held until the daemon ends")]
    file: File,
}

/// Why a file could not be locked.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process holds it: the one with this id, if it has said so.
    Held(Option<u32>),
    Io(io::Error),
}

impl Lock {
    /// Locks the file, which is created if needed, and writes the id of this process into it.
    pub(super) fn take(path: &Path) -> Result<Self, LockError> {
        let mut file = open(path).map_err(LockError::Io)?;
        let mut tries = 1;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(LockError::Io(error.into())),
            }
            let holder = holder(&mut file).map_err(LockError::Io)?;
            if tries == TRIES || !holder.is_some_and(has_ended) {
                return Err(LockError::Held(holder));
            }
            tries += 1;
            thread::sleep(BETWEEN_TRIES);
        }
        let write = || -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        let mut write = write;
        write().map_err(LockError::Io)?;
        Ok(Self { file })
    }
}

/// Whether no daemon holds a lock. A lock that cannot be opened counts as held, so that nothing is removed by mistake.
pub(super) fn is_free(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The process that holds a lock; `None` if it is free or the process has not said who it is.
pub(super) fn holder_of(lock: &Path) -> Option<u32> {
    if is_free(lock) {
        return None;
    }
    holder(&mut File::open(lock).ok()?).ok()?
}

/// Opens the file without following a link. Fails unless it is a regular file of the user that no other user may write.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != user() || found.mode() & 0o022 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is no regular file that only this user can change",
        ));
    }
    Ok(file)
}

fn holder(file: &mut File) -> io::Result<Option<u32>> {
    let mut text = String::new();
    file.rewind()?;
    file.take(MAX_TEXT).read_to_string(&mut text)?;
    Ok(text.trim().parse().ok())
}

fn has_ended(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_lock_is_held_once_names_its_holder_and_is_free_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = Lock::take(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        match Lock::take(&path) {
            Err(LockError::Held(pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(lock);
        Lock::take(&path).unwrap();
    }

    /// A process that was being started when the holder was killed keeps the lock for a moment.
    #[test]
    fn a_lock_that_outlives_its_holder_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let heir = Lock::take(&path).unwrap();
        std::fs::write(&path, format!("{}\n", ended.id())).unwrap();
        let freed = thread::spawn(move || {
            thread::sleep(BETWEEN_TRIES * 3);
            drop(heir);
        });
        Lock::take(&path).unwrap();
        freed.join().unwrap();
    }

    #[test]
    fn a_lock_file_that_is_a_link_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("x.lock"), folder.path().join("link"));
        std::fs::write(&path, "").unwrap();
        symlink(&path, &link).unwrap();
        assert!(matches!(Lock::take(&link), Err(LockError::Io(_))));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(Lock::take(&path), Err(LockError::Io(_))));
    }
}
