//! [`CallerToolsets`]: the toolsets that the requests of each caller share.

use std::sync::Arc;

use http::StatusCode;
use pegboard::{Pegboard, Principal, Provider, Toolset, View, board::GatewaySettings, credential::CallerRights};
use pegboard_gateway::{CachedToolset, CallLimits, Caller, ToolsetCache};

use super::problem::Problem;

/// The toolsets of the API, by principal, view and provider. A caller has the same view, limits and servers as at the MCP endpoint.
#[derive(Debug, Default)]
pub(super) struct CallerToolsets(ToolsetCache<Key, ApiToolset>);

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
struct ApiToolset {
    toolset: Toolset,
    /// The settings of the config that the toolset was opened with.
    settings: Arc<GatewaySettings>,
}

impl CachedToolset for ApiToolset {}

impl CallerToolsets {
    /// Returns the toolset of a caller. Opens one if there is none or the config has changed.
    pub(super) fn get(
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
        let current = self.0.get(&key, caller, |cached| {
            cached.is_current(&key, &settings).then(|| cached.toolset.clone())
        });
        if let Some(toolset) = current {
            return Ok(toolset);
        }
        let toolset = board.toolset_with(view(board, &key, &settings)?);
        let opened = ApiToolset {
            toolset: toolset.clone(),
            settings,
        };
        self.0.insert(key, caller, opened);
        Ok(toolset)
    }
}

impl ApiToolset {
    /// Whether it shows what the config says now.
    fn is_current(&self, key: &Key, now: &Arc<GatewaySettings>) -> bool {
        if Arc::ptr_eq(&self.settings, now) {
            return true;
        }
        let same_view = match &key.view {
            Some(name) => self.settings.views.get(name) == now.views.get(name),
            None => true,
        };
        let same_names = self.settings.naming == now.naming;
        same_view && same_names && self.settings.serve.tokens == now.serve.tokens
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
    let mut view = view.for_client().provider(key.provider).label(name.clone()).name(name);
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
