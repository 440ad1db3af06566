//! What is said of servers that are those of hosts, and of the secrets of the user.

use super::{
    Settings,
    hosts::{HostServers, approve_hint},
    hosts_found, join,
};

impl Settings {
    /// The servers of hosts, if they are those of this run.
    pub(crate) fn hosts(&self) -> Option<&HostServers> {
        self.hosts.as_ref()
    }

    /// The name of a server, with its hosts if it is one of theirs.
    pub(crate) fn marked_name(&self, name: &str) -> String {
        match self.hosts.as_ref().and_then(|hosts| hosts.source_of(name)) {
            Some(source) => format!("{name} ({source})"),
            None => name.to_owned(),
        }
    }

    /// Adds to a document which hosts the servers are of, if they are those of hosts.
    pub(crate) fn add_hosts_to(&self, document: &mut serde_json::Value) {
        if let (Some(hosts), Some(document)) = (&self.hosts, document.as_object_mut()) {
            document.insert("from_hosts".to_owned(), hosts.document());
        }
    }

    /// The note that no config was found and hosts' servers are used, and the names of those of this run that are not started.
    pub(crate) fn host_notes(&self) -> impl Iterator<Item = String> {
        let hosts = self.hosts.as_ref();
        let pending = hosts.and_then(|hosts| hosts.pending_names(|name| self.is_told(name)));
        let pending = pending.map(|names| format!("not approved to start: {names}; {}", approve_hint()));
        hosts.map(HostServers::note).into_iter().chain(pending)
    }

    /// The note for a door that serves the demo server although hosts have servers of their own.
    pub(crate) fn unused_hosts_note(&self) -> Option<String> {
        let found = self.is_demo.then(hosts_found).flatten()?;
        let sources = join(&found.sources());
        Some(format!(
            "the servers of {sources} are not served without a config; `pegboard init` writes one"
        ))
    }

    /// Whether the config refers to secrets of the user.
    pub(crate) fn uses_secrets(&self) -> bool {
        self.secrets.is_any()
    }
}
