//! Finds the files to import from, and reads their servers.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    document::Document,
    host_error::HostError,
    hosts::{self, Folders, HOSTS, Host, Listed},
    own_entries::OwnEntries,
};

/// A file of a host.
#[derive(Debug)]
pub(super) struct HostFile {
    pub(super) host: &'static Host,
    pub(super) path: PathBuf,
    /// The folder of the project that the file belongs to.
    pub(super) project: Option<PathBuf>,
    /// Whether the user named it, by its path or by its host.
    is_named: bool,
    /// Whether the host is only guessed from the file.
    is_guessed: bool,
}

impl HostFile {
    /// A file in one of the places where the host has its files.
    pub(super) fn new(host: &'static Host, path: PathBuf, project: Option<PathBuf>) -> Self {
        Self {
            host,
            path,
            project,
            is_named: false,
            is_guessed: false,
        }
    }

    /// What the file is called in a table.
    fn label(&self) -> String {
        match self.path.file_name().filter(|_| self.is_guessed) {
            Some(name) => name.to_string_lossy().into_owned(),
            None => self.host.title.to_owned(),
        }
    }
}

/// A server of a host, or a file that could not be read.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) host: &'static Host,
    pub(super) path: PathBuf,
    pub(super) label: String,
    pub(super) server: Listed,
    /// Whether it belongs to another project than the working folder.
    pub(super) is_elsewhere: bool,
}

/// The servers of all files.
#[derive(Debug, Default)]
pub(super) struct FoundServers {
    pub(super) servers: Vec<FoundServer>,
    pub(super) unreadable: Vec<(PathBuf, String)>,
    pub(super) files: usize,
}

/// The files that the arguments name, or those of all hosts.
pub(super) fn find(from: &[String], is_project: bool, folders: &Folders) -> Result<Vec<HostFile>, HostError> {
    let of = |host: &'static Host| -> Vec<HostFile> {
        let (files, project) = match is_project {
            true => (host.project_files(folders), Some(folders.here.clone())),
            false => (host.user_files(folders), None),
        };
        let file = |path| HostFile::new(host, path, project.clone());
        files.into_iter().map(file).collect()
    };
    if from.is_empty() {
        return Ok(HOSTS.iter().flat_map(of).collect());
    }
    let mut found = Vec::new();
    for one in from {
        match hosts::find(one) {
            Some(host) => {
                let files = of(host);
                if files.is_empty() {
                    return Err(no_file_error(host, is_project, folders));
                }
                found.extend(files.into_iter().map(|file| HostFile { is_named: true, ..file }));
            }
            None => found.push(find_named(one, folders)?),
        }
    }
    // A file that is named twice is read once.
    let mut known = BTreeSet::new();
    found.retain(|file| known.insert((file.host.id, file.path.clone())));
    Ok(found)
}

fn no_file_error(host: &Host, is_project: bool, folders: &Folders) -> HostError {
    let looked: Vec<String> = match is_project {
        true => host.project.iter().map(|name| (*name).to_owned()).collect(),
        false => (host.user)(folders)
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    };
    HostError::usage(
        format!("{} has no config file here", host.title),
        Some(format!("looked for {}", looked.join(", "))),
    )
}

/// A file that is named by its path.
fn find_named(name: &str, folders: &Folders) -> Result<HostFile, HostError> {
    // `HOST:FILE` tells whose file it is.
    let told = name
        .split_once(':')
        .and_then(|(host, file)| Some((hosts::find(host)?, file)));
    let file = told.map_or(name, |(_, file)| file);
    // The shell expands it at the beginning of a word only.
    let path = match file.strip_prefix("~/").filter(|_| told.is_some()) {
        Some(rest) => &folders.home.join(rest),
        None => Path::new(file),
    };
    if !path.is_file() {
        let known: Vec<&str> = HOSTS.iter().map(|host| host.id).collect();
        return Err(HostError::usage(
            format!("`{name}` is neither a file nor a host"),
            Some(format!("the hosts are {}", known.join(", "))),
        ));
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let by_content = || {
        let document = read_file(&path).unwrap_or_default();
        let id = match () {
            () if document.get("context_servers").is_some() => "zed",
            () if document.get("extensions").is_some() => "goose",
            () if document.get("mcp_servers").is_some() => "codex",
            () if document.get("mcpServers").is_some_and(Value::is_array) => "continue",
            () if document.get("mcpServers").is_some() => "claude",
            () if document.get("servers").is_some() => "vscode",
            () if document.get("mcp").is_some() => "opencode",
            () => "claude",
        };
        hosts::find(id)
    };
    let host = told
        .map(|(host, _)| host)
        .or_else(|| hosts::find_by_file(&path, folders))
        .or_else(by_content)
        .ok_or_else(|| HostError::usage(format!("{name} is not the config file of a known host"), None))?;
    let is_of_user = host.user_files(folders).contains(&path);
    let is_project = !is_of_user && host.project.iter().any(|name| path.ends_with(name));
    let project = is_project.then(|| host.project.iter().find(|name| path.ends_with(name)));
    let project = project.flatten().and_then(|name| {
        let depth = Path::new(name).components().count();
        path.ancestors().nth(depth).map(Path::to_owned)
    });
    Ok(HostFile {
        host,
        path,
        project,
        is_named: true,
        is_guessed: told.is_none() && !is_of_user,
    })
}

/// Reads the servers of the files. A file that cannot be read does not keep the others from being read, unless the user named it.
pub(super) fn read(files: &[HostFile], folders: &Folders, all: bool) -> Result<FoundServers, HostError> {
    let mut found = FoundServers {
        files: files.len(),
        ..FoundServers::default()
    };
    let own = OwnEntries::load()?;
    for file in files {
        let document = match read_file(&file.path) {
            Ok(document) => document,
            Err(problem) if file.is_named => {
                return Err(HostError::usage(format!("the file cannot be read: {problem}"), None));
            }
            Err(problem) => {
                found.unreadable.push((file.path.clone(), problem));
                continue;
            }
        };
        found.servers.extend(servers_of(file, &document, folders, &own, all));
    }
    Ok(found)
}

/// The servers in the content of a file. Without `all`, those of other projects than the working folder are elsewhere.
pub(super) fn servers_of(
    file: &HostFile,
    content: &Value,
    folders: &Folders,
    own: &OwnEntries,
    all: bool,
) -> Vec<FoundServer> {
    let listed = hosts::servers_in(file.host, content, folders, file.project.as_deref());
    let found = listed.into_iter().map(|mut server| {
        server.is_pegboard |= own.has(&file.path, &server.name, &server.entry);
        let project = server.project.as_deref();
        FoundServer {
            host: file.host,
            path: file.path.clone(),
            label: file.label(),
            is_elsewhere: !all && project.is_some_and(|project| Path::new(project) != folders.here),
            server,
        }
    });
    found.collect()
}

/// The whole content of a file.
pub(super) fn read_file(path: &Path) -> Result<Value, String> {
    let document = Document::open(path).map_err(|error| error.to_string())?;
    Ok(document.get(&[]).unwrap_or_default())
}
