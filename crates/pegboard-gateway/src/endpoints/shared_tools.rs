//! [`SharedTools`]: the toolsets that the modern clients of each principal share, if their tokens have the same rights and limits.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use pegboard::Pegboard;
use pegboard_base::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    client_tools::{ClientTools, Owner},
    open_exchanges::Audience,
    scope::Scope,
};
use crate::{
    door::{CallLimits, Caller, TokenHolders},
    protocol::{Client, RpcError},
};

/// The most owners whose toolsets are kept. The one that was not used for longest is dropped first.
const MAX_OWNERS: usize = 256;
/// How long a toolset is kept after its last request, unless one of its tasks lives longer. Its own servers end with it.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How often idle toolsets are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// The toolsets of an endpoint, by owner.
#[derive(Debug, Default)]
pub(super) struct SharedTools {
    kept: Arc<Mutex<Kept>>,
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

type Kept = HashMap<Key, Entry>;

/// Clients with other limits have toolsets of their own.
type Key = (Owner, CallLimits);

#[derive(Debug)]
struct Entry {
    tools: Arc<ClientTools>,
    used: Instant,
    /// Whose tokens it was used with.
    holders: TokenHolders,
}

impl SharedTools {
    /// The toolset of an owner's modern clients, opened if there is none or the config has changed.
    pub(super) fn of(&self, board: &Pegboard, scope: &Scope, client: &Client) -> Result<Arc<ClientTools>, RpcError> {
        let key = (Owner::of(client), client.caller().limits());
        if let Some(entry) = self.kept.lock().get_mut(&key)
            && entry.tools.is_current(board, scope, client)
        {
            entry.used = Instant::now();
            entry.holders.add(client.caller(), self.end_of(&key));
            return Ok(entry.tools.clone());
        }
        let tools = ClientTools::open(board, scope, client, Audience::Several)?;
        self.keep(key, tools.clone(), client.caller());
        Ok(tools)
    }

    fn keep(&self, key: Key, tools: Arc<ClientTools>, caller: &Caller) {
        let mut holders = TokenHolders::default();
        holders.add(caller, self.end_of(&key));
        let mut kept = self.kept.lock();
        let used = Instant::now();
        let mut dropped = Vec::new();
        dropped.extend(kept.insert(key, Entry { tools, used, holders }));
        while kept.len() > MAX_OWNERS {
            let oldest = kept.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            dropped.extend(oldest.and_then(|oldest| kept.remove(&oldest)));
        }
        drop(kept);
        self.sweeper.get_or_init(|| {
            let kept = Arc::downgrade(&self.kept);
            AbortOnDropHandle::new(tokio::spawn(sweep(kept)))
        });
    }

    /// Drops the toolset of an owner whose tokens have all ended. Requests that run on have it until they end. The tasks of a token that has
    /// only expired stay: its client may come back with a new one.
    fn end_of(&self, key: &Key) -> impl FnOnce() + Send + use<> {
        let (kept, key) = (Arc::downgrade(&self.kept), key.clone());
        move || {
            let Some(kept) = kept.upgrade() else { return };
            let mut kept = kept.lock();
            let has_ended = kept.get(&key).is_some_and(|entry| {
                let awaits_client = entry.holders.have_expired() && entry.tools.has_tasks(Instant::now());
                entry.holders.have_ended() && !awaits_client
            });
            let dropped = if has_ended { kept.remove(&key) } else { None };
            // Dropped without the lock, because that ends servers.
            drop(kept);
            drop(dropped);
        }
    }
}

/// Drops idle toolsets until the endpoint is gone.
async fn sweep(kept: Weak<Mutex<Kept>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(kept) = kept.upgrade() else { return };
        let now = Instant::now();
        let is_idle = |entry: &Entry| {
            let is_old = now.duration_since(entry.used) >= IDLE;
            is_old && Arc::strong_count(&entry.tools) == 1 && !entry.tools.has_tasks(now)
        };
        let mut kept = kept.lock();
        let dropped: Vec<_> = kept.extract_if(|_, entry| is_idle(entry)).collect();
        for entry in kept.values() {
            entry.tools.wanted_levels.sweep(now);
        }
        drop(kept);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pegboard::{Config, Principal};

    use super::*;
    use crate::protocol::Version;

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
        let open = |principal| shared.of(&board, &Scope::Board, &client(principal)).unwrap();
        open(Some(Principal::new("ada"))).keep_for_task(Some(Duration::from_secs(3600)));
        open(None);
        let kept = || shared.kept.lock().len();
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
        let open = |client: &Client| shared.of(&board, &Scope::Board, client).unwrap();
        let kept = || shared.kept.lock().len();
        let soon = || tokio::time::sleep(Duration::from_millis(1));
        let (first, second, other) = (client_of("ada"), client_of("ada"), client_of("bob"));
        for client in [&first, &second, &first, &other] {
            open(client);
        }
        assert_eq!(kept(), 2);
        first.caller().revoked.cancel();
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
        removed.caller().revoked.cancel();
        soon().await;
        assert_eq!(kept(), 1, "the tasks of a removed token end with it");
    }
}
