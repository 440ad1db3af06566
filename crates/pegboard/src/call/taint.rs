//! Which untrusted servers an agent has read output of. Such output may contain instructions of an attacker.

use std::collections::BTreeSet;

use arc_swap::ArcSwap;

use pegboard_base::name::ServerName;

/// The most servers that are remembered. One is enough to restrict the view.
const MAX_SERVERS: usize = 64;

/// The untrusted servers whose output has reached the agent of a view.
#[derive(Debug, Default)]
pub(crate) struct TaintState(ArcSwap<BTreeSet<ServerName>>);

impl TaintState {
    /// Records that output of an untrusted server has reached the agent. Takes no lock if the server is known.
    pub(crate) fn mark(&self, server: &ServerName) {
        let is_known = |servers: &BTreeSet<ServerName>| servers.contains(server) || servers.len() >= MAX_SERVERS;
        if is_known(&self.0.load()) {
            return;
        }
        self.0.rcu(|servers| {
            let mut servers = BTreeSet::clone(servers);
            if !is_known(&servers) {
                servers.insert(server.clone());
            }
            servers
        });
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.0.load().is_empty()
    }

    pub(crate) fn servers(&self) -> Vec<ServerName> {
        self.0.load().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.0.store(std::sync::Arc::default());
    }
}
