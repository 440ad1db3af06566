//! Compares the running servers with a new config. The result is a list of changes, which the board carries out.

use std::collections::BTreeMap;

use pegboard_base::name::ServerName;
use pegboard_config::ServerConfig;

/// One change. All but `Remove` carry the server's complete new config.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// The server is no longer configured: remove it.
    Remove(ServerName),
    /// The server is disabled: close its connection and keep its slot.
    Disable(ServerName, Box<ServerConfig>),
    /// No connection setting has changed: apply the new settings to the running server.
    Retune(ServerName, Box<ServerConfig>),
    /// A connection setting has changed: replace the server.
    Replace(ServerName, Box<ServerConfig>),
    /// The server is enabled: start it as its config says.
    Enable(ServerName, Box<ServerConfig>),
    /// The server is new.
    Add(ServerName, Box<ServerConfig>),
}

impl Change {
    /// The server that changes.
    #[cfg(test)]
    pub(crate) fn server(&self) -> &ServerName {
        match self {
            Self::Remove(name)
            | Self::Disable(name, _)
            | Self::Retune(name, _)
            | Self::Replace(name, _)
            | Self::Enable(name, _)
            | Self::Add(name, _) => name,
        }
    }

    /// The order of changes. Servers are stopped before others are started, so that ports and locks are free.
    fn rank(&self) -> u8 {
        match self {
            Self::Remove(_) => 0,
            Self::Disable(..) => 1,
            Self::Retune(..) => 2,
            Self::Replace(..) => 3,
            Self::Enable(..) => 4,
            Self::Add(..) => 5,
        }
    }
}

/// The changes that turn `running` into `wanted`, at most one for each server, in the order in which to carry them out.
pub(crate) fn reconcile(
    running: &BTreeMap<ServerName, ServerConfig>,
    wanted: &BTreeMap<ServerName, ServerConfig>,
) -> Vec<Change> {
    let removed = running.keys().filter(|name| !wanted.contains_key(*name));
    let mut changes: Vec<_> = removed.map(|name| Change::Remove(name.clone())).collect();
    for (name, new) in wanted {
        let (name, config) = (name.clone(), || Box::new(new.clone()));
        changes.extend(match running.get(&name) {
            None => Some(Change::Add(name, config())),
            Some(old) if old == new => None,
            Some(old) => Some(match (old.enabled, new.enabled) {
                (true, false) => Change::Disable(name, config()),
                (false, true) => Change::Enable(name, config()),
                // There is no connection to replace.
                (false, false) => Change::Retune(name, config()),
                (true, true) if old.serves(new) => Change::Retune(name, config()),
                (true, true) => Change::Replace(name, config()),
            }),
        });
    }
    // Both maps are ordered by name, and a stable sort keeps that order within each kind.
    changes.sort_by_key(Change::rank);
    changes
}

#[cfg(test)]
mod tests;
