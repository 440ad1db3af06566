//! Opens, saves and protects files of the user, with errors that say what could not be done.

use std::path::{Path, PathBuf};

use crate::{document::Document, host_error::HostError};

/// Opens a file, which need not exist.
pub fn open(file: &Path) -> Result<Document, HostError> {
    Document::open(file).map_err(|error| HostError::usage(format!("the file cannot be read: {error}"), None))
}

/// Saves a file, and makes the folder that it is in.
pub fn save(document: &mut Document, file: &Path) -> Result<(), HostError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| HostError::unwritable(file, error))?;
    }
    document.save().map_err(|error| HostError::refused_edit(&error))
}

/// Lets only the user read a file.
pub fn restrict(file: &Path) -> Result<(), HostError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(file, mode).map_err(|error| HostError::unwritable(file, error))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// The user's config folder of Pegboard.
pub(crate) fn config_folder() -> Result<PathBuf, HostError> {
    let folder = if cfg!(windows) {
        folder_in("APPDATA")
    } else {
        folder_in("XDG_CONFIG_HOME").or_else(|| Some(folder_in("HOME")?.join(".config")))
    };
    folder.map(|folder| folder.join("pegboard")).ok_or_else(|| {
        HostError::usage(
            "there is no home folder for the config file",
            Some("name a file with `-c FILE`, or set HOME".to_owned()),
        )
    })
}

/// The folder that an environment variable names. A relative path would be one in the current project.
pub(crate) fn folder_in(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.filter(|path| path.is_absolute())
}

/// The working folder.
pub(crate) fn working_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}
