//! Remembers the URLs that `install --url` wrote, since an entry with a URL does not tell whose it is.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    host_error::HostError,
    own_entries::{self, OwnEntries},
    user_file,
};

/// The URL that was written into a host's file under this name.
pub(super) fn url_of(host_file: &Path, name: &str) -> Result<Option<String>, HostError> {
    Ok(OwnEntries::load()?.url_of(host_file, name).map(str::to_owned))
}

pub(super) fn remember(host_file: &Path, name: &str, url: &str) -> Result<(), HostError> {
    store(host_file, name, Some(url))
}

pub(super) fn forget(host_file: &Path, name: &str) -> Result<(), HostError> {
    store(host_file, name, None)
}

fn store(host_file: &Path, name: &str, url: Option<&str>) -> Result<(), HostError> {
    let path = own_entries::file()?;
    let mut document = user_file::open(&path)?;
    let key = host_file.display().to_string();
    let known = document.get(&[&key]).unwrap_or_default();
    let mut names: Map<String, Value> = known.as_object().cloned().unwrap_or_default();
    let is_changed = match url {
        Some(url) => {
            names
                .insert(name.to_owned(), url.into())
                .as_ref()
                .and_then(Value::as_str)
                != Some(url)
        }
        None => names.remove(name).is_some(),
    };
    if !is_changed {
        return Ok(());
    }
    let edited = match names.is_empty() {
        true => document.remove(&[&key]).map(|_| ()),
        false => document.set(&[&key], &Value::Object(names)),
    };
    edited.map_err(|error| HostError::refused_edit(&error))?;
    user_file::save(&mut document, &path)?;
    // A URL may hold a token.
    user_file::restrict(&path)
}
