//! The folders of unpacked bundles: locked, written beside their place, and moved there whole.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, TryLockError},
    io,
    path::{Path, PathBuf},
};

use super::archive::{self, File};

/// What the names of folders begin with that are not, or no longer, those of servers.
const DRAFT: &str = ".draft-";

/// Keeps other processes from adding and removing bundles while it lives. The system frees it when the process ends, however that happens.
#[derive(Debug)]
pub(crate) struct BundlesLock {
    _file: fs::File,
}

impl BundlesLock {
    /// Takes the lock on the folder of all bundles, which is made if needed. `None` if another process has it.
    pub(crate) fn try_take(bundles: &Path) -> io::Result<Option<Self>> {
        private().create(bundles)?;
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(bundles.with_extension("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// What was done about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is new.
    Made,
    /// It was there already, whole and unchanged.
    Kept,
    /// What was there was not what the bundle has, and the bundle has taken its place.
    Replaced,
}

/// Puts files into a folder, which has all of them or none whenever this process ends. The caller holds the lock.
pub(super) fn place(files: &[File], folder: &Path) -> io::Result<Placed> {
    let (Some(bundles), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    private().create(bundles)?;
    remove_drafts(bundles)?;
    let is_there = folder.symlink_metadata().is_ok();
    if is_there && has_exactly(files, folder).unwrap_or(false) {
        return Ok(Placed::Kept);
    }
    let draft = |state: &str| bundles.join(format!("{DRAFT}{state}-{}", name.to_string_lossy()));
    let (new, old) = (draft("new"), draft("old"));
    archive::write(files, &new)?;
    if is_there {
        fs::rename(folder, &old)?;
    }
    if let Err(error) = fs::rename(&new, folder) {
        if is_there {
            let _ = fs::rename(&old, folder);
        }
        let _ = fs::remove_dir_all(&new);
        return Err(error);
    }
    if !is_there {
        return Ok(Placed::Made);
    }
    // What is left of it is removed with the next bundle.
    let _ = remove(&old);
    Ok(Placed::Replaced)
}

/// Removes what processes that were killed have left behind. None works on it now: this one has the lock.
fn remove_drafts(bundles: &Path) -> io::Result<()> {
    for entry in fs::read_dir(bundles)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(DRAFT) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a folder, or whatever is in its place. Links are not followed.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Whether a folder has these files and no others, with the same content and modes.
fn has_exactly(files: &[File], folder: &Path) -> io::Result<bool> {
    let mut missing: HashMap<PathBuf, &File> = files.iter().map(|file| (folder.join(&file.path), file)).collect();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        if !next.symlink_metadata()?.is_dir() {
            return Ok(false);
        }
        for entry in fs::read_dir(next)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if found.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let is_same = match missing.remove(&entry.path()) {
                Some(file) => found.is_file() && has_mode(file, &found) && has_content(file, &entry.path(), &found)?,
                None => false,
            };
            if !is_same {
                return Ok(false);
            }
        }
    }
    Ok(missing.is_empty())
}

fn has_content(file: &File, path: &Path, found: &fs::Metadata) -> io::Result<bool> {
    Ok(found.len() == file.content.len() as u64 && fs::read(path)? == file.content)
}

#[cfg(unix)]
fn has_mode(file: &File, found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = found.permissions().mode();
    (mode & 0o100 != 0) == file.is_executable && mode & 0o022 == 0
}

#[cfg(not(unix))]
fn has_mode(_file: &File, _found: &fs::Metadata) -> bool {
    true
}

/// Makes folders that only the user can enter, with their parents.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> File {
        File {
            path: path.to_owned(),
            content: content.into(),
            is_executable: path.ends_with("run"),
        }
    }

    fn names(bundles: &Path) -> Vec<String> {
        let entries = fs::read_dir(bundles).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_folder_that_is_not_what_the_bundle_has_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (bundles, folder) = (home.path().join("bundles"), home.path().join("bundles/x-1"));
        private().create(&bundles).unwrap();
        let files = [
            file("manifest.json", "{}"),
            file("server/run", "#!"),
            file("server/empty", ""),
        ];
        assert_eq!(place(&files, &folder).unwrap(), Placed::Made);
        assert_eq!(place(&files, &folder).unwrap(), Placed::Kept);
        let changes: [(&str, &dyn Fn()); 6] = [
            ("changed", &|| fs::write(folder.join("server/run"), "!#").unwrap()),
            ("cut off", &|| fs::write(folder.join("manifest.json"), "{").unwrap()),
            ("missing", &|| fs::remove_file(folder.join("server/empty")).unwrap()),
            ("added", &|| fs::write(folder.join("server/json.py"), "").unwrap()),
            ("a file", &|| {
                fs::remove_dir_all(&folder).unwrap();
                fs::write(&folder, "").unwrap();
            }),
            ("not there", &|| fs::remove_dir_all(folder.join("server")).unwrap()),
        ];
        for (what, change) in changes {
            change();
            assert_eq!(place(&files, &folder).unwrap(), Placed::Replaced, "{what}");
            assert!(has_exactly(&files, &folder).unwrap(), "{what}");
            assert_eq!(names(&bundles), ["x-1"], "{what}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_a_bundle_is_replaced_and_what_it_names_stays() {
        let home = tempfile::tempdir().unwrap();
        let (bundles, folder) = (home.path().join("bundles"), home.path().join("bundles/x-1"));
        private().create(&bundles).unwrap();
        let files = [file("manifest.json", "{}")];
        let elsewhere = home.path().join("elsewhere");
        assert_eq!(place(&files, &elsewhere).unwrap(), Placed::Made);
        std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
        assert_eq!(place(&files, &folder).unwrap(), Placed::Replaced);
        assert!(!folder.is_symlink() && elsewhere.join("manifest.json").is_file());
    }

    #[test]
    fn what_a_killed_process_has_unpacked_in_part_is_removed_with_the_next_bundle() {
        let home = tempfile::tempdir().unwrap();
        let bundles = home.path().join("bundles");
        let left = bundles.join(format!("{DRAFT}new-y-2"));
        private().create(left.join("server")).unwrap();
        fs::write(left.join("server/half"), "ha").unwrap();
        place(&[file("manifest.json", "{}")], &bundles.join("x-1")).unwrap();
        assert_eq!(names(&bundles), ["x-1"]);
    }

    #[test]
    fn one_process_at_a_time_changes_the_folders_of_bundles() {
        let home = tempfile::tempdir().unwrap();
        let bundles = home.path().join("bundles");
        let lock = BundlesLock::try_take(&bundles).unwrap();
        assert!(lock.is_some());
        assert!(BundlesLock::try_take(&bundles).unwrap().is_none());
        drop(lock);
        assert!(BundlesLock::try_take(&bundles).unwrap().is_some());
    }
}
