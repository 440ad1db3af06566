//! [`ServersFile`]: the config file whose servers a command changes.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use pegboard_base::name::ServerName;
use pegboard_config::{Config, Env, Format as ConfigFormat, Loaded, ProjectFile, Source, TrustStore};
use serde_json::{Map, Value};

use crate::{
    document::{Document, DocumentError, EditLock, Format},
    host_error::HostError,
    project_bounds,
    secret_references::{give_secret, take_from_secret},
    user_file::{config_folder, folder_in, working_folder},
};

/// The names of config files, the preferred one first.
const FILE_NAMES: [&str; 5] = [
    "pegboard.toml",
    "pegboard.yaml",
    "pegboard.yml",
    "pegboard.json",
    FOREIGN,
];
/// The file of other programs that is read as it is.
const FOREIGN: &str = ".mcp.json";
/// Where files keep their servers: ours, and those of other programs that are read as they are.
const TABLES: [&[&str]; 6] = [
    &["servers"],
    &["mcpServers"],
    &["mcp_servers"],
    &["context_servers"],
    &["mcp", "servers"],
    &["mcp", "mcpServers"],
];
/// Stands for the value of a variable that is not set here, while a server's settings are checked. It can be a URL too.
const UNSET: &str = "http://unset.invalid";

/// A config file, open for changes of its servers.
#[derive(Debug, Clone)]
pub struct ServersFile {
    /// The whole file.
    pub document: Document,
    /// The keys that lead to the table of servers.
    table: Vec<String>,
    /// Whether it is a project file that is approved as it is on disk, or a new one.
    is_approved_project: bool,
    is_project: bool,
}

/// What the library says about a server as it would be written.
#[derive(Debug)]
pub struct Checked {
    /// Its settings with secrets hidden.
    pub shown: Value,
    /// What keeps it from being used.
    pub errors: Vec<String>,
    /// What else is wrong with it.
    pub warnings: Vec<String>,
    /// Variables that it needs and that are not set here.
    pub unset: Vec<String>,
}

impl ServersFile {
    /// The file that new servers go into: that of `-c`, the project's, or the user's. It need not exist.
    pub fn to_add(configs: &[PathBuf], is_project: bool) -> Result<Self, HostError> {
        let path = path_to_add(configs, is_project)?;
        Self::open(&path, is_project && configs.is_empty())
    }

    /// Keeps other processes from editing the file of [`Self::to_add`] while the lock lives.
    pub fn lock_to_add(configs: &[PathBuf], is_project: bool) -> Result<EditLock, HostError> {
        let path = path_to_add(configs, is_project)?;
        Ok(Document::lock(&path)?)
    }

    /// Keeps other processes from editing the config files of this run while the locks live.
    pub fn lock_all(configs: &[PathBuf]) -> Result<Vec<EditLock>, HostError> {
        let mut paths: Vec<PathBuf> = files(configs).into_iter().map(|(path, _)| path).collect();
        paths.retain(|path| path.exists());
        // In the same order in each process, so that none waits for another one that waits for it.
        paths.sort();
        let locks = paths.iter().map(|path| Document::lock(path));
        Ok(locks.collect::<Result<_, DocumentError>>()?)
    }

    /// Like [`Self::to_add`], but never another program's file, from which the servers may come.
    pub(crate) fn to_import(configs: &[PathBuf], is_project: bool) -> Result<Self, HostError> {
        let path = match configs {
            [] if is_project => own_in_folder(&working_folder()),
            [] => own_in_folder(&config_folder()?),
            [one] => std::path::absolute(one).unwrap_or_else(|_| one.clone()),
            _ => {
                return Err(HostError::usage(
                    "servers can be written to one config file only",
                    Some("name it with a single `-c FILE`".to_owned()),
                ));
            }
        };
        let file = Self::open(&path, is_project && configs.is_empty())?;
        // The servers may come from a project that someone else has written, so a person has to approve them.
        Ok(Self {
            is_approved_project: false,
            ..file
        })
    }

    /// The files of this run, the strongest one first.
    pub fn all(configs: &[PathBuf]) -> Result<Vec<Self>, HostError> {
        let files = files(configs).into_iter().rev();
        files.map(|(path, is_project)| Self::open(&path, is_project)).collect()
    }

    /// The files of this run that have a server, the strongest one first.
    pub fn with(configs: &[PathBuf], name: &str) -> Result<Vec<Self>, HostError> {
        let mut found = Vec::new();
        for mut file in Self::all(configs)? {
            let tables = TABLES.into_iter();
            let has_it = |table: &&[&str]| file.document.get(&[*table, &[name]].concat()).is_some();
            if let Some(table) = tables.into_iter().find(has_it) {
                file.table = table.iter().map(|key| (*key).to_owned()).collect();
                found.push(file);
            }
        }
        Ok(found)
    }

