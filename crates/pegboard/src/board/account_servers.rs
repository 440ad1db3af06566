//! [`AccountServers`]: the servers that use the tokens of an account.

use futures_util::future::join_all;

use super::sign_in_provider::account_of;
use crate::server::{Registry, Server};
use pegboard_oauth::OAuthAccount;

/// Finds the accounts of servers, and the servers of an account.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccountServers<'a> {
    registry: &'a Registry,
}

impl<'a> AccountServers<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self { registry }
    }

    /// The accounts of all servers of the config.
    pub(super) fn list_accounts(self) -> Vec<OAuthAccount> {
        let servers = self.registry.configured_servers();
        let accounts = servers.iter();
        accounts
            .filter_map(|server| Some(account_of(server.name(), &server.config().transport)?.0))
            .collect()
    }

    /// Ends the connections that use the tokens of this account.
    pub(super) async fn end_connections(self, account: &OAuthAccount) {
        let instances = self.find_instances(account);
        instances.iter().for_each(|server| server.spec().outdate_credential());
        let in_use = instances.iter().filter(|server| !server.phase().is_idle());
        join_all(in_use.map(Server::reconnect)).await;
    }

    /// Connects the servers again that wait for this sign-in.
    pub(super) async fn connect_waiting(self, account: &OAuthAccount) {
        let instances = self.find_instances(account);
        instances.iter().for_each(|server| server.spec().outdate_credential());
        let waiting = instances.iter().filter(|server| server.phase().may_await_sign_in());
        join_all(waiting.map(Server::reconnect)).await;
    }

    /// The instances of all servers that use the tokens of this account: servers with the same URL and settings share a sign-in.
    fn find_instances(self, account: &OAuthAccount) -> Vec<Server> {
        let key = account.key();
        let registry = self.registry;
        let mut instances = Vec::new();
        for server in registry
            .configured_servers()
            .iter()
            .filter(|server| server.spec().target.is_configured())
        {
            let Some((mut of_server, _)) = account_of(server.name(), &server.config().transport) else {
                continue;
            };
            of_server.principal.clone_from(&account.principal);
            if of_server.server == account.server || of_server.key() == key {
                instances.extend(registry.instances_to_restart(&of_server.server));
            }
        }
        instances.retain(|server| server.owner().principal() == account.principal.as_ref());
        instances
    }
}
