//! [`CallerToolsets`]: the toolsets that the requests of each caller share.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use http::StatusCode;
use pegboard::{Pegboard, Principal, Provider, Toolset, View, board::GatewaySettings, credential::CallerRights};
use pegboard_base::sync::Mutex;
use pegboard_gateway::{CallLimits, Caller, TokenHolders};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::problem::Problem;

/// The most toolsets that are kept. The one that was not used for longest is dropped first.
const MAX_KEPT: usize = 256;
/// How long a toolset is kept after its last request. Its own servers end with it.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How often idle toolsets are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// The toolsets of the API, by principal, view and provider. A caller has the same view, limits and servers as at the MCP endpoint.
#[derive(Debug, Default)]
pub(super) struct CallerToolsets {
    kept: Arc<Mutex<Kept>>,
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

type Kept = HashMap<Key, Entry>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    principal: Option<Principal>,
    rights: Option<CallerRights>,
    view: Option<String>,
    limits: CallLimits,
    provider: Provider,
    purpose: Purpose,
}

/// What a toolset is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    Calls,
    /// Lists what is known of the servers. It has no servers of its own, so that a listing starts none that a client needs, and leaves no
    /// failures behind.
    Listings,
}

#[derive(Debug)]
struct Entry {
    toolset: Toolset,
    /// The settings of the config that the toolset was opened with.
    settings: Arc<GatewaySettings>,
    used: Instant,
    /// Whose tokens it was used with.
    holders: TokenHolders,
}

impl CallerToolsets {
    /// The toolset of a caller, opened if there is none or the config has changed.
    pub(super) fn of(
        &self,
        board: &Pegboard,
        caller: &Caller,
        provider: Provider,
        purpose: Purpose,
    ) -> Result<Toolset, Problem> {
        let key = Key {
            principal: caller.principal().cloned(),
            rights: caller.rights(),
            view: caller.view().map(str::to_owned),
            limits: caller.limits(),
            provider,
            purpose,
        };
        // Read before the view, so that a change in between opens the toolset again.
        let settings = board.gateway_settings();
        if let Some(entry) = self.kept.lock().get_mut(&key)
            && entry.is_current(&key, &settings)
        {
            entry.used = Instant::now();
            entry.holders.add(caller, self.end_of(&key));
            return Ok(entry.toolset.clone());
        }
        let toolset = board.toolset_with(view(board, &key, &settings)?);
        let mut holders = TokenHolders::default();
        holders.add(caller, self.end_of(&key));
        let entry = Entry {
            toolset: toolset.clone(),
            settings,
            used: Instant::now(),
            holders,
        };
        self.keep(key, entry);
        Ok(toolset)
    }

    fn keep(&self, key: Key, entry: Entry) {
        let mut kept = self.kept.lock();
        let mut dropped = Vec::new();
        dropped.extend(kept.insert(key, entry));
        while kept.len() > MAX_KEPT {
            let oldest = kept.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            dropped.extend(oldest.and_then(|oldest| kept.remove(&oldest)));
        }
        // Dropped without the lock, because that ends servers.
        drop(kept);
        drop(dropped);
        self.sweeper.get_or_init(|| {
            let kept = Arc::downgrade(&self.kept);
            AbortOnDropHandle::new(tokio::spawn(sweep(kept)))
        });
    }

    /// Drops a toolset whose callers' tokens have all ended. Calls that run on have it until they end.
    fn end_of(&self, key: &Key) -> impl FnOnce() + Send + use<> {
        let (kept, key) = (Arc::downgrade(&self.kept), key.clone());
        move || {
            let Some(kept) = kept.upgrade() else { return };
            let mut kept = kept.lock();
            let has_ended = kept.get(&key).is_some_and(|entry| entry.holders.have_ended());
            let dropped = if has_ended { kept.remove(&key) } else { None };
            drop(kept);
            drop(dropped);
        }
    }
}

impl Entry {
    /// Whether it shows what the config says now.
    fn is_current(&self, key: &Key, now: &Arc<GatewaySettings>) -> bool {
        if Arc::ptr_eq(&self.settings, now) {
            return true;
        }
        let same_view = match &key.view {
            Some(name) => self.settings.views.get(name) == now.views.get(name),
            None => true,
        };
        same_view && self.settings.serve.tokens == now.serve.tokens
    }
}

/// The view of a caller: the whole board or a view of the config, with the limits of its token.
fn view(board: &Pegboard, key: &Key, settings: &GatewaySettings) -> Result<View, Problem> {
    let (view, name) = match &key.view {
        None => (View::new().configured_limits(), "api".to_owned()),
        Some(name) => {
            let gone = || {
                let detail = format!("the config has no view `{}` any more", name.escape_debug());
                Problem::new(StatusCode::NOT_FOUND, detail)
            };
            let view = board.configured_view(name).ok_or_else(gone)?;
            (view, format!("api/view/{name}"))
        }
    };
    let mut view = view.for_client().provider(key.provider).name(name);
    if key.purpose == Purpose::Listings {
        view = view.catalog_only();
    }
    let Some(principal) = &key.principal else {
        return Ok(view);
    };
    if let Some(token) = settings.serve.tokens.get(principal.as_str()) {
        if let Some(rate) = token.rate {
            view = view.rate(rate);
        }
        if let Some(most) = token.concurrent {
            view = view.max_in_flight(most);
        }
    }
    view = key.limits.apply(view);
    if let Some(rights) = key.rights {
        view = view.caller_rights(rights);
    }
    Ok(view.principal(principal.clone()))
}

/// Drops idle toolsets until the API is gone.
async fn sweep(kept: Weak<Mutex<Kept>>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(kept) = kept.upgrade() else { return };
        let now = Instant::now();
        let is_idle = |entry: &Entry| now.duration_since(entry.used) >= IDLE;
        let dropped: Vec<_> = kept.lock().extract_if(|_, entry| is_idle(entry)).collect();
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use pegboard::Config;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_toolset_is_shared_until_it_was_idle_for_long() {
        let board = Pegboard::builder(Config::default()).open();
        let toolsets = CallerToolsets::default();
        let kept = || toolsets.kept.lock().len();
        let open = |provider, purpose| toolsets.of(&board, &Caller::default(), provider, purpose).unwrap();
        open(Provider::Mcp, Purpose::Calls);
        open(Provider::Mcp, Purpose::Calls);
        assert_eq!(kept(), 1);
        open(Provider::OpenAi, Purpose::Listings);
        assert_eq!(kept(), 2);
        tokio::time::sleep(IDLE + 2 * SWEEP).await;
        assert_eq!(kept(), 0);
    }
}
