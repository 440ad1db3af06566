//! The servers that the hosts on this machine have, as they would be named in an empty config. The hosts' files are only read.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    plan::{self, Action},
    sources,
};
use crate::{
    host_error::HostError,
    hosts::{Folders, Host},
};

/// The servers of all hosts of the user.
#[derive(Debug, Default)]
pub struct AvailableServers {
    /// One for each server, in the order in which they were found.
    pub servers: Vec<AvailableServer>,
    /// How many entries cannot be used, because they are not understood.
    pub refused: usize,
    /// The files that cannot be read, with the reasons.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// A server that one host has, or several.
#[derive(Debug, Clone)]
pub struct AvailableServer {
    /// Its name here.
    pub name: String,
    /// What it is in our config. What the host asks its user for is a variable.
    pub settings: Map<String, Value>,
    /// The hosts that have it.
    pub hosts: Vec<&'static Host>,
    /// The first file that it is in.
    pub file: PathBuf,
    /// What is started or contacted, with secrets hidden.
    pub target: String,
}

impl AvailableServer {
    /// The names of its hosts for people, as in `Claude Desktop, Cursor`.
    pub fn source(&self) -> String {
        let titles: Vec<&str> = self.hosts.iter().map(|host| host.title).collect();
        titles.join(", ")
    }
}

impl AvailableServers {
    /// Reads the files of the user. Pegboard's own entries are left out, and what a host uses only in other projects.
    pub fn find(folders: &Folders) -> Result<Self, HostError> {
        let files = sources::find(&[], false, folders)?;
        let found = sources::read(&files, folders, false)?;
        let unreadable = found.unreadable;
        let mut available = Self {
            unreadable,
            ..Self::default()
        };
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for row in plan::rows(Map::new(), found.servers, false) {
            match &row.action {
                Action::Add(name) | Action::Replace(name) => {
                    places.insert(name.clone(), available.servers.len());
                    available.servers.push(AvailableServer {
                        name: name.clone(),
                        settings: row.settings_with_answers(&BTreeMap::new()),
                        hosts: vec![row.host],
                        file: row.from,
                        target: row.target,
                    });
                }
                Action::Same(name) => {
                    let known = places.get(name).and_then(|at| available.servers.get_mut(*at));
                    if let Some(known) = known
                        && !known.hosts.iter().any(|host| host.id == row.host.id)
                    {
                        known.hosts.push(row.host);
                    }
                }
                Action::Refuse(_) => available.refused += 1,
                Action::Skip(_) => {}
            }
        }
        Ok(available)
    }

    /// The names of the hosts that have them, each once.
    pub fn sources(&self) -> Vec<&'static str> {
        let mut titles = Vec::new();
        for host in self.servers.iter().flat_map(|server| &server.hosts) {
            if !titles.contains(&host.title) {
                titles.push(host.title);
            }
        }
        titles
    }

    /// The server of this name.
    pub fn get(&self, name: &str) -> Option<&AvailableServer> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// The files that they are in, each once.
    pub fn files(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = Vec::new();
        for server in &self.servers {
            if !files.contains(&server.file.as_path()) {
                files.push(&server.file);
            }
        }
        files
    }
}
