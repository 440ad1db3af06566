//! [`SharedTools`]: the toolsets that the modern clients of each principal share, if their tokens have the same rights and limits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use pegboard::Pegboard;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    client_tools::{ClientTools, Owner},
    open_exchanges::Audience,
    scope::Scope,
};
use crate::{
    door::CallLimits,
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
}

impl SharedTools {
    /// The toolset of an owner's modern clients, opened if there is none or the config has changed.
    pub(super) fn of(&self, board: &Pegboard, scope: &Scope, client: &Client) -> Result<Arc<ClientTools>, RpcError> {
        let key = (Owner::of(client), client.caller().limits());
        if let Some(entry) = lock(&self.kept).get_mut(&key)
            && entry.tools.is_current(board, scope, client)
        {
            entry.used = Instant::now();
            return Ok(entry.tools.clone());
        }
        let tools = ClientTools::open(board, scope, client, Audience::Several)?;
        self.keep(key, tools.clone());
        Ok(tools)
    }

    fn keep(&self, key: Key, tools: Arc<ClientTools>) {
        let mut kept = lock(&self.kept);
        let used = Instant::now();
        let mut dropped = Vec::new();
        dropped.extend(kept.insert(key, Entry { tools, used }));
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
        let mut kept = lock(&kept);
        let dropped: Vec<_> = kept.extract_if(|_, entry| is_idle(entry)).collect();
        for entry in kept.values() {
            entry.tools.wanted_levels.sweep(now);
        }
        drop(kept);
        drop(dropped);
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pegboard::{Config, Principal};

    use super::*;
    use crate::{door::Caller, protocol::Version};

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
        let kept = || lock(&shared.kept).len();
        assert_eq!(kept(), 2);
        tokio::time::sleep(IDLE + 2 * SWEEP).await;
        assert_eq!(kept(), 1, "the one without a task is dropped");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(kept(), 0);
    }
}