    fn open(path: &Path, is_project: bool) -> Result<Self, HostError> {
        let document = Document::open(path)?;
        let known = TABLES
            .into_iter()
            .find(|table| matches!(document.get(table), Some(Value::Object(_))));
        let is_foreign = path.file_name().is_some_and(|name| name == FOREIGN);
        let table = known.unwrap_or(if is_foreign { &["mcpServers"] } else { &["servers"] });
        let is_approved_project = is_project && (!document.exists() || is_approved(path));
        Ok(Self {
            table: table.iter().map(|key| (*key).to_owned()).collect(),
            is_approved_project,
            is_project,
            document,
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.document.path()
    }

    /// The path with `~` for the home folder.
    pub fn shown_path(&self) -> String {
        shorten_path(self.path())
    }

    /// The settings of a server as they are written.
    pub fn entry(&self, name: &str) -> Option<Value> {
        self.document.get(&self.at(name, &[]))
    }

    /// The names of its servers, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        let table: Vec<&str> = self.table.iter().map(String::as_str).collect();
        self.document.keys(&table)
    }

    /// The settings of all its servers as they are written.
    pub fn entries(&self) -> Map<String, Value> {
        let table: Vec<&str> = self.table.iter().map(String::as_str).collect();
        match self.document.get(&table) {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        }
    }

    /// Writes the settings of servers in one edit where that is possible, in place of those that they had.
    pub(crate) fn put_all(&mut self, entries: &[(&str, &Value)]) -> Result<(), DocumentError> {
        let table: Vec<&str> = self.table.iter().map(String::as_str).collect();
        self.document.set_all(&table, entries)
    }

    /// Writes the settings of a server, in place of those that it had.
    pub fn put(&mut self, name: &str, entry: &Value) -> Result<(), HostError> {
        let path: Vec<String> = self.at(name, &[]).into_iter().map(str::to_owned).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Ok(self.document.set(&path, entry)?)
    }

    /// Gives a server another name. Comments and layout of its settings stay.
    pub fn rename(&mut self, name: &str, new: &str) -> Result<(), HostError> {
        let path: Vec<String> = self.at(name, &[]).into_iter().map(str::to_owned).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Ok(self.document.rename(&path, new)?)
    }

    /// Writes one setting of a server.
    pub fn set(&mut self, name: &str, key: &str, value: &Value) -> Result<(), HostError> {
        let path: Vec<String> = self.at(name, &[key]).into_iter().map(str::to_owned).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Ok(self.document.set(&path, value)?)
    }

    /// Has a server take this variable from the user's secret of the same name, where its settings name it; with `gives` its process gets it in any
    /// case. Comments stay. Returns whether anything has changed.
    pub fn take_from_secret(&mut self, server: &str, variable: &str, gives: bool) -> Result<bool, HostError> {
        let Some(Value::Object(before)) = self.entry(server) else {
            return Ok(false);
        };
        let mut after = before.clone();
        let mut is_changed = take_from_secret(&mut after, variable);
        if gives && !is_changed {
            give_secret(&mut after, variable);
            is_changed = true;
        }
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            self.remove(server, Some(key))?;
        }
        for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(*value)) {
            match (before.get(key), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    for (inner, value) in new.iter().filter(|(inner, value)| old.get(*inner) != Some(*value)) {
                        let path: Vec<String> = self.at(server, &[key, inner]).into_iter().map(str::to_owned).collect();
                        let path: Vec<&str> = path.iter().map(String::as_str).collect();
                        self.document.set(&path, value)?;
                    }
                }
                _ => self.set(server, key, value)?,
            }
        }
        Ok(is_changed)
    }

    /// Whether other programs read this file too, to which a reference to our secrets means nothing.
    pub fn is_shared(&self) -> bool {
        self.is_project || self.path().file_name().is_some_and(|name| name == FOREIGN)
    }

    /// Removes a server, or with `key` one of its settings.
    pub fn remove(&mut self, name: &str, key: Option<&str>) -> Result<bool, HostError> {
        let rest: Vec<&str> = key.into_iter().collect();
        let path: Vec<String> = self.at(name, &rest).into_iter().map(str::to_owned).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let was_there = self.document.remove(&path)?;
        // A file without anything would be taken for one that is being written.
        if was_there && self.document.text().trim().is_empty() {
            let table: Vec<&str> = self.table.iter().map(String::as_str).collect();
            let empty = Value::Object(Map::new());
            self.document.set(&table, &empty)?;
        }
        Ok(was_there)
    }

    /// Saves the file. A project file that was approved before the change stays approved: the user of this command has made it.
    pub fn save(&mut self) -> Result<(), HostError> {
        if self.is_project {
            project_bounds::check(self.path())?;
        }
        self.document.save()?;
        if self.is_approved_project {
            let env = Env::process();
            let mut store = TrustStore::user(&env);
            if let Ok(file) = ProjectFile::read(self.path(), &env) {
                self.is_approved_project = store.accept(&file).is_ok();
            }
        }
        Ok(())
    }

    /// Whether the file waits for approval, so that its servers are not used yet.
    pub fn needs_approval(&self) -> bool {
        self.is_project && !self.is_approved_project
    }

    /// Checks a server of the document as it is in memory. Nothing is started, and no keyring is asked.
    pub fn check(&self, name: &str) -> Checked {
        let entry = self.entry(name).unwrap_or_default();
        let written = entry.to_string();
        let unset = RefCell::new(Vec::new());
        let lookup = |variable: &str| {
            std::env::var(variable).ok().or_else(|| {
                if written.contains(&format!("${{{variable}}}")) {
                    let mut unset = unset.borrow_mut();
                    if !unset.iter().any(|known| known == variable) {
                        unset.push(variable.to_owned());
                    }
                    return Some(UNSET.to_owned());
                }
                None
            })
        };
        let env = Env::new(lookup).keyring(|_, _| Ok(UNSET.to_owned()));
        let format = match self.document.format() {
            Format::Toml => ConfigFormat::Toml,
            Format::Json => ConfigFormat::Json,
            Format::Yaml => ConfigFormat::Yaml,
        };
        let source = Source::text(self.shown_path(), self.document.text(), Some(format));
        let loaded = Config::load(&[source], &env);
        let said = |is_error: bool| {
            let problems = loaded.problems.iter();
            let concerns = problems.filter(|one| one.is_error() == is_error && one.server() == Some(name));
            concerns.map(ToString::to_string).collect()
        };
        let (errors, warnings) = (said(true), said(false));
        Checked {
            shown: show_entry(&loaded, name, &entry),
            errors,
            warnings,
            unset: unset.take(),
        }
    }

    fn at<'a>(&'a self, name: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let table = self.table.iter().map(String::as_str);
        table.chain([name]).chain(rest.iter().copied()).collect()
    }
}

