//! Applies remedies: changes of config files and permissions, and the removal of leftovers.

use std::{fs, io, path::Path};

use pegboard::Loaded;
use pegboard_hosts::document::Document;
use serde_json::Value;

use super::finding::Remedy;

/// Applies a remedy, and returns what was done. With `is_dry` nothing is changed, and it returns what would be done.
pub(super) fn apply(remedy: &Remedy, is_dry: bool) -> Result<String, String> {
    let said = |done: &str, would: &str| if is_dry { would } else { done }.to_owned();
    match remedy {
        Remedy::Mode { path, add, remove } => {
            let (from, to) = mode(path, *add, *remove, is_dry).map_err(|error| change_failure_text(path, &error))?;
            let what = said("changed", "would change");
            Ok(format!(
                "{what} the permissions of {} from {from:o} to {to:o}",
                path.display()
            ))
        }
        Remedy::Remove { path } => {
            if !is_dry {
                fs::remove_file(path).map_err(|error| change_failure_text(path, &error))?;
            }
            Ok(format!("{} {}", said("removed", "would remove"), path.display()))
        }
        Remedy::Set { file, values } => {
            edit(file, is_dry, |document| {
                for (path, value) in values {
                    let place = place(document, path).ok_or_else(|| unknown_place_text(path))?;
                    document.set(&place, value).map_err(|error| error.to_string())?;
                }
                Ok(())
            })?;
            // Without the values: arguments may be secrets.
            let paths: Vec<String> = values.iter().map(|(path, _)| format!("`{}`", path.join("."))).collect();
            let what = said("changed", "would change");
            Ok(format!("{what} {} in {}", paths.join(" and "), file.display()))
        }
        Remedy::Rename { file, path, to } => {
            edit(file, is_dry, |document| {
                let old = place(document, path).ok_or_else(|| unknown_place_text(path))?;
                if is_taken(document, &old, to) {
                    return Err(format!("there is a `{to}` beside `{}` already", path.join(".")));
                }
                document.rename(&old, to).map_err(|error| error.to_string())
            })?;
            let what = said("renamed", "would rename");
            Ok(format!("{what} `{}` to `{to}` in {}", path.join("."), file.display()))
        }
        Remedy::Unmark { file } => {
            edit(file, is_dry, |document| {
                document.remove_mark();
                Ok(())
            })?;
            let what = said("removed", "would remove");
            Ok(format!("{what} the byte order mark of {}", file.display()))
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

/// A setting of a server as its file spells and has it: `httpUrl` for `url`, without the values of variables.
pub(super) fn find_written(file: &Path, path: &[String]) -> Option<(Vec<String>, Value)> {
    let document = Document::open(file).ok()?;
    let place = place(&document, path)?;
    let (name, table) = place.split_last()?;
    let is_it = |key: &&String| key == name || Loaded::setting(key, true).is_some_and(|(full, _)| full == *name);
    let keys = document.keys(table);
    let key = keys.iter().find(is_it).filter(|_| table.len() == 2)?;
    let value = document.get(&[table, &[key]].concat())?;
    let own = [&path[..path.len() - 1], std::slice::from_ref(key)].concat();
    Some((own, value))
}

/// Whether the table of a setting has a setting of this name too, in whichever spelling.
pub(super) fn is_taken(document: &Document, place: &[&str], name: &str) -> bool {
    let Some((_, table)) = place.split_last() else {
        return false;
    };
    let is_of_server = table.len() == 2;
    let full = |key: &str| match Loaded::setting(key, true).filter(|_| is_of_server) {
        Some((full, _)) => full,
        None => key.to_owned(),
    };
    document.keys(table).iter().any(|key| full(key) == full(name))
}

fn unknown_place_text(path: &[String]) -> String {
    format!("`{}` is not written there in this form", path.join("."))
}

/// Changes a config file, with its comments and layout kept.
fn edit(file: &Path, is_dry: bool, change: impl FnOnce(&mut Document) -> Result<(), String>) -> Result<(), String> {
    let _lock = match is_dry {
        true => None,
        false => Some(Document::lock(file).map_err(|error| error.to_string())?),
    };
    let mut document = Document::open(file).map_err(|error| error.to_string())?;
    change(&mut document)?;
    if !document.is_changed() {
        return Err(format!("{} has nothing to change", file.display()));
    }
    match is_dry {
        true => Ok(()),
        false => document.save().map_err(|error| error.to_string()),
    }
}

fn change_failure_text(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be changed: {error}", path.display())
}

/// Changes permissions. Returns what they were and what they are.
#[cfg(unix)]
fn mode(path: &Path, add: u32, remove: u32, is_dry: bool) -> io::Result<(u32, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = path.metadata()?.permissions().mode();
    let wanted = found & !remove | add;
    if !is_dry {
        fs::set_permissions(path, fs::Permissions::from_mode(wanted))?;
    }
    Ok((found & 0o7777, wanted & 0o7777))
}

#[cfg(not(unix))]
fn mode(_path: &Path, _add: u32, _remove: u32, _is_dry: bool) -> io::Result<(u32, u32)> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
