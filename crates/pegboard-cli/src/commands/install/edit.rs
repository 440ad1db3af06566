//! Edits the config files of hosts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    ownership, program, remotes,
    taken_over::{self, Moved},
};
use crate::{
    cli::{Global, Install},
    commands::{
        import::{
            plan::{Action, Plan, Row},
            write,
        },
        own_entries, project_bounds,
    },
    document::Document,
    exit::Exit,
    hosts::{Connection, Folders, Form, Host, entry_for, is_connection},
    settings::Complaint,
};

/// What is entered.
#[derive(Debug)]
pub(in crate::commands) struct Entry {
    name: String,
    connection: Connection,
    force: bool,
    /// Whether an entry that is Pegboard's already stays as it is.
    keeps: bool,
}

impl Entry {
    pub(in crate::commands) fn new(global: &Global, options: &Install) -> Result<Self, Complaint> {
        let connection = match &options.url {
            Some(url) => Connection::Url(url.clone()),
            None => {
                let mut args = vec!["mcp".to_owned()];
                for config in &global.configs {
                    let path = std::path::absolute(config).unwrap_or_else(|_| config.clone());
                    args.extend(["-c".to_owned(), path.display().to_string()]);
                }
                args.extend(options.view.iter().flat_map(|view| ["--view".to_owned(), view.clone()]));
                args.extend(options.daemon.then(|| "--daemon".to_owned()));
                Connection::Process {
                    program: program::path()?.display().to_string(),
                    args,
                }
            }
        };
        Ok(Self {
            name: options.name.clone(),
            connection,
            force: options.force,
            keeps: options.url.is_none() && options.view.is_none() && !options.daemon && global.configs.is_empty(),
        })
    }

    /// The same, with every entry that is Pegboard's already left as it is.
    pub(in crate::commands) fn keeping(self) -> Self {
        Self { keeps: true, ..self }
    }

    fn shown(&self) -> String {
        match &self.connection {
            Connection::Process { program, args } => format!("{program} {}", args.join(" ")),
            Connection::Url(url) => url.clone(),
        }
    }
}

/// What was done to a file, or would be.
#[derive(Debug)]
pub(in crate::commands) struct Change {
    pub(super) host: &'static Host,
    pub(super) file: PathBuf,
    pub(super) action: &'static str,
    pub(super) name: String,
    /// What the host starts or connects to.
    pub(super) target: Option<String>,
    pub(super) backup: Option<PathBuf>,
    /// The servers that were moved out of the file, or back into it.
    pub(super) moved: Vec<String>,
    pub(in crate::commands) warnings: Vec<String>,
}

impl Change {
    pub(super) fn sentence(&self, is_dry: bool) -> String {
        let (title, file) = (self.host.title, self.file.display());
        let would = if is_dry { "would be " } else { "" };
        let target = self.target.as_deref().unwrap_or_default();
        match self.action {
            "added" | "updated" => format!("{title}: {would}{} in {file}: {target}", self.action),
            "unchanged" => format!("{title}: has it already, in {file}"),
            "removed" => format!("{title}: {would}removed from {file}"),
            _ => format!("{title}: does not use Pegboard"),
        }
    }

    pub(super) fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.moved.is_empty() {
            let way = if self.action == "removed" {
                "put back"
            } else {
                "taken over"
            };
            lines.push(format!("{way}: {}", self.moved.join(", ")));
        }
        lines.extend(self.backup.iter().map(|backup| format!("backup: {}", backup.display())));
        if matches!(self.action, "added" | "updated" | "removed") {
            lines.push(format!("to apply it: {}", self.host.reload));
        }
        lines
    }

    pub(in crate::commands) fn document(&self) -> Value {
        json!({
            "host": self.host.id,
            "file": self.file,
            "action": self.action,
            "name": self.name,
            "target": self.target,
            "backup": self.backup,
            "moved": self.moved,
            "warnings": self.warnings,
            "reload": self.host.reload,
        })
    }
}

/// Whether taking over moves this server out of its host's file.
pub(in crate::commands) fn is_moved(row: &Row) -> bool {
    matches!(row.action, Action::Add(_) | Action::Replace(_) | Action::Same(_)) && !row.keys.is_empty()
}

/// Enters Pegboard in the files of a host. The servers of `plan` are taken out.
pub(in crate::commands) fn install(
    host: &'static Host,
    entry: &Entry,
    is_project: bool,
    folders: &Folders,
    plan: Option<&Plan>,
    is_dry: bool,
) -> Result<Vec<Change>, Complaint> {
    let files = files(host, is_project, &entry.name, folders)?;
    files
        .into_iter()
        .map(|file| install_in(host, file, entry, plan, is_dry))
        .collect()
}

