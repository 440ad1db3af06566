//! [`Lock`]: the file by which a daemon is the only one of its identity. The kernel frees it when the process ends, however that happens.

use std::{
    fs::{File, Metadata, OpenOptions},
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
use crate::exit::Exit;

/// The longest text in a lock file.
const MAX_TEXT: u64 = 64;

/// How often, and how far apart, a lock is tried whose holder has ended. A server that the holder was just starting has the
/// lock too, until its program runs.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A locked file with the process id of its holder.
#[derive(Debug)]
pub(super) struct Lock {
    /// Locked until the daemon ends.
    file: File,
}

/// Why a file could not be locked.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process holds it: the one with this id, if it has said so.
    Held(Option<u32>),
    Io(io::Error),
}

/// Who holds a lock, as its file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// `pegboard serve`, which a user or a service manager has started.
    Serve,
    /// Any other process.
    Other,
}

/// How a process in the background ends that leaves the place to another one.
pub(super) const GAVE_WAY: Exit = Exit::Refused;

/// What stands after the process id of a `pegboard serve`.
const SERVE: &str = "serve";

impl Lock {
    /// Locks the file, which is created if needed, and writes the id of this process into it.
    pub(super) fn take(path: &Path, holder_is: Holder) -> Result<Self, LockError> {
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
            match holder_is {
                Holder::Serve => writeln!(file, "{} {SERVE}", std::process::id()),
                Holder::Other => writeln!(file, "{}", std::process::id()),
            }
        };
        let mut write = write;
        write().map_err(LockError::Io)?;
        Ok(Self { file })
    }
}

impl Lock {
    /// Whether the locked file is still the one at its path. Where it was removed, another process can lock a new one.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let ours = self.file.metadata().map(|found| FileId::from(&found));
        ours.ok().is_some_and(|ours| FileId::at(path) == Some(ours))
    }
}

/// What tells a file from any other that takes its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file at a path, which is no link that is followed.
    pub(super) fn at(path: &Path) -> Option<Self> {
        Some(Self::from(&path.symlink_metadata().ok()?))
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
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
    Ok(text(file)?.split_whitespace().next().and_then(|pid| pid.parse().ok()))
}

fn text(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.take(MAX_TEXT).read_to_string(&mut text)?;
    Ok(text)
}

/// The `pegboard serve` that holds a lock.
pub(super) fn serve_at(lock: &Path) -> Option<u32> {
    match is_free(lock) {
        true => None,
        false => written_serve(lock),
    }
}

/// The `pegboard serve` that held a lock last, if it is free and no process has held it since.
pub(super) fn last_serve(lock: &Path) -> Option<u32> {
    if !is_free(lock) {
        return None;
    }
    written_serve(lock)
}

/// The process id in a lock file, if it is that of a `pegboard serve`.
fn written_serve(lock: &Path) -> Option<u32> {
    let text = text(&mut File::open(lock).ok()?).ok()?;
    let mut words = text.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    (words.next() == Some(SERVE)).then_some(pid)
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
        let lock = Lock::take(&path, Holder::Other).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        match Lock::take(&path, Holder::Other) {
            Err(LockError::Held(pid)) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(lock);
        Lock::take(&path, Holder::Other).unwrap();
    }

    #[test]
    fn a_serve_that_held_a_lock_is_known_until_another_process_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        assert_eq!(last_serve(&path), None);
        let lock = Lock::take(&path, Holder::Serve).unwrap();
        assert_eq!(holder_of(&path), Some(std::process::id()));
        assert_eq!(last_serve(&path), None, "it runs");
        drop(lock);
        assert_eq!(last_serve(&path), Some(std::process::id()));
        drop(Lock::take(&path, Holder::Other).unwrap());
        assert_eq!(last_serve(&path), None);
    }

    /// A process that was being started when the holder was killed keeps the lock for a moment.
    #[test]
    fn a_lock_that_outlives_its_holder_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let heir = Lock::take(&path, Holder::Other).unwrap();
        std::fs::write(&path, format!("{}\n", ended.id())).unwrap();
        let freed = thread::spawn(move || {
            thread::sleep(BETWEEN_TRIES * 3);
            drop(heir);
        });
        Lock::take(&path, Holder::Other).unwrap();
        freed.join().unwrap();
    }

    #[test]
    fn a_lock_notices_that_its_file_was_removed_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let lock = Lock::take(&path, Holder::Other).unwrap();
        assert!(lock.is_at(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!lock.is_at(&path));
        let next = Lock::take(&path, Holder::Other).unwrap();
        assert!(!lock.is_at(&path) && next.is_at(&path));
    }

    #[test]
    fn a_lock_file_that_is_a_link_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("x.lock"), folder.path().join("link"));
        std::fs::write(&path, "").unwrap();
        symlink(&path, &link).unwrap();
        assert!(matches!(Lock::take(&link, Holder::Other), Err(LockError::Io(_))));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(Lock::take(&path, Holder::Other), Err(LockError::Io(_))));
    }
}
