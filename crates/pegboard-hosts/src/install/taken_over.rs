//! Remembers the entries that were moved out of a host's file, so that they can be put back.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{host_error::HostError, user_file};

/// An entry that was moved.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    pub(super) keys: Vec<String>,
    pub(super) entry: Value,
}

fn file() -> Result<PathBuf, HostError> {
    let folder = user_file::config_folder()?;
    Ok(folder.join("taken-over.json"))
}

/// The entries that were moved out of a file.
pub(super) fn load(host_file: &Path) -> Result<Vec<Moved>, HostError> {
    let document = user_file::open(&file()?)?;
    let list = document.get(&[&host_file.display().to_string()]).unwrap_or_default();
    let moved = list.as_array().into_iter().flatten().filter_map(|one| {
        let keys = one.get("keys")?.as_array()?.iter();
        Some(Moved {
            keys: keys.filter_map(|key| key.as_str().map(str::to_owned)).collect(),
            entry: one.get("entry")?.clone(),
        })
    });
    Ok(moved.filter(|moved| !moved.keys.is_empty()).collect())
}

/// Adds to what was moved out of a file.
pub(super) fn add(host_file: &Path, more: &[Moved]) -> Result<(), HostError> {
    let mut all = load(host_file)?;
    all.retain(|one| !more.iter().any(|new| new.keys == one.keys));
    all.extend(more.iter().cloned());
    store(host_file, &all)
}

/// Remembers only these of what was moved out of a file.
pub(super) fn keep(host_file: &Path, left: &[Moved]) -> Result<(), HostError> {
    store(host_file, left)
}

/// Fails if nothing could be remembered.
pub(super) fn check_writable() -> Result<(), HostError> {
    let document = user_file::open(&file()?)?;
    document
        .check_writable()
        .map_err(|error| HostError::refused_edit(&error))
}

fn store(host_file: &Path, moved: &[Moved]) -> Result<(), HostError> {
    let path = file()?;
    let mut document = user_file::open(&path)?;
    let key = host_file.display().to_string();
    let list: Vec<Value> = moved
        .iter()
        .map(|one| json!({"keys": one.keys, "entry": one.entry}))
        .collect();
    let edited = match list.is_empty() {
        true => document.remove(&[&key]).map(|_| ()),
        false => document.set(&[&key], &Value::Array(list)),
    };
    edited.map_err(|error| HostError::refused_edit(&error))?;
    if !document.is_changed() || (list_is_missing(&path) && moved.is_empty()) {
        return Ok(());
    }
    user_file::save(&mut document, &path)?;
    user_file::restrict(&path)
}

fn list_is_missing(path: &Path) -> bool {
    !path.exists()
}
