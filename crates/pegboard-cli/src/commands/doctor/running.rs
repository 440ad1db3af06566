//! [`Running`]: the servers that the user's daemon runs already. They are asked through it, because a second process of a server that holds a lock
//! or a port would fail.

use std::collections::BTreeMap;

use pegboard::{
    Config, State,
    config::{Scope, Transport},
};
use serde::Deserialize;

use super::handshake::Handshake;
use crate::{
    commands::context::Context,
    daemon::RunningDaemon,
    settings::{self, Settings},
};

/// The daemon of the config, and the stdio servers that it runs.
#[derive(Debug)]
pub(super) struct Running {
    daemon: RunningDaemon,
    /// The servers that run or are starting.
    servers: BTreeMap<String, Row>,
    /// Why other servers do not run there.
    down: BTreeMap<String, String>,
}

/// What a daemon says of one of its servers.
#[derive(Debug, Clone, Deserialize)]
struct Row {
    name: String,
    state: State,
    pid: Option<u32>,
    #[serde(default)]
    ready_after_ms: Option<f64>,
    #[serde(default)]
    protocol_version: Option<String>,
    #[serde(default)]
    era: Option<String>,
    last_error: Option<RowError>,
}

#[derive(Debug, Clone, Deserialize)]
struct RowError {
    message: String,
}

#[derive(Debug, Deserialize)]
struct Rows {
    servers: Vec<Row>,
}

impl Running {
    /// The servers of `config` in a daemon. `None` without a daemon.
    pub(super) async fn find(context: &Context<'_>, settings: &Settings, config: &Config) -> Option<Self> {
        let daemon = context.running_servers(settings).await.daemon?;
        let is_shared = |row: &Row| {
            let server = config.servers.iter().find(|(name, _)| name.as_str() == row.name);
            // Each client has a process of its own of the others, and a remote server accepts more than one connection.
            server.is_some_and(|(_, server)| {
                matches!(server.transport, Transport::Stdio(_)) && server.policy.scope != Scope::Session
            })
        };
        let mut servers = rows(&daemon).await;
        let is_down = |row: &&Row| matches!(row.state, State::Down | State::CrashLooping);
        let down = servers.values().filter(is_down);
        let down = down.filter_map(|row| Some((row.name.clone(), row.last_error.clone()?.message)));
        let down = down.collect();
        servers.retain(|_, row| matches!(row.state, State::Ready | State::Connecting) && is_shared(row));
        Some(Self { daemon, servers, down })
    }

    /// Why a server is down in the daemon.
    pub(super) fn outage(&self, name: &str) -> Option<&str> {
        self.down.get(name).map(String::as_str)
    }

    /// Whether any server is asked through the daemon.
    pub(super) fn has_any(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Moves these servers out of a config, into that of a board which reaches them through the daemon.
    pub(super) fn split(&self, config: &mut Config) -> (RunningDaemon, Config) {
        let mut held = config.clone();
        held.servers.retain(|name, _| self.servers.contains_key(name.as_str()));
        config
            .servers
            .retain(|name, _| !self.servers.contains_key(name.as_str()));
        (self.daemon.clone(), settings::with_lazy_start(held))
    }

    /// Reads again what the daemon says of the servers: some were starting.
    pub(super) async fn refresh(&mut self) {
        for (name, row) in rows(&self.daemon).await {
            if let Some(own) = self.servers.get_mut(&name) {
                *own = row;
            }
        }
    }

    /// What the daemon settled with a server. The board that reaches it through the daemon has settled something else.
    pub(super) fn handshake(&self, name: &str) -> Option<Handshake> {
        let row = self.servers.get(name)?;
        let process = row.pid.map(|pid| format!("process {pid} of "));
        Some(Handshake {
            took_ms: row.ready_after_ms,
            place: Some(format!("{}the daemon", process.unwrap_or_default())),
            version: row.protocol_version.clone(),
            era: row.era.clone(),
        })
    }
}

/// What a daemon says of the servers that all its clients share.
async fn rows(daemon: &RunningDaemon) -> BTreeMap<String, Row> {
    let status = daemon.status().await.unwrap_or_default();
    let rows = serde_json::from_value(status).unwrap_or(Rows { servers: Vec::new() });
    rows.servers.into_iter().map(|row| (row.name.clone(), row)).collect()
}
