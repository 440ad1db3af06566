//! [`SharedTools`]: the toolsets that the modern clients of each principal share, if their tokens have the same rights and limits.

use std::sync::Arc;

use pegboard::Pegboard;
use tokio::time::Instant;

use super::{
    client_tools::{ClientTools, PrincipalKey},
    open_exchanges::Audience,
    scope::EndpointTarget,
    toolset_cache::{CachedToolset, ToolsetCache},
};
use crate::{
    door::CallLimits,
    protocol::{Client, RpcError},
};

/// The toolsets of an endpoint, by owner. Clients with other limits have toolsets of their own.
#[derive(Debug, Default)]
pub(super) struct SharedTools(ToolsetCache<(PrincipalKey, CallLimits), Arc<ClientTools>>);

impl SharedTools {
    /// Returns the toolset of an owner's modern clients. Opens one if there is none or the config has changed.
    pub(super) fn get(
        &self,
        board: &Pegboard,
        scope: &EndpointTarget,
        client: &Client,
    ) -> Result<Arc<ClientTools>, RpcError> {
        let key = (PrincipalKey::from_client(client), client.caller().limits());
        let current = self.0.get(&key, client.caller(), |tools| {
            tools.is_current(board, scope, client).then(|| tools.clone())
        });
        if let Some(tools) = current {
            return Ok(tools);
        }
        let tools = ClientTools::open(board, scope, client, Audience::Several)?;
        self.0.insert(key, client.caller(), tools.clone());
        Ok(tools)
    }
}

impl CachedToolset for Arc<ClientTools> {
    fn is_in_use(&self, now: Instant) -> bool {
        Self::strong_count(self) > 1 || self.has_tasks(now)
    }

    fn awaits_client(&self, now: Instant) -> bool {
        self.has_tasks(now)
    }

    fn sweep(&self, now: Instant) {
        self.wanted_levels.sweep(now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use pegboard::{Config, Principal};

    use super::*;
    use crate::{
        door::Caller,
        endpoints::{
            options::BoardOptions,
            toolset_cache::{IDLE, SWEEP},
        },
        protocol::Version,
    };

    #[tokio::test(start_paused = true)]
    async fn a_toolset_is_kept_for_as_long_as_its_tasks_live() {
        let board = Pegboard::builder(Config::default()).open();
        let shared = SharedTools::default();
        let client = |principal| {
            let caller = Caller {
                principal,
                ..Caller::default()
            };
            Client::new(caller, Version::V2026_07_28, Bytes::new(), Bytes::new())
        };
        let open = |principal| {
            shared
                .get(
                    &board,
                    &EndpointTarget::Board(BoardOptions::default()),
                    &client(principal),
                )
                .unwrap()
        };
        open(Some(Principal::new("ada"))).keep_for_task(Some(Duration::from_secs(3600)));
        open(None);
        let kept = || shared.0.len();
        assert_eq!(kept(), 2);
        tokio::time::sleep(IDLE + 2 * SWEEP).await;
        assert_eq!(kept(), 1, "the one without a task is dropped");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(kept(), 0);
    }

    /// A client of a principal, with a token that can be revoked.
    fn client_of(principal: &str) -> Client {
        let caller = Caller {
            principal: Some(Principal::new(principal)),
            ..Caller::default()
        };
        Client::new(caller, Version::V2026_07_28, Bytes::new(), Bytes::new())
    }

    #[tokio::test(start_paused = true)]
    async fn a_toolset_ends_with_the_last_token_that_it_was_used_with() {
        let board = Pegboard::builder(Config::default()).open();
        let shared = SharedTools::default();
        let open = |client: &Client| {
            shared
                .get(&board, &EndpointTarget::Board(BoardOptions::default()), client)
                .unwrap()
        };
        let kept = || shared.0.len();
        let soon = || tokio::time::sleep(Duration::from_millis(1));
        let (first, second, other) = (client_of("ada"), client_of("ada"), client_of("bob"));
        for client in [&first, &second, &first, &other] {
            open(client);
        }
        assert_eq!(kept(), 2);
        first.caller().revoked.revoke();
        soon().await;
        assert_eq!(kept(), 2, "another token of the same owner is still good");
        second.caller().revoked.expire();
        soon().await;
        assert_eq!(kept(), 1, "only the other owner's is left");
        open(&other).keep_for_task(None);
        other.caller().revoked.expire();
        soon().await;
        assert_eq!(kept(), 1, "its client may come back for the task");
        let removed = client_of("eve");
        open(&removed).keep_for_task(None);
        removed.caller().revoked.revoke();
        soon().await;
        assert_eq!(kept(), 1, "the tasks of a removed token end with it");
    }
}
