//! The servers of hosts, which a run without a config uses after a person has agreed to start them.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf, sync::OnceLock};

use pegboard::{
    Env, Format, Loaded, ServerName,
    config::{Misconfigured, ProjectFile, Source, TrustError, TrustStore},
};
use pegboard_base::secret::names_secret;
use pegboard_hosts::{
    hosts::Folders,
    import::{AvailableServer, AvailableServers, find_unset},
    secret_reference, shorten_path, take_from_secret,
};
use serde_json::{Map, Value, json};

use super::{boards::set, folder::here, secrets::secret_store};
use crate::output::path_text;

/// How the names of approvals of hosts' servers begin, in the store of approvals.
const APPROVAL: &str = "host-server:";
/// What to do about servers that are not approved.
const APPROVE_HINT: &str =
    "`pegboard init` puts them into a config of yours; `--trust` starts them this time; at a terminal you are asked";
/// The same for a person who was asked and has said no.
const DECLINED_HINT: &str = "`pegboard init` puts them into a config of yours; `--trust` starts them this time";

/// Set when the user was asked whether servers of hosts may be started, and has said no. It holds for the rest of the command.
static IS_DECLINED: OnceLock<()> = OnceLock::new();

/// What to do about servers that are not approved.
pub(crate) fn approve_hint() -> &'static str {
    match IS_DECLINED.get() {
        Some(()) => DECLINED_HINT,
        None => APPROVE_HINT,
    }
}

/// Notes that the user was asked and has said no.
pub(crate) fn decline_hosts() {
    let _ = IS_DECLINED.set(());
}

/// The servers that the hosts on this machine have. Their files are only read, and nothing is started. `None` if they have none.
pub(crate) fn hosts_found() -> Option<AvailableServers> {
    let folders = Folders::for_process(here())?;
    let found = AvailableServers::find(&folders).ok()?;
    (!found.servers.is_empty()).then_some(found)
}

/// A server of a host that is not approved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingServer<'a> {
    pub(crate) server: &'a AvailableServer,
    /// What it starts or contacts.
    pub(crate) review: Option<&'a ProjectFile>,
    /// Whether it was approved before and has changed since.
    pub(crate) has_changed: bool,
}

/// The servers of hosts in a run without a config.
#[derive(Debug)]
pub(crate) struct HostServers {
    found: AvailableServers,
    /// What each server starts or contacts, as its host has it. `None` if it cannot be read.
    reviews: Vec<Option<ProjectFile>>,
    /// The names of those that are not approved.
    pending: BTreeSet<String>,
    /// Those of them that have changed since they were approved.
    changed: BTreeSet<String>,
}

impl HostServers {
    /// Finds the servers and their approvals. With `is_trusted` all are approved for this run. `None` if no host has a server.
    pub(super) fn find(is_trusted: bool) -> Option<Self> {
        let mut found = hosts_found()?;
        for server in &mut found.servers {
            run_in_home(&mut server.settings);
        }
        let reviews: Vec<Option<ProjectFile>> = found.servers.iter().map(review).collect();
        let trust = TrustStore::user(&Env::process());
        let (mut pending, mut changed) = (BTreeSet::new(), BTreeSet::new());
        for (server, review) in found.servers.iter().zip(&reviews) {
            let is_off = server.settings.get("enabled") == Some(&Value::Bool(false));
            let record = trust.named(&approval(&server.name));
            let digest = review.as_ref().map(ProjectFile::digest);
            let is_approved = record.is_some_and(|record| Some(record.sha256.as_str()) == digest);
            if is_off || is_trusted || is_approved {
                continue;
            }
            if record.is_some() {
                changed.insert(server.name.clone());
            }
            pending.insert(server.name.clone());
        }
        for server in &mut found.servers {
            take_known_secrets(&mut server.settings);
        }
        Some(Self {
            found,
            reviews,
            pending,
            changed,
        })
    }

    /// The configs of the servers that may be started, one for each file. Of the others nothing is expanded.
    pub(super) fn sources(&self) -> Vec<Source> {
        let config = |file| {
            let of_file = self.found.servers.iter().filter(|server| server.file == file);
            let approved = of_file.filter(|server| !self.pending.contains(&server.name));
            let servers = approved.map(|server| (server.name.clone(), Value::Object(server.settings.clone())));
            let servers: Map<String, Value> = servers.collect();
            Source::text(
                shorten_path(file),
                json!({"servers": servers}).to_string(),
                Some(Format::Json),
            )
        };
        self.found.files().into_iter().map(config).collect()
    }

    /// Adds the servers that are not approved, which cannot be used. Removes line numbers from problems, because the servers are of no config file.
    pub(super) fn add_pending(&self, loaded: &mut Loaded) {
        for problem in &mut loaded.problems {
            problem.line = None;
            // Their files stay as they are: a secret takes the place of a variable of its name.
            let variable = problem.variable.clone().unwrap_or_default();
            problem.hint = problem.hint.take().map(|hint| without_reference(&hint, &variable));
            for server in loaded.config.misconfigured.values_mut() {
                let problems = server.problems.iter_mut();
                problems.for_each(|problem| *problem = without_reference(problem, &variable));
            }
        }
        for file in self.found.files().into_iter().map(shorten_path) {
            let (with_line, without) = (format!("{file}:1: "), format!("{file}: "));
            let problems = loaded
                .config
                .misconfigured
                .values_mut()
                .flat_map(|server| &mut server.problems);
            problems.for_each(|problem| *problem = problem.replace(&with_line, &without));
        }
        for PendingServer { server, .. } in self.pending() {
            let Ok(name) = ServerName::parse(&server.name) else {
                continue;
            };
            let mut held = Misconfigured::default();
            held.why = format!("it is a server of {} that is not approved to start", server.source());
            held.problems = vec![approve_hint().to_owned()];
            held.pending_trust = Some(server.file.clone());
            held.transport = Some(transport(&server.settings));
            loaded.config.misconfigured.insert(name, held);
        }
    }

