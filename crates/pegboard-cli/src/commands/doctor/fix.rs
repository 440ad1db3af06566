//! Applies remedies: changes of config files and permissions, and the removal of leftovers.

use std::{fs, io, path::Path};

use super::finding::Remedy;
use crate::document::Document;

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
                for (path, value) in values {
                    let place = place(document, path).ok_or_else(|| unknown(path))?;
                    document.set(&place, value).map_err(|error| error.to_string())?;
                }
                Ok(())
            })?;
            Ok(format!("changed {}", file.display()))
        }
        Remedy::Rename { file, path, to } => {
            edit(file, |document| {
                let old = place(document, path).ok_or_else(|| unknown(path))?;
                let value = document.get(&old).ok_or_else(|| unknown(path))?;
                let mut new = old.clone();
                new.pop();
                new.push(to);
                document.remove(&old).map_err(|error| error.to_string())?;
                document.set(&new, &value).map_err(|error| error.to_string())
            })?;
            Ok(format!("renamed a setting in {}", file.display()))
        }
    }
}

/// The names under which files have their servers.
const ROOTS: &[&str] = &["servers", "mcpServers", "mcp_servers"];

/// The place of a server's setting in its file, which may name the table of servers as other programs do. `None` if the server is not
/// written there.
pub(super) fn place<'a>(document: &Document, path: &'a [String]) -> Option<Vec<&'a str>> {
    let [_, server, rest @ ..] = path else { return None };
    let is_there = |root: &&&str| document.get(&[root, server.as_str()]).is_some();
    let root = ROOTS.iter().find(is_there)?;
    Some(
        [*root, server.as_str()]
            .into_iter()
            .chain(rest.iter().map(String::as_str))
            .collect(),
    )
}

fn unknown(path: &[String]) -> String {
    format!("`{}` is not written there in this form", path.join("."))
}

/// Changes a config file, with its comments and layout kept.
fn edit(file: &Path, change: impl FnOnce(&mut Document) -> Result<(), String>) -> Result<(), String> {
    let mut document = Document::open(file).map_err(|error| error.to_string())?;
    change(&mut document)?;
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
