//! Servers in the config files of other programs that Pegboard does not manage. They are only listed, never started.

use std::{collections::BTreeSet, path::Path};

use pegboard::{Config, Loaded, config::Transport};
use serde_json::{Map, Value};

use super::{
    finding::{Finding, Section},
    kinds,
};
use crate::{
    document::Document,
    hosts::{self, Folders, Host},
    settings::here,
};

/// The most names that a finding lists.
const NAMED: usize = 5;

/// Adds one finding for each file with servers that are not in the config.
pub(super) fn check(section: &mut Section, loaded: &Loaded) {
    let config = &loaded.config;
    let Some(folders) = Folders::of_process(here()) else {
        return;
    };
    // Some hosts read each other's files, and the user's file is that of a project in the home folder.
    let mut known = BTreeSet::new();
    for host in hosts::HOSTS {
        for file in host.user_files(&folders) {
            if known.insert(file.clone()) {
                of_file(section, config, host, &file, None, &folders);
            }
        }
    }
    for project in projects(&folders.here) {
        let mut of_project = folders.clone();
        project.clone_into(&mut of_project.here);
        for host in hosts::HOSTS {
            for file in host.project_files(&of_project) {
                if known.insert(file.clone()) && !is_read(loaded, &file) {
                    let project = Project {
                        folder: project,
                        is_here: project == folders.here,
                    };
                    of_file(section, config, host, &file, Some(&project), &of_project);
                }
            }
        }
    }
}

/// A folder with a host's file of a project.
struct Project<'a> {
    folder: &'a Path,
    is_here: bool,
}

/// The working folder and those above it, up to the repository that it is in; only itself if it is in none.
fn projects(here: &Path) -> Vec<&Path> {
    let is_repository = |folder: &&Path| folder.join(".git").exists();
    match here.ancestors().position(|folder| is_repository(&folder)) {
        Some(depth) => here.ancestors().take(depth + 1).collect(),
        None => vec![here],
    }
}

/// Whether Pegboard reads a file itself, as it does with `.mcp.json` of a project, or would if it were approved.
fn is_read(loaded: &Loaded, file: &Path) -> bool {
    let is_pending = loaded.pending_trust.iter().any(|pending| pending.file == file);
    is_pending || loaded.sources.iter().any(|source| Path::new(source) == file)
}

/// Adds a finding for a file of a host, which may be one of a project.
fn of_file(
    section: &mut Section,
    config: &Config,
    host: &Host,
    file: &Path,
    project: Option<&Project<'_>>,
    folders: &Folders,
) {
    // A file that cannot be read is the other program's concern.
    let Some(content) = Document::open(file).ok().and_then(|document| document.get(&[])) else {
        return;
    };
    let listed = hosts::servers_in(host, &content, folders, project.map(|project| project.folder)).into_iter();
    let unmanaged = listed.filter(|server| {
        let settings = server.imported.as_ref().map(|imported| &imported.settings);
        !server.is_pegboard && settings.is_ok_and(|settings| !is_managed(config, settings))
    });
    let names: Vec<String> = unmanaged.map(|server| format!("`{}`", server.name)).collect();
    if names.is_empty() {
        return;
    }
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    section.found(
        Finding::new(
            &kinds::UNMANAGED_SERVER,
            format!(
                "{} starts servers of its own{}, by {}: {shown}{more}",
                host.title,
                if project.is_some() { " in this project" } else { "" },
                file.display()
            ),
        )
        .fix(match project {
            Some(Project { is_here: true, .. }) => format!("pegboard import --project {}", host.id),
            Some(Project { folder, .. }) => format!("cd {} && pegboard import --project {}", folder.display(), host.id),
            None => format!("pegboard import {}", host.id),
        }),
    );
}

/// Whether a server of the config runs the same program, or connects to the same address.
fn is_managed(config: &Config, settings: &Map<String, Value>) -> bool {
    let text = |key: &str| settings.get(key).and_then(Value::as_str);
    let args: Vec<&str> = settings
        .get("args")
        .and_then(Value::as_array)
        .map(|args| args.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    config.servers.values().any(|server| match &server.transport {
        Transport::Stdio(command) => {
            text("command") == Some(command.program.as_str())
                && command
                    .args
                    .iter()
                    .map(pegboard::Secret::expose)
                    .eq(args.iter().copied())
        }
        other => {
            let url = other.endpoint().map(|endpoint| endpoint.url.expose().as_str());
            url.is_some_and(|url| {
                text("url").is_some_and(|known| known.trim_end_matches('/') == url.trim_end_matches('/'))
            })
        }
    })
}
