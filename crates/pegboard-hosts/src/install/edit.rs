//! Enters Pegboard in the config files of hosts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Change, Effect, Existing, Installation, ownership, program, remotes,
    taken_over::{self, Moved},
};
use crate::{
    document::Document,
    host_error::HostError,
    hosts::{Connection, EntryForm, Folders, Host, entry_for, is_connection},
    import::{Plan, Row},
    own_entries, project_bounds, user_file,
};

/// Enters Pegboard in the files of a host. The servers of `plan` are taken out.
pub fn install(
    host: &'static Host,
    entry: &Installation,
    is_project: bool,
    folders: &Folders,
    plan: Option<&Plan>,
    is_dry: bool,
) -> Result<Vec<Change>, HostError> {
    let files = files(host, is_project, &entry.name, folders)?;
    files
        .into_iter()
        .map(|file| install_in(host, file, entry, plan, is_dry))
        .collect()
}

fn install_in(
    host: &'static Host,
    file: PathBuf,
    entry: &Installation,
    plan: Option<&Plan>,
    is_dry: bool,
) -> Result<Change, HostError> {
    let form = host.form.unwrap_or(EntryForm::Plain);
    let Some(value) = entry_for(form, &entry.connection, &entry.name) else {
        return Err(HostError::usage(
            format!("{} cannot connect to a URL", host.title),
            Some("leave out `--url`: it then starts `pegboard mcp` itself".to_owned()),
        ));
    };
    let mut document = user_file::open(&file)?;
    let is_block = form == EntryForm::ContinueBlock;
    let keys = match is_block {
        true => Vec::new(),
        false => keys_for(host, &document, &entry.name),
    };
    let value = for_version(value, &keys);
    let path: Vec<&str> = keys.iter().map(String::as_str).collect();
    let is_empty = |known: &Value| known.is_null() || known.as_object().is_some_and(serde_json::Map::is_empty);
    let known = document.get(&path).filter(|known| !is_empty(known));
    let is_same = known.as_ref() == Some(&value);
    let step = step(host, &file, entry, known.as_ref(), &value)?;
    let (effect, target) = match &step {
        EditStep::Write(effect) => {
            let tables = value.as_object().filter(|_| is_block);
            let parts: Vec<(Vec<&str>, &Value)> = match tables {
                Some(table) => table.iter().map(|(key, value)| (vec![key.as_str()], value)).collect(),
                None => vec![(path.clone(), &value)],
            };
            for (path, value) in parts {
                put(&mut document, &path, value)?;
            }
            (*effect, Some(entry.command_line()))
        }
        EditStep::Repair(edits) => {
            for (inner, value) in edits {
                let place: Vec<&str> = path.iter().chain(*inner).copied().collect();
                document
                    .set(&place, value)
                    .map_err(|error| HostError::refused_edit(&error))?;
            }
            (
                Effect::Updated,
                document.get(&path).as_ref().and_then(ownership::target_of),
            )
        }
        EditStep::Keep => (Effect::Unchanged, known.as_ref().and_then(ownership::target_of)),
    };
    let rows = plan.into_iter().flat_map(|plan| &plan.rows);
    let rows: Vec<&Row> = rows.filter(|row| row.from == file && row.can_move()).collect();
    let mut moved = Vec::new();
    for row in &rows {
        let place: Vec<&str> = row.keys.iter().map(String::as_str).collect();
        // One of our name is replaced already.
        if place != path {
            document
                .remove(&place)
                .map_err(|error| HostError::refused_edit(&error))?;
        }
        moved.push(Moved {
            keys: row.keys.clone(),
            entry: row.entry.clone(),
        });
    }
    if !is_block && document.get(&path).is_none() {
        return Err(HostError::usage(
            format!("Pegboard's entry does not fit beside the servers of {}", file.display()),
            Some("rename the servers in it that have the name of a setting of the host".to_owned()),
        ));
    }
    // Also in a dry run, so that nothing else is written before a file that cannot be.
    if document.is_changed() {
        document
            .check_writable()
            .map_err(|error| HostError::refused_edit(&error))?;
    }
    if !moved.is_empty() {
        taken_over::check_writable()?;
    }
    let mut backup = None;
    if !is_dry && let Connection::Url(url) = &entry.connection {
        remotes::remember(&file, &entry.name, url)?;
    }
    if !is_dry && document.is_changed() {
        // What is moved is remembered first: it must not get lost if the rest fails.
        if !moved.is_empty() {
            taken_over::add(&file, &moved)?;
        }
        backup = document.back_up().map_err(|error| HostError::refused_edit(&error))?;
        user_file::save(&mut document, &file)?;
        if matches!(
            (&entry.connection, &step),
            (Connection::Process { .. }, EditStep::Write(_))
        ) {
            remotes::forget(&file, &entry.name)?;
        }
    }
    Ok(Change {
        host,
        effect,
        name: entry.name.clone(),
        warnings: match &entry.connection {
            Connection::Process { program, .. } if is_same || effect != Effect::Unchanged => {
                program::warning(program).into_iter().collect()
            }
            _ => Vec::new(),
        },
        target,
        backup,
        moved: rows.iter().map(|row| row.original.clone()).collect(),
        file,
    })
}