fn install_in(
    host: &'static Host,
    file: PathBuf,
    entry: &Entry,
    plan: Option<&Plan>,
    is_dry: bool,
) -> Result<Change, Complaint> {
    let form = host.form.unwrap_or(Form::Plain);
    let Some(value) = entry_for(form, &entry.connection, &entry.name) else {
        return Err(Complaint {
            message: format!("{} cannot connect to a URL", host.title),
            hint: Some("leave out `--url`: it then starts `pegboard mcp` itself".to_owned()),
            exit: Exit::Usage,
        });
    };
    let mut document = write::open(&file)?;
    let is_block = form == Form::ContinueBlock;
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
    let (action, target) = match &step {
        Step::Write(action) => {
            let tables = value.as_object().filter(|_| is_block);
            let parts: Vec<(Vec<&str>, &Value)> = match tables {
                Some(table) => table.iter().map(|(key, value)| (vec![key.as_str()], value)).collect(),
                None => vec![(path.clone(), &value)],
            };
            for (path, value) in parts {
                put(&mut document, &path, value)?;
            }
            (*action, Some(entry.shown()))
        }
        Step::Repair(inner, value) => {
            let place: Vec<&str> = path.iter().chain(*inner).copied().collect();
            document.set(&place, value).map_err(|error| write::refused(&error))?;
            ("updated", document.get(&path).as_ref().and_then(ownership::target_of))
        }
        Step::Keep => ("unchanged", known.as_ref().and_then(ownership::target_of)),
    };
    let rows = plan.into_iter().flat_map(|plan| &plan.rows);
    let rows: Vec<&Row> = rows.filter(|row| row.from == file && is_moved(row)).collect();
    let mut moved = Vec::new();
    for row in &rows {
        let place: Vec<&str> = row.keys.iter().map(String::as_str).collect();
        // One of our name is replaced already.
        if place != path {
            document.remove(&place).map_err(|error| write::refused(&error))?;
        }
        moved.push(Moved {
            keys: row.keys.clone(),
            entry: row.entry.clone(),
        });
    }
    if !is_block && document.get(&path).is_none() {
        return Err(Complaint {
            message: format!("Pegboard's entry does not fit beside the servers of {}", file.display()),
            hint: Some("rename the servers in it that have the name of a setting of the host".to_owned()),
            exit: Exit::Usage,
        });
    }
    // Also in a dry run, so that nothing else is written before a file that cannot be.
    if document.is_changed() {
        document.check_writable().map_err(|error| write::refused(&error))?;
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
        backup = document.back_up().map_err(|error| write::refused(&error))?;
        write::save(&mut document, &file)?;
        if matches!((&entry.connection, &step), (Connection::Process { .. }, Step::Write(_))) {
            remotes::forget(&file, &entry.name)?;
        }
    }
    Ok(Change {
        host,
        action,
        name: entry.name.clone(),
        warnings: match &entry.connection {
            Connection::Process { program, .. } if is_same || action != "unchanged" => {
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
enum Step {
    /// It is written whole: `added` or `updated`.
    Write(&'static str),
    /// Only its program is replaced.
    Repair(&'static [&'static str], Value),
    Keep,
}

fn step(host: &Host, file: &Path, entry: &Entry, known: Option<&Value>, new: &Value) -> Result<Step, Complaint> {
    let Some(known) = known else {
        return Ok(Step::Write("added"));
    };
    if known == new {
        return Ok(Step::Keep);
    }
    let written = remotes::url_of(file, &entry.name)?;
    if !entry.force && !own_entries::is_own(known, written.as_deref()) {
        return Err(Complaint {
            message: format!("{} has another `{}` in {}", host.title, entry.name, file.display()),
            // The whole command, because `init` has neither option.
            hint: Some(format!(
                "`pegboard install {} --name NAME` enters it under another name, `--force` replaces that entry",
                host.id
            )),
            exit: Exit::Usage,
        });
    }
    Ok(match &entry.connection {
        Connection::Process { program, .. } if entry.keeps && !entry.force => match ownership::repair(known, program) {
            Some((keys, value)) => Step::Repair(keys, value),
            None => Step::Keep,
        },
        _ => Step::Write("updated"),
    })
}

/// Puts an entry into a file, with its keys in the order in which people write them.
fn put(document: &mut Document, path: &[&str], entry: &Value) -> Result<(), Complaint> {
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
    document.set(path, entry).map_err(|error| write::refused(&error))
}

/// The files of a host to edit.
pub(super) fn files(host: &Host, is_project: bool, name: &str, folders: &Folders) -> Result<Vec<PathBuf>, Complaint> {
    if host.form == Some(Form::ContinueBlock) {
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
    let file = existing.or_else(first).ok_or_else(|| Complaint {
        message: format!("{} has no config files in projects", host.title),
        hint: Some("leave out `--project`".to_owned()),
        exit: Exit::Usage,
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
