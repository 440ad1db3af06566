//! The names of lines of the log that programs look for. `docs/reference/log.md` has the same table.
//!
//! A name is that of the `tracing` event: `tracing::info!(name: log_event::SERVER_READY, …)`. A line without one of these names has the module
//! that wrote it as its event.

/// A line of the log that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEvent {
    /// The name. It never changes.
    pub name: &'static str,
    /// Whether `pegboard serve` shows the line by default. A line at the level `info` that it does not show needs `-v`.
    pub is_shown: bool,
    /// When the line is written.
    pub when: &'static str,
}

/// Declares the names, and the list of all of them.
macro_rules! log_events {
    ($( $id:ident = $name:literal $is_shown:ident $when:literal; )+) => {
        $( #[doc = $when] pub const $id: &str = $name; )+

        /// All of them.
        pub const ALL: &[LogEvent] = &[$( LogEvent { name: $name, is_shown: log_events!(@ $is_shown), when: $when } ),+];
    };
    (@ shown) => { true };
    (@ hidden) => { false };
}

log_events! {
    GATEWAY_STARTED = "gateway.started" shown "`pegboard serve` listens.";
    GATEWAY_STOPPING = "gateway.stopping" shown "`pegboard serve` ends, and why. Requests in flight are answered.";
    GATEWAY_STOPPED = "gateway.stopped" shown "It has ended, and its servers with it.";
    CONFIG_RELOADED = "config.reloaded" shown "A changed config was applied.";
    CONFIG_NOT_RELOADED = "config.not_reloaded" shown "A changed config cannot be applied. Nothing has changed.";
    CONFIG_SERVER_FAILED = "config.server_failed" shown "A server of the new config does not work.";
    STORE_FAILED = "store.failed" shown "The store of the replicas does not answer.";
    STORE_RECOVERED = "store.recovered" shown "It answers again.";
    SERVER_READY = "server.ready" shown "A server was started and has listed its tools.";
    SERVER_START_FAILED = "server.start_failed" shown "A server was not started. A failure that is not tried again by itself is reported once.";
    SERVER_CONNECTION_LOST = "server.connection_lost" shown "The connection to a server or its process has ended: how, its last words, and when it is started again.";
    SERVER_CRASH_LOOP = "server.crash_loop" shown "A server ends again and again, so the next start waits.";
    SERVER_PROBE_FAILED = "server.probe_failed" shown "A server did not answer a health probe.";
    SERVER_STOPPED = "server.stopped" shown "A server that nobody uses was stopped until it is needed.";
    SERVER_CHANGED = "server.changed" shown "A client has changed a server over the HTTP API.";
    PROCESS_ENDED = "process.ended" hidden "The process of a server has ended, also one that was stopped.";
    CATALOG_CHANGED = "catalog.changed" shown "A server lists other tools, resources or prompts.";
    DEFINITIONS_FLAGGED = "definitions.flagged" shown "Definitions are not as they were pinned, or look like attacks.";
    BREAKER_OPENED = "breaker.opened" shown "Calls of a server fail at once from now on, because too many have failed.";
    BREAKER_CLOSED = "breaker.closed" shown "Calls of the server are made again.";
    SIGN_IN_NEEDED = "sign_in.needed" shown "A server is not started before a person signs in.";
    SIGN_IN_CHANGED = "sign_in.changed" shown "A person has signed in to a server, or out of it.";
    CLIENT_REFUSED = "client.refused" hidden "A client was refused: its access token, or a process at the local socket.";
    AUDIT_FAILED = "audit.failed" shown "The audit log cannot be written. At most once a minute.";
    AUDIT_RECOVERED = "audit.recovered" shown "It is written again.";
    ACCESS_LOG_FAILED = "access_log.failed" shown "The access log cannot be written, so its lines are lost. At most once a minute.";
    ACCESS_LOG_RECOVERED = "access_log.recovered" shown "It is written again, and how many lines were lost.";
}

/// Whether `pegboard serve` shows a line of this name by default, if it is one for information.
pub fn is_shown(name: &str) -> bool {
    ALL.iter().any(|event| event.name == name && event.is_shown)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_documentation_has_every_name() {
        let document = fs::read_to_string(root().join("docs/reference/log.md")).unwrap();
        let (_, table) = document.split_once("| event | by default | when |").expect("the table");
        let rows: Vec<&str> = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with("| `"))
            .collect();
        let expected: Vec<String> = ALL
            .iter()
            .map(|event| {
                let shown = if event.is_shown { "yes" } else { "with `-v`" };
                format!("| `{}` | {shown} | {} |", event.name, event.when)
            })
            .collect();
        assert_eq!(rows, expected, "the table should be:\n{}", expected.join("\n"));
    }

    /// The Rust files of a folder.
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_name_is_declared_here_and_in_use() {
        let mut sources = Vec::new();
        for entry in fs::read_dir(root().join("crates")).unwrap() {
            files(&entry.unwrap().path().join("src"), &mut sources);
        }
        let mut used = BTreeSet::new();
        for source in &sources {
            let text = fs::read_to_string(source).unwrap();
            for level in ["trace", "debug", "info", "warn", "error"] {
                let start = format!("tracing::{level}!(");
                let events = text.split(&start).skip(1);
                let names = events.filter_map(|event| event.trim_start().strip_prefix("name:"));
                for name in names {
                    let name = name.trim_start().split(',').next().unwrap_or_default();
                    let constant = name.strip_prefix("log_event::");
                    let constant = constant.unwrap_or_else(|| panic!("{}: {name}", source.display()));
                    used.insert(constant.to_owned());
                }
            }
        }
        let name_of = |constant: &str| constant.to_lowercase();
        let declared: BTreeSet<String> = ALL.iter().map(|event| event.name.replace('.', "_")).collect();
        let used: BTreeSet<String> = used.iter().map(|constant| name_of(constant)).collect();
        assert_eq!(used, declared);
    }
}
