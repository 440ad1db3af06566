//! Takes Pegboard out of the config files of hosts, and puts back what was moved.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    Change, Effect, Removal,
    edit::files,
    originals, remotes,
    taken_over::{self, Moved},
};
use crate::{
    document::Document,
    host_error::HostError,
    hosts::{EntryForm, Folders, Host},
    own_entries, user_file,
};

/// Takes Pegboard out of the files of a host. A file that cannot be edited does not keep the others from it: the second list says why.
pub fn uninstall(
    host: &'static Host,
    options: &Removal,
    folders: &Folders,
) -> Result<(Vec<Change>, Vec<HostError>), HostError> {
    let (mut changes, mut failed) = (Vec::new(), Vec::new());
    let mut files = files(host, options.is_project, &options.name, folders)?;
    if !options.is_project && host.form != Some(EntryForm::ContinueBlock) {
        files = (host.user)(folders);
    }
    for file in files {
        // Servers may have been moved out of a file that is gone since.
        if !file.is_file() && recall(&file, options)?.is_empty() {
            continue;
        }
        match uninstall_from(host, &file, options) {
            Ok(change) => changes.extend(change),
            Err(error) => failed.push(error),
        }
    }
    if changes.is_empty() && failed.is_empty() {
        changes.push(absent_change(host, PathBuf::new(), options));
    }
    Ok((changes, failed))
}

/// The change of a file that has no entry of Pegboard.
fn absent_change(host: &'static Host, file: PathBuf, options: &Removal) -> Change {
    Change {
        host,
        file,
        effect: Effect::Absent,
        name: options.name.clone(),
        target: None,
        backup: None,
        moved: Vec::new(),
        warnings: Vec::new(),
    }
}

fn uninstall_from(host: &'static Host, file: &Path, options: &Removal) -> Result<Option<Change>, HostError> {
    let mut document = user_file::open(file)?;
    let written = remotes::url_of(file, &options.name)?;
    let written = written.as_deref();
    let mut change = absent_change(host, file.to_owned(), options);
    let refused = |error| HostError::refused_edit(&error);
    let foreign = format!(
        "{} has another `{}` in {}, which stays",
        host.title,
        options.name,
        file.display()
    );
    if host.form == Some(EntryForm::ContinueBlock) {
        if !document
            .get(&[])
            .is_some_and(|block| own_entries::is_own(&block, written))
        {
            change.warnings.push(foreign);
            return Ok(Some(change));
        }
        change.effect = Effect::Removed;
        if !options.is_dry {
            change.backup = document.back_up().map_err(refused)?;
            std::fs::remove_file(file).map_err(|error| HostError::unwritable(file, error))?;
            remotes::forget(file, &options.name)?;
        }
        return Ok(Some(change));
    }
    let mut has_gone = false;
    for keys in host.keys {
        let path: Vec<&str> = keys.iter().copied().chain([options.name.as_str()]).collect();
        match document.get(&path) {
            Some(known) if own_entries::is_own(&known, written) => {
                document.remove(&path).map_err(refused)?;
                without_empty_table(&mut document, keys, file);
                has_gone = true;
            }
            Some(Value::Object(known)) if !known.is_empty() => change.warnings.push(foreign.clone()),
            _ => {}
        }
    }
    let mut moved = recall(file, options)?;
    if !options.restores {
        change
            .warnings
            .extend(hint_at_restore(host, &moved, &document, options));
        moved.clear();
    }
    let mut left: Vec<Moved> = Vec::new();
    let remaining = document.text();
    for one in &moved {
        let path: Vec<&str> = one.keys.iter().map(String::as_str).collect();
        let name = one.keys.last().cloned().unwrap_or_default();
        match document.get(&path) {
            None => {
                document.set(&path, &one.entry).map_err(refused)?;
                change.moved.push(name);
            }
            Some(known) if known == one.entry => {}
            Some(_) => {
                change.warnings.push(format!(
                    "`{name}` is not put back: {} has another one; rename that, then run this again",
                    file.display()
                ));
                left.push(one.clone());
            }
        }
    }
    if !change.moved.is_empty() && !originals::take(&mut document, &remaining, file) {
        let put_back = moved
            .iter()
            .filter(|one| !left.iter().any(|other| other.keys == one.keys));
        let inexact = put_back.filter(|one| originals::is_inexact(&one.entry, document.format()));
        change.warnings.extend(inexact.map(|one| {
            let name = one.keys.last().map(String::as_str).unwrap_or_default();
            format!("`{name}` is put back with dates as texts and large numbers rounded; a backup beside the file has its own lines")
        }));
    }
    if has_gone {
        change.effect = Effect::Removed;
    } else if !change.moved.is_empty() {
        change.effect = Effect::Restored;
    }
    let is_new = !document.exists();
    let is_edited = document.is_changed() && (!is_new || !change.moved.is_empty());
    if is_edited {
        document.check_writable().map_err(refused)?;
    }
    if !options.is_dry {
        if is_edited {
            change.backup = document.back_up().map_err(refused)?;
            user_file::save(&mut document, file)?;
        }
        if is_edited && is_new {
            // The servers may have secrets.
            user_file::restrict(file)?;
        }
        if has_gone {
            remotes::forget(file, &options.name)?;
        }
        if left.len() < moved.len() {
            taken_over::keep(file, &left)?;
        }
    }
    let is_worth_saying = change.effect != Effect::Absent || !change.warnings.is_empty();
    Ok(is_worth_saying.then_some(change))
}

/// What was moved out of a file. Only a restoration needs to know it.
fn recall(file: &Path, options: &Removal) -> Result<Vec<Moved>, HostError> {
    let found = taken_over::load(file);
    match options.restores {
        true => found,
        false => Ok(found.unwrap_or_default()),
    }
}

/// Says how the servers are put back that were moved out of a file and are not in it.
fn hint_at_restore(host: &Host, remembered: &[Moved], document: &Document, options: &Removal) -> Option<String> {
    let is_missing = |one: &&Moved| {
        let path: Vec<&str> = one.keys.iter().map(String::as_str).collect();
        document.get(&path).is_none()
    };
    let names = remembered.iter().filter(is_missing).filter_map(|one| one.keys.last());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return None;
    }
    let place = if options.is_project { " --project" } else { "" };
    Some(format!(
        "what was taken over from {} is not put back: {}; `pegboard uninstall {}{place} --restore` does that",
        document.path().display(),
        names.join(", "),
        host.id
    ))
}

/// Removes the table of servers too, if it is empty and the file was without it before: then it becomes as it was.
fn without_empty_table(document: &mut Document, keys: &[&str], file: &Path) {
    let is_empty = document
        .get(keys)
        .is_some_and(|table| table.as_object().is_some_and(serde_json::Map::is_empty));
    let mut without = document.clone();
    if is_empty && without.remove(keys).is_ok_and(|was_there| was_there) && originals::has(file, &without.text()) {
        *document = without;
    }
}
