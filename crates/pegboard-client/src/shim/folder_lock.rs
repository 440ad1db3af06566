//! Locks on folders that are in use, so that those of killed processes can be removed.

use std::{
    fs::{File, read_dir, remove_dir_all},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, openat},
    process::geteuid,
};

/// The most entries that one cleanup lists. The folder may be `/tmp`, which others fill.
const MAX_LISTED: usize = 20_000;
/// The most folders that one cleanup removes.
const MAX_REMOVED: usize = 1000;

/// A lock on a folder. It is released when it is dropped or when its process is gone. Locks of the same folder do not exclude each other.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks a folder and makes it the most recent one.
    pub(super) fn hold(folder: &Path) -> io::Result<Self> {
        let file = open(folder)?;
        file.set_modified(SystemTime::now())?;
        flock(&file, FlockOperation::NonBlockingLockShared)?;
        Ok(Self { _file: file })
    }
}

/// Removes the folders of this user in `parent` whose names have this prefix, that are older than `age`, and that no process has locked.
///
/// The age is for processes that have created a folder and not locked it yet.
pub(super) fn remove_unlocked(parent: &Path, prefix: &str, age: Duration) {
    let Ok(entries) = read_dir(parent) else { return };
    let entries = entries.take(MAX_LISTED).flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)));
    for entry in named.take(MAX_REMOVED) {
        let path = entry.path();
        // Held while the folder is removed, so that no other process starts to use it.
        if let Ok(Some(_lock)) = lock_stale(&path, age) {
            let _ = remove_dir_all(&path);
        }
    }
}

/// Locks a folder against all others, if it is stale.
fn lock_stale(folder: &Path, age: Duration) -> io::Result<Option<File>> {
    let file = open(folder)?;
    let meta = file.metadata()?;
    let is_old = SystemTime::now()
        .duration_since(meta.modified()?)
        .is_ok_and(|since| since >= age);
    if meta.uid() != geteuid().as_raw() || !is_old {
        return Ok(None);
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Some(file))
}

/// Opens a folder that is not a symbolic link.
fn open(folder: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, folder, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_old_folders_that_no_process_uses_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        for name in ["tmp-left", "tmp-used", "others"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("file"), "x").unwrap();
        }
        symlink(path("others"), path("tmp-link")).unwrap();
        fs::write(path("tmp-file"), "x").unwrap();
        let lock = FolderLock::hold(&path("tmp-used")).unwrap();

        remove_unlocked(parent.path(), "tmp-", Duration::from_secs(60));
        assert!(path("tmp-left").exists(), "it is young");
        remove_unlocked(parent.path(), "tmp-", Duration::ZERO);
        assert!(!path("tmp-left").exists());
        assert!(path("tmp-used/file").exists() && path("others/file").exists());
        assert!(path("tmp-link").is_symlink() && path("tmp-file").exists());
        drop(lock);
        remove_unlocked(parent.path(), "tmp-", Duration::ZERO);
        assert!(!path("tmp-used").exists());
    }
}