/// The settings that an entry has, with secrets hidden.
pub fn show_entry(loaded: &Loaded, name: &str, entry: &Value) -> Value {
    let all = loaded.show();
    let (Some(all), Some(written)) = (all["servers"][name].as_object(), entry.as_object()) else {
        return Value::Null;
    };
    let full = |key: &str| Loaded::setting(key, true).map_or_else(|| key.to_owned(), |(name, _)| name);
    let keys: Vec<String> = written.keys().map(|key| full(key)).collect();
    let shown = all.iter().filter(|(key, _)| keys.contains(key) || *key == "type");
    Value::Object(shown.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Fails if a name cannot be that of a server.
pub fn check_server_name(name: &str) -> Result<(), HostError> {
    let hint = "a name has letters, digits, `-` and `_`, and starts with a letter or digit";
    let parsed = ServerName::parse(name).map(drop);
    parsed.map_err(|error| HostError::usage(error.to_string(), Some(hint.to_owned())))
}

/// A path with `~` for the home folder.
pub fn shorten_path(path: &Path) -> String {
    let home = folder_in("HOME");
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// The config files of this run, the strongest one last, each with whether it is a project file.
fn files(configs: &[PathBuf]) -> Vec<(PathBuf, bool)> {
    if !configs.is_empty() {
        return configs.iter().map(|path| (path.clone(), false)).collect();
    }
    let env = Env::process();
    let sources = Source::discover(&working_folder(), &env, &TrustStore::user(&env));
    let project = sources
        .iter()
        .find_map(|source| source.project_path().map(Path::to_owned));
    let mut own: Vec<PathBuf> = Vec::new();
    own.extend((!cfg!(windows)).then(|| in_folder(Path::new("/etc/pegboard"))));
    own.extend(config_folder().ok().map(|folder| in_folder(&folder)));
    own.retain(|path| path.is_file());
    let own = own.into_iter().map(|path| (path, false));
    own.chain(project.map(|path| (path, true))).collect()
}

fn path_to_add(configs: &[PathBuf], is_project: bool) -> Result<PathBuf, HostError> {
    Ok(match configs.last() {
        Some(path) => path.clone(),
        None if is_project => in_folder(&working_folder()),
        None => in_folder(&config_folder()?),
    })
}

/// The config file in a folder, or the one to make there.
fn in_folder(folder: &Path) -> PathBuf {
    first_of(FILE_NAMES.into_iter(), folder)
}

/// The config file of our own in a folder, or the one to make there.
fn own_in_folder(folder: &Path) -> PathBuf {
    first_of(FILE_NAMES.into_iter().filter(|name| *name != FOREIGN), folder)
}

fn first_of(names: impl Iterator<Item = &'static str>, folder: &Path) -> PathBuf {
    let known = names.map(|name| folder.join(name)).find(|path| path.is_file());
    known.unwrap_or_else(|| folder.join(FILE_NAMES[0]))
}

fn is_approved(path: &Path) -> bool {
    let env = Env::process();
    let store = TrustStore::user(&env);
    let (Ok(file), Some(record)) = (ProjectFile::read(path, &env), store.record(path)) else {
        return false;
    };
    record.sha256 == file.digest()
}
