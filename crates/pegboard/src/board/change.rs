//! Changes while the board runs: a new config is compared with the old one, and only what differs is touched.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Pegboard, start_if_wanted};
use crate::{
    config::{Config, ServerConfig},
    name::ServerName,
    server::Server,
};

/// What a new config has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that are gone.
    pub removed: Vec<ServerName>,
    /// Servers that are reached in another way and were started anew.
    pub replaced: Vec<ServerName>,
    /// Servers whose settings changed while their process or connection stayed.
    pub retuned: Vec<ServerName>,
}

impl Pegboard {
    /// Makes the board what `config` says. Servers that did not change keep their process; the others are ended in good order. Servers in
    /// this process stay.
    pub async fn apply(&self, config: Config) -> Applied {
        let mut applied = Applied::default();
        let mut ended: Vec<Server> = Vec::new();
        let running: BTreeMap<ServerName, Server> = self.configured_servers();
        for (name, server) in &running {
            if !config.servers.contains_key(name) {
                ended.extend(self.0.shelf.take(name));
                applied.removed.push(server.name().clone());
            }
        }
        for (name, wanted) in config.servers {
            match running.get(&name).map(|server| compare(&server.config(), &wanted)) {
                None => {
                    self.put(name.clone(), wanted);
                    applied.added.push(name);
                }
                Some(Difference::None) => {}
                Some(Difference::Settings) => {
                    if let Some(server) = running.get(&name) {
                        self.retune(server, wanted);
                    }
                    applied.retuned.push(name);
                }
                Some(Difference::Connection) => {
                    ended.extend(self.put(name.clone(), wanted));
                    applied.replaced.push(name);
                }
            }
        }
        futures_util::future::join_all(ended.iter().map(Server::close)).await;
        applied
    }

    /// Adds one server, or replaces the one that has its name.
    pub async fn connect(&self, name: ServerName, config: ServerConfig) {
        if let Some(old) = self.put(name, config) {
            old.close().await;
        }
    }

    /// Takes one server off the board and ends it. `false` when there is none of that name.
    pub async fn disconnect(&self, name: &ServerName) -> bool {
        match self.0.shelf.take(name) {
            Some(server) => {
                server.close().await;
                true
            }
            None => false,
        }
    }

    /// Starts one server anew, whatever its state. `false` when there is none of that name.
    pub fn reconnect(&self, name: &ServerName) -> bool {
        self.with(name, Server::reconnect)
    }

    /// Lists one server again. `false` when there is none of that name.
    pub fn refresh(&self, name: &ServerName) -> bool {
        self.with(name, Server::refresh)
    }

    /// Switches one server on. `false` when there is none of that name.
    pub fn enable(&self, name: &ServerName) -> bool {
        self.with(name, |server| server.enable(true))
    }

    /// Switches one server off: its process ends and its tools disappear. `false` when there is none of that name.
    pub fn disable(&self, name: &ServerName) -> bool {
        self.with(name, |server| server.enable(false))
    }

    fn with(&self, name: &ServerName, act: impl FnOnce(&Server)) -> bool {
        match self.0.shelf.get(name) {
            Some(server) => {
                act(&server);
                true
            }
            None => false,
        }
    }

    fn put(&self, name: ServerName, config: ServerConfig) -> Option<Server> {
        let server = self.0.maker.configured(name, config);
        start_if_wanted(&server);
        self.0.shelf.put(server)
    }

    fn retune(&self, server: &Server, wanted: ServerConfig) {
        let was_enabled = server.config().enabled;
        let is_enabled = wanted.enabled;
        server.retune(wanted);
        if was_enabled != is_enabled {
            server.enable(is_enabled);
        }
        self.0.shelf.touch();
    }

    fn configured_servers(&self) -> BTreeMap<ServerName, Server> {
        let servers = self.0.shelf.all();
        let configured = servers.iter().filter(|server| server.is_configured());
        configured
            .map(|server| (server.name().clone(), server.clone()))
            .collect()
    }
}

/// How far two configs of one server differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    None,
    /// Nothing that the connection depends on.
    Settings,
    /// The way to the server, or what is agreed on in its handshake.
    Connection,
}

fn compare(running: &ServerConfig, wanted: &ServerConfig) -> Difference {
    if running == wanted {
        return Difference::None;
    }
    // Everything else is part of the connection, so that a setting that is forgotten here costs a restart and not a surprise.
    let mut tuned = running.clone();
    tuned.allow.clone_from(&wanted.allow);
    tuned.deny.clone_from(&wanted.deny);
    tuned.enabled = wanted.enabled;
    tuned.required = wanted.required;
    tuned.start = wanted.start;
    tuned.description.clone_from(&wanted.description);
    tuned.instructions.clone_from(&wanted.instructions);
    tuned.limits.call_idle = wanted.limits.call_idle;
    tuned.limits.call_total = wanted.limits.call_total;
    tuned.limits.in_flight = wanted.limits.in_flight;
    let scope = tuned.policy.scope;
    tuned.policy = wanted.policy.clone();
    tuned.policy.scope = scope;
    if tuned == *wanted {
        Difference::Settings
    } else {
        Difference::Connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Command, Scope, Transport};

    fn config() -> ServerConfig {
        ServerConfig::new(Transport::Stdio(Command::new("x").args(["a"])))
    }

    fn check(change: impl FnOnce(&mut ServerConfig), expected: Difference) {
        let mut wanted = config();
        change(&mut wanted);
        assert_eq!(compare(&config(), &wanted), expected);
    }

    #[test]
    fn only_what_the_connection_depends_on_makes_a_new_one() {
        check(|_| {}, Difference::None);
        check(|config| config.allow = vec!["a*".into()], Difference::Settings);
        check(|config| config.deny = vec!["a*".into()], Difference::Settings);
        check(|config| config.required = true, Difference::Settings);
        check(|config| config.enabled = false, Difference::Settings);
        check(|config| config.limits.in_flight = 3, Difference::Settings);
        check(|config| config.limits.message_bytes = 3, Difference::Connection);
        check(|config| config.roots = vec!["file:///a".into()], Difference::Connection);
        check(|config| config.policy.scope = Scope::Session, Difference::Connection);
        check(
            |config| config.transport = Transport::Stdio(Command::new("x").args(["b"])),
            Difference::Connection,
        );
        check(
            |config| config.transport = Transport::Stdio(Command::new("x").args(["a"]).env("K", "v")),
            Difference::Connection,
        );
    }
}
