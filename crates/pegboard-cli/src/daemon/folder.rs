//! The folder of sockets and locks, which only the user can enter.

use std::{
    fmt,
    fs::{DirBuilder, Metadata},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use crate::settings;

/// Why the folder cannot be used.
#[derive(Debug)]
pub(crate) enum FolderError {
    /// There is no place for it: no home, or a file system that cannot be written.
    Missing(String),
    /// Another user may control what is in it.
    Unsafe(String),
}

impl fmt::Display for FolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => write!(f, "there is no room for its socket: {why}"),
            Self::Unsafe(why) => write!(f, "the folder for its socket is not safe: {why}"),
        }
    }
}

/// The folder for sockets and locks: `$XDG_RUNTIME_DIR/pegboard`, else `pegboard/run` in the user's folder of state. Fails unless it belongs
/// to the user and no other user can enter it.
pub(super) fn open(create: bool) -> Result<PathBuf, FolderError> {
    let folder = path().ok_or_else(|| FolderError::Missing("neither XDG_RUNTIME_DIR nor HOME is set".to_owned()))?;
    if create && folder.symlink_metadata().is_err() {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        created.map_err(|error| FolderError::Missing(format!("{} cannot be created: {error}", folder.display())))?;
    }
    check(&folder)?;
    Ok(folder)
}

/// The path of the folder, whether it can be used or not.
pub(super) fn path() -> Option<PathBuf> {
    match settings::set("XDG_RUNTIME_DIR") {
        Some(runtime) => Some(runtime.join("pegboard")),
        None => Some(settings::state_folder()?.join("run")),
    }
}

/// Fails unless the folder itself, and no link to one, belongs to the user and is closed to others, and no other user can replace it.
fn check(folder: &Path) -> Result<(), FolderError> {
    let found = folder
        .symlink_metadata()
        .map_err(|error| missing_error(folder, &error))?;
    if let Some(problem) = problem_of(&found) {
        return Err(FolderError::Unsafe(format!("{} {problem}", folder.display())));
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    let found = parent.metadata().map_err(|error| missing_error(parent, &error))?;
    let is_own = found.uid() == user() || found.uid() == 0;
    let is_closed = found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0;
    match is_own && is_closed {
        true => Ok(()),
        false => Err(FolderError::Unsafe(format!(
            "other users may replace folders in {}",
            parent.display()
        ))),
    }
}

fn problem_of(found: &Metadata) -> Option<&'static str> {
    if found.is_symlink() {
        Some("is a symbolic link; remove it, and the next command makes a folder")
    } else if !found.is_dir() {
        Some("is no folder; remove it, and the next command makes one")
    } else if found.uid() != user() {
        Some("belongs to another user")
    } else if found.mode() & 0o077 != 0 {
        Some("is open to other users; `chmod 700` closes it")
    } else {
        None
    }
}

fn missing_error(path: &Path, error: &io::Error) -> FolderError {
    FolderError::Missing(format!("{} cannot be read: {error}", path.display()))
}

/// The user of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn refused(folder: &Path) -> String {
        match check(folder) {
            Err(FolderError::Unsafe(why) | FolderError::Missing(why)) => why,
            Ok(()) => panic!("{} was accepted", folder.display()),
        }
    }

    #[test]
    fn only_a_closed_folder_of_the_user_is_used_for_sockets() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        assert!(check(&folder).is_ok());
        let link = home.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(refused(&link).contains("symbolic link"));
        for mode in [0o777, 0o770, 0o705, 0o1777] {
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
            assert!(refused(&folder).contains("open to other users"), "{mode:o}");
        }
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refused(&folder).contains("replace folders"));
    }

    #[test]
    fn a_socket_folder_of_another_user_is_refused() {
        if user() != 0 {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
        assert!(refused(&folder).contains("belongs to another user"));
    }
}
