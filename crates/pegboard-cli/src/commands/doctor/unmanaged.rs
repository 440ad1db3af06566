//! Servers in the config files of other programs: those that Pegboard does not manage, and those that a host has from both. They are only listed, never started.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use pegboard::{
    Config, Loaded,
    config::{ServerConfig, Transport},
};
use pegboard_hosts::{
    OwnEntries, ServersFile, executable,
    hosts::{self, Folders, Host},
    import::{Action, FilePlan, Row},
    install::reason_to_stay,
};
use serde_json::{Map, Value};

use super::{
    finding::{Finding, ReportSection},
    kinds,
};
use crate::{cli::Global, settings::here};

/// The most names that a finding lists.
const NAMED: usize = 5;

/// What the servers of hosts are compared with.
struct KnownServers<'a> {
    config: &'a Config,
    /// The servers of the config as they are written, by name.
    written: Map<String, Value>,
    own: OwnEntries,
}

/// Adds a finding for each file with servers that are not in the config, and for each with servers that Pegboard gives the host too.
pub(super) fn check(section: &mut ReportSection, global: &Global, loaded: &Loaded) {
    let known_servers = KnownServers {
        config: &loaded.config,
        written: read_servers(global),
        // Without the list, entries with a URL are taken for other servers.
        own: OwnEntries::load().unwrap_or_default(),
    };
    let Some(folders) = Folders::for_process(here()) else {
        return;
    };
    // Some hosts read each other's files, and the user's file is that of a project in the home folder.
    let mut known = BTreeSet::new();
    for host in hosts::HOSTS {
        for file in host.user_files(&folders) {
            if known.insert(file.clone()) {
                check_file(section, &known_servers, host, &file, None, &folders);
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
                    check_file(section, &known_servers, host, &file, Some(&project), &of_project);
                }
            }
        }
    }
}

/// The servers of the config files as they are written. A file that cannot be read has its own finding.
fn read_servers(global: &Global) -> Map<String, Value> {
    let files = ServersFile::all(&global.configs).unwrap_or_default();
    let mut servers = Map::new();
    for (name, server) in files.iter().flat_map(ServersFile::entries) {
        servers.entry(name).or_insert(server);
    }
    servers
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
fn check_file(
    section: &mut ReportSection,
    known: &KnownServers<'_>,
    host: &'static Host,
    file: &Path,
    project: Option<&Project<'_>>,
    folders: &Folders,
) {
    let folder = project.map(|project| project.folder);
    // A file that cannot be read is the other program's concern.
    let Some(plan) = FilePlan::make(host, file, folder, folders, &known.written, &known.own) else {
        return;
    };
    let (mut unmanaged, mut twice) = (Vec::new(), Vec::new());
    // What an import would do decides, so that the fixes have an effect.
    for row in plan.rows {
        let is_new = matches!(row.action, Action::Add(_) | Action::Replace(_));
        if is_new && !is_managed(known.config, &row.settings, |_| true) {
            unmanaged.push(format!("`{}`", row.original));
        } else if plan.has_pegboard && known.gives(&row) {
            twice.push(format!("`{}`", row.original));
        }
    }
    let command = |what: &str, takes: &str| match project {
        Some(Project { is_here: true, .. }) => format!("pegboard {what} --project {}{takes}", host.id),
        Some(Project { folder, .. }) => {
            format!(
                "cd {} && pegboard {what} --project {}{takes}",
                folder.display(),
                host.id
            )
        }
        None => format!("pegboard {what} {}{takes}", host.id),
    };
    let place = if project.is_some() { " in this project" } else { "" };
    if !unmanaged.is_empty() {
        let found = format!(
            "{} starts servers of its own{place}, by {}: {}",
            host.title,
            file.display(),
            show(&unmanaged)
        );
        // A copy here would be there twice in a host that uses Pegboard.
        let fix = match plan.has_pegboard {
            true => command("install", " --take-over"),
            false => command("import", ""),
        };
        section.add_finding(Finding::new(&kinds::UNMANAGED_SERVER, found).fix(fix));
    }
    if !twice.is_empty() {
        let found = format!(
            "{} uses Pegboard{place}, and also starts servers of the config itself, by {}: {}",
            host.title,
            file.display(),
            show(&twice)
        );
        section.add_finding(Finding::new(&kinds::SERVER_TWICE, found).fix(command("install", " --take-over")));
    }
}

impl KnownServers<'_> {
    /// Whether Pegboard gives a host the server that the host starts itself.
    fn gives(&self, row: &Row) -> bool {
        let is_in_use = row.settings.get("enabled") != Some(&Value::Bool(false));
        is_in_use
            && match &row.action {
                Action::Add(_) | Action::Replace(_) => is_managed(self.config, &row.settings, |server| server.enabled),
                Action::Same(name) => {
                    let here = self.written.get(name).and_then(Value::as_object);
                    let server = self.config.servers.get(name.as_str());
                    server.is_some_and(|server| server.enabled)
                        && reason_to_stay(row, here, &BTreeMap::new(), false).is_none()
                }
                Action::Skip(_) | Action::Refuse(_) => false,
            }
    }
}

/// The first names of a list, and how many more there are.
fn show(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    format!("{first}{more}")
}

/// Whether a server of the config that counts runs the same program, or connects to the same address.
fn is_managed(config: &Config, settings: &Map<String, Value>, counts: impl Fn(&ServerConfig) -> bool) -> bool {
    let text = |key: &str| settings.get(key).and_then(Value::as_str);
    let args: Vec<&str> = settings
        .get("args")
        .and_then(Value::as_array)
        .map(|args| args.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    config
        .servers
        .values()
        .filter(|server| counts(server))
        .any(|server| match &server.transport {
            Transport::Stdio(command) => {
                text("command").map(executable::shorten) == Some(executable::shorten(&command.program))
                    && command
                        .args
                        .iter()
                        .map(pegboard::Secret::expose)
                        .eq(args.iter().copied())
            }
            other @ Transport::Remote { .. } => {
                let url = other.endpoint().map(|endpoint| endpoint.url.expose().as_str());
                url.is_some_and(|url| {
                    text("url").is_some_and(|known| known.trim_end_matches('/') == url.trim_end_matches('/'))
                })
            }
        })
}
