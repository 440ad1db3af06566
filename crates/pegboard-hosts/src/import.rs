//! Plans the import of hosts' servers into a config file of Pegboard, and writes it.
//!
//! `sources` finds the files and reads their servers, `plan` decides about the name of each with the help of `identity`, which tells
//! whether two entries are the same server; `available` lists what there is without a config, `usable` finds the variables that they need, and `write` edits the config file.

mod available;
mod fingerprint;
mod plan;
mod sources;
mod usable;
mod write;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{
    host_error::HostError,
    hosts::{Folders, Host},
    own_entries::OwnEntries,
    servers_file::ServersFile,
};
pub use available::{AvailableServer, AvailableServers};
pub use plan::{Action, Plan, Row};
use sources::HostFile;
pub use usable::find_unset;
pub use write::save;

/// What to import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions<'a> {
    /// The names of hosts, or files as `FILE` or `HOST:FILE`; all hosts if it is empty.
    pub from: &'a [String],
    /// Whether to read the hosts' files of the project in the working folder, and to write to its config.
    pub is_project: bool,
    /// Whether to import also what a host uses only in other projects.
    pub all: bool,
    /// Whether to replace servers of the same name.
    pub force: bool,
}

impl Plan {
    /// Reads the hosts' files and decides what to write. `configs` are the config files of Pegboard that the user named.
    pub fn make(configs: &[PathBuf], options: &ImportOptions<'_>, folders: &Folders) -> Result<Self, HostError> {
        let target = ServersFile::to_import(configs, options.is_project)?;
        let files = sources::find(options.from, options.is_project, folders)?;
        let found = sources::read(&files, folders, options.all)?;
        Ok(Self::new(target, found, options.force))
    }
}

/// What an import would do with the servers of one file.
#[derive(Debug)]
pub struct FilePlan {
    /// One for each server of the file.
    pub rows: Vec<Row>,
    /// Whether one of them is Pegboard itself.
    pub has_pegboard: bool,
}

impl FilePlan {
    /// Reads a file of a host, which may be that of a project, and compares its servers with the `known` ones of the config. `None` if it
    /// cannot be read.
    pub fn make(
        host: &'static Host,
        file: &Path,
        project: Option<&Path>,
        folders: &Folders,
        known: &Map<String, Value>,
        own: &OwnEntries,
    ) -> Option<Self> {
        let content = sources::read_file(file).ok()?;
        let file = HostFile::new(host, file.to_owned(), project.map(Path::to_owned));
        let found = sources::servers_of(&file, &content, folders, own, false);
        Some(Self {
            has_pegboard: found.iter().any(|one| one.server.is_pegboard),
            rows: plan::rows(known.clone(), found, false),
        })
    }
}