    /// The servers that are not approved.
    pub(crate) fn pending(&self) -> impl Iterator<Item = PendingServer<'_>> {
        let servers = self.found.servers.iter().zip(&self.reviews);
        let pending = servers.filter(|(server, _)| self.pending.contains(&server.name));
        pending.map(|(server, review)| PendingServer {
            server,
            review: review.as_ref(),
            has_changed: self.changed.contains(&server.name),
        })
    }

    /// Stores that a person has agreed to start these servers as they are now.
    pub(crate) fn approve(&self, names: &[String]) -> Result<(), TrustError> {
        let servers = self.found.servers.iter().zip(&self.reviews);
        let approved = servers.filter(|(server, _)| names.contains(&server.name));
        let approved = approved.filter_map(|(server, review)| {
            let description = json!({"hosts": server.source(), "target": server.target});
            Some((
                approval(&server.name),
                review.as_ref()?.digest().to_owned(),
                description,
            ))
        });
        TrustStore::user(&Env::process()).accept_named(approved.collect())
    }

    /// The servers whose settings have this reference, each with its hosts.
    pub(crate) fn users_of(&self, reference: &str) -> Vec<String> {
        let servers = self.found.servers.iter();
        let users = servers.filter(|server| Value::Object(server.settings.clone()).to_string().contains(reference));
        users
            .map(|server| format!("{} ({})", server.name, server.source()))
            .collect()
    }

    /// The hosts of a server, as in `Claude Desktop, Cursor`.
    pub(crate) fn source_of(&self, name: &str) -> Option<String> {
        self.found.get(name).map(AvailableServer::source)
    }

    /// Which hosts each server is of, for documents.
    pub(crate) fn document(&self) -> Value {
        let servers = self.found.servers.iter().map(|server| {
            let hosts: Vec<&str> = server.hosts.iter().map(|host| host.id).collect();
            let document =
                json!({"hosts": hosts, "file": path_text(&server.file), "approved": !self.pending.contains(&server.name)});
            (server.name.clone(), document)
        });
        Value::Object(servers.collect())
    }

    /// Adds to the document of a server what its host's file says of it.
    pub(crate) fn complete(&self, document: &mut Value) {
        let Some(server) = document["name"].as_str().and_then(|name| self.found.get(name)) else {
            return;
        };
        document["target"] = json!(server.target);
        document["origin"] = json!({"file": path_text(&server.file), "line": null});
    }

    /// What is said before anything else.
    pub(super) fn note(&self) -> String {
        let sources = join(&self.found.sources());
        let mut note = format!(
            "no config found, so these are the servers of {sources}; `pegboard init` puts them into a config and enters Pegboard there"
        );
        if self.found.refused > 0 {
            let _ = write!(
                note,
                "; {} more cannot be used, and `pegboard import --dry-run` says why",
                self.found.refused
            );
        }
        note
    }

    /// The names of those of these servers that are not approved, with their hosts.
    pub(super) fn pending_names(&self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let pending = self.pending().filter(|pending| is_meant(&pending.server.name));
        let names: Vec<String> = pending
            .map(|PendingServer { server, .. }| format!("{} ({})", server.name, server.source()))
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Takes back that a person has agreed to start servers of hosts. Returns how many there were.
pub(crate) fn forget_hosts(store: &mut TrustStore) -> Result<usize, TrustError> {
    store.forget_named(APPROVAL)
}

/// Names in a sentence.
pub(crate) fn join(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The transport of a server, as far as its settings tell it without being expanded.
fn transport(settings: &Map<String, Value>) -> &'static str {
    let text = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or_default();
    match (settings.contains_key("command"), text("type"), text("url")) {
        (true, ..) => "stdio",
        (_, "sse", _) => "sse",
        (_, _, url) if url.starts_with("ws:") || url.starts_with("wss:") => "websocket",
        (_, _, url) if url.trim_end_matches('/').ends_with("/sse") => "sse",
        _ => "http",
    }
}

fn approval(name: &str) -> String {
    format!("{APPROVAL}{name}")
}

/// Has a server run in the home folder, unless its host says where: in the folder of the command, a program, a module or a package of that folder could
/// take the place of the one that was approved.
fn run_in_home(settings: &mut Map<String, Value>) {
    if let Some(home) = set("HOME").filter(|_| settings.contains_key("command")) {
        // However the folder is written, it is the same one.
        let home: PathBuf = home.components().collect();
        settings
            .entry("cwd")
            .or_insert_with(|| home.display().to_string().into());
    }
}

/// A text about a variable that is not set, without the advice to write a reference to a secret of its name.
fn without_reference(text: &str, variable: &str) -> String {
    let advice = format!(", and `{}` reads it", secret_reference(variable));
    text.replace(&advice, ", which is enough")
}

/// What a server runs or contacts, with all settings that its host gives it and its environment file.
fn review(server: &AvailableServer) -> Option<ProjectFile> {
    let text = json!({"servers": {server.name.as_str(): server.settings}}).to_string();
    ProjectFile::from_json(&text, &server.file, set("HOME").as_deref(), &Env::process()).ok()
}

/// Takes values from the user's secrets that the host's file takes from variables which are not set here.
fn take_known_secrets(settings: &mut Map<String, Value>) {
    for variable in find_unset(settings).iter().filter(|name| names_secret(name)) {
        if secret_store().is_some_and(|store| store.has(variable)) {
            take_from_secret(settings, variable);
        }
    }
}
