//! What must happen for the servers that run to become the servers that are wanted: a list of changes, which the board carries out.

use std::collections::BTreeMap;

use crate::{
    config::{Limits, Policy, ServerConfig},
    name::ServerName,
};

/// One thing to do. Every change but `Remove` carries the whole new config of its server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// The server is no longer configured: end it.
    Remove(ServerName),
    /// It is not to be used for now: end its connection and keep its place.
    Disable(ServerName, Box<ServerConfig>),
    /// Nothing that its connection depends on has changed: go on with it under the new settings.
    Retune(ServerName, Box<ServerConfig>),
    /// It is reached or spoken to in another way: end its connection and make a new one.
    Replace(ServerName, Box<ServerConfig>),
    /// It is to be used again: start it as the config says.
    Enable(ServerName, Box<ServerConfig>),
    /// It is new.
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

    /// What ends comes before what begins, so that a port or a lock is free for whoever takes it over.
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

/// The changes that turn `running` into `wanted`, at max_servers one for each server, in the order in which they are to be carried out.
pub(crate) fn reconcile(
    running: &BTreeMap<ServerName, ServerConfig>,
    wanted: &BTreeMap<ServerName, ServerConfig>,
) -> Vec<Change> {
    let gone = running.keys().filter(|name| !wanted.contains_key(*name));
    let mut changes: Vec<_> = gone.map(|name| Change::Remove(name.clone())).collect();
    for (name, new) in wanted {
        let (name, config) = (name.clone(), || Box::new(new.clone()));
        changes.extend(match running.get(&name) {
            None => Some(Change::Add(name, config())),
            Some(old) if old == new => None,
            Some(old) => Some(match (old.enabled, new.enabled) {
                (true, false) => Change::Disable(name, config()),
                (false, true) => Change::Enable(name, config()),
                // There is no connection that could be in the way.
                (false, false) => Change::Retune(name, config()),
                (true, true) if same_connection(old, new) => Change::Retune(name, config()),
                (true, true) => Change::Replace(name, config()),
            }),
        });
    }
    // Both maps are in order of names, and a stable sort keeps that order within each kind.
    changes.sort_by_key(Change::rank);
    changes
}

/// Whether a connection made under `old` serves `new` as well.
///
/// What is named here can change under a connection. Everything else is taken to belong to it, so a setting that somebody adds and
/// forgets here costs a restart and not a stale connection.
pub(super) fn same_connection(old: &ServerConfig, new: &ServerConfig) -> bool {
    let tuned = ServerConfig {
        enabled: new.enabled,
        required: new.required,
        start: new.start,
        allow: new.allow.clone(),
        deny: new.deny.clone(),
        description: new.description.clone(),
        instructions: new.instructions.clone(),
        // Whether there are roots at all is said once, when a connection is made.
        roots: if old.roots.is_empty() || new.roots.is_empty() {
            old.roots.clone()
        } else {
            new.roots.clone()
        },
        // The wire holds on to these three from its beginning to its end.
        limits: Limits {
            message_bytes: old.limits.message_bytes,
            write: old.limits.write,
            stop: old.limits.stop,
            ..new.limits
        },
        policy: Policy {
            scope: old.policy.scope,
            ..new.policy.clone()
        },
        ..old.clone()
    };
    tuned == *new
}

#[cfg(test)]
mod tests;