/// What is done with the entry in a file.
enum EditStep {
    /// It is written whole.
    Write(Effect),
    /// Only its program or its arguments are replaced.
    Repair(Vec<(&'static [&'static str], Value)>),
    Keep,
}

fn step(
    host: &Host,
    file: &Path,
    entry: &Installation,
    known: Option<&Value>,
    new: &Value,
) -> Result<EditStep, HostError> {
    let Some(known) = known else {
        return Ok(EditStep::Write(Effect::Added));
    };
    if known == new {
        return Ok(EditStep::Keep);
    }
    let written = remotes::url_of(file, &entry.name)?;
    if !entry.force && !own_entries::is_own(known, written.as_deref()) {
        return Err(HostError::usage(
            format!("{} has another `{}` in {}", host.title, entry.name, file.display()),
            // The whole command, because `init` has neither option.
            Some(format!(
                "`pegboard install {} --name NAME` enters it under another name, `--force` replaces that entry",
                host.id
            )),
        ));
    }
    Ok(match &entry.connection {
        Connection::Process { program, .. } if entry.existing != Existing::Replaced && !entry.force => {
            let mut edits: Vec<_> = ownership::repair(known, program).into_iter().collect();
            if entry.existing == Existing::Updated {
                edits.extend(ownership::update(known, new, edits.first().map(|(_, value)| value)));
            }
            match edits.is_empty() {
                true => EditStep::Keep,
                false => EditStep::Repair(edits),
            }
        }
        _ => EditStep::Write(Effect::Updated),
    })
}

/// Puts an entry into a file, with its keys in the order in which people write them.
fn put(document: &mut Document, path: &[&str], entry: &Value) -> Result<(), HostError> {
    const FIRST: [&str; 9] = [
        "source",
        "type",
        "name",
        "description",
        "command",
        "cmd",
        "args",
        "url",
        "uri",
    ];
    let mut ordered = document.clone();
    if let Some(table) = entry.as_object().filter(|_| document.get(path).is_none()) {
        let first = FIRST.iter().filter(|key| table.contains_key(**key)).copied();
        let rest = table.keys().map(String::as_str).filter(|key| !FIRST.contains(key));
        let is_done = first.chain(rest).all(|key| {
            let path: Vec<&str> = path.iter().copied().chain([key]).collect();
            table.get(key).is_some_and(|value| ordered.set(&path, value).is_ok())
        });
        if is_done {
            *document = ordered;
            return Ok(());
        }
    }
    document
        .set(path, entry)
        .map_err(|error| HostError::refused_edit(&error))
}

/// The files of a host to edit.
pub(super) fn files(host: &Host, is_project: bool, name: &str, folders: &Folders) -> Result<Vec<PathBuf>, HostError> {
    if host.form == Some(EntryForm::ContinueBlock) {
        let folder = match is_project {
            true => folders.project(".continue/mcpServers"),
            false => folders.variable_or_home("CONTINUE_GLOBAL_DIR", ".continue", "mcpServers"),
        };
        let file = folder.join(format!("{name}.yaml"));
        if is_project {
            project_bounds::check(&file)?;
        }
        return Ok(vec![file]);
    }
    if !is_project {
        return Ok(host.files_to_edit(folders));
    }
    let existing = host.project_files(folders).into_iter().next();
    let first = || host.project.first().map(|name| folders.project(name));
    let file = existing.or_else(first).ok_or_else(|| {
        HostError::usage(
            format!("{} has no config files in projects", host.title),
            Some("leave out `--project`".to_owned()),
        )
    })?;
    project_bounds::check(&file)?;
    Ok(vec![file])
}

/// The keys under which Pegboard's entry goes: where it is already, or where the file has its servers.
fn keys_for(host: &Host, document: &Document, name: &str) -> Vec<String> {
    let has = |keys: &&&[&str]| {
        let table = document.get(keys);
        // What is under the keys of the table can be a server of that name.
        table.is_some_and(|table| table.as_object().is_some_and(|table| !is_connection(table)))
    };
    let newest = host.keys.iter().filter(has).max_by_key(|keys| keys.len());
    let keys = newest.or(host.keys.first()).copied().unwrap_or(&["mcpServers"]);
    keys.iter().chain([&name]).map(|key| (*key).to_owned()).collect()
}

/// The newer form of OpenCode has no `enabled`, and two timeouts.
fn for_version(mut value: Value, keys: &[String]) -> Value {
    let is_newer = keys.first().is_some_and(|key| key == "mcp") && keys.len() == 3 && value.get("enabled").is_some();
    if let Some(table) = value.as_object_mut().filter(|_| is_newer) {
        table.remove("enabled");
        table.insert("timeout".to_owned(), json!({"startup": 30_000, "request": 300_000}));
    }
    value
}
