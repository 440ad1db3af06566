//! Applies remedies: changes of config files and permissions, and the removal of leftovers.

use std::{fs, io, path::Path};

use super::finding::Remedy;
use crate::document::{Document, DocumentError};

/// Applies a remedy, and returns what was done.
pub(super) fn apply(remedy: &Remedy) -> Result<String, String> {
    match remedy {
        Remedy::Mode { path, add, remove } => {
            mode(path, *add, *remove).map_err(|error| failed(path, &error))?;
            Ok(format!("changed the permissions of {}", path.display()))
        }
        Remedy::Remove { path } => {
            fs::remove_file(path).map_err(|error| failed(path, &error))?;
            Ok(format!("removed {}", path.display()))
        }
        Remedy::Set { file, values } => {
            edit(file, |document| {
                values
                    .iter()
                    .try_for_each(|(path, value)| document.set(&keys(path), value))
            })?;
            Ok(format!("changed {}", file.display()))
        }
        Remedy::Rename { file, path, to } => {
            edit(file, |document| {
                let Some(value) = document.get(&keys(path)) else {
                    return Ok(());
                };
                let mut renamed = keys(path);
                renamed.pop();
                renamed.push(to);
                document.remove(&keys(path))?;
                document.set(&renamed, &value)
            })?;
            Ok(format!("renamed a setting in {}", file.display()))
        }
    }
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Changes a config file, with its comments and layout kept. A setting that is not at this place in the file, such as one that another
/// format names otherwise, is not changed.
fn edit(file: &Path, change: impl FnOnce(&mut Document) -> Result<(), DocumentError>) -> Result<(), String> {
    let mut document = Document::open(file).map_err(|error| error.to_string())?;
    change(&mut document).map_err(|error| error.to_string())?;
    if !document.is_changed() {
        return Err(format!("{} has nothing to change", file.display()));
    }
    document.save().map_err(|error| error.to_string())
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be changed: {error}", path.display())
}

#[cfg(unix)]
fn mode(path: &Path, add: u32, remove: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = path.metadata()?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(found & !remove | add))
}

#[cfg(not(unix))]
fn mode(_path: &Path, _add: u32, _remove: u32) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
