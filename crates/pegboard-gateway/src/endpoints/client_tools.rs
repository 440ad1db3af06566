//! [`ClientTools`]: the toolset that a client's requests go through, and what belongs to it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use pegboard::{Pegboard, Principal, Toolset, View, board::GatewaySettings, config::TokenConfig};

use super::{
    client_capabilities::LastCapabilities,
    confirmations::Confirmations,
    hosts::ClientHost,
    open_exchanges::{Audience, OpenExchanges},
    scope::Scope,
};
use crate::protocol::RpcError;

/// The toolset of one legacy client, or of all modern clients of a principal.
pub(super) struct ClientTools {
    pub(super) toolset: Toolset,
    pub(super) exchanges: Arc<OpenExchanges>,
    pub(super) capabilities: LastCapabilities,
    /// The settings of the config that the toolset was opened with.
    settings: Arc<GatewaySettings>,
}

impl ClientTools {
    pub(super) fn open(
        board: &Pegboard,
        scope: &Scope,
        principal: Option<&Principal>,
        audience: Audience,
    ) -> Result<Arc<Self>, RpcError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Read before the view, so that a change in between opens the toolset again.
        let settings = board.gateway_settings();
        let exchanges = OpenExchanges::new(audience);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut view = scope
            .view(board)?
            .name(format!("{}#{number}", scope.label()))
            .host(ClientHost::new(exchanges.clone()));
        if let Some(principal) = principal {
            view = limited(view, settings.serve.tokens.get(principal.as_str())).principal(principal.clone());
        }
        Ok(Arc::new(Self {
            toolset: board.toolset_with(view),
            exchanges,
            capabilities: LastCapabilities::default(),
            settings,
        }))
    }

    /// Waits until the config says that it should show something else.
    pub(super) async fn outdated(&self, board: &Pegboard, scope: &Scope) {
        let mut known = self.settings.clone();
        while self.is_current(board, scope) {
            known = board.gateway_settings_after(&known).await;
        }
    }

    /// Whether it shows what the config says now.
    pub(super) fn is_current(&self, board: &Pegboard, scope: &Scope) -> bool {
        let now = board.gateway_settings();
        let same_tokens = Arc::ptr_eq(&self.settings, &now) || self.settings.serve.tokens == now.serve.tokens;
        same_tokens && scope.is_same(&self.settings, &now)
    }
}

/// Limits a view as the token of its principal says.
fn limited(mut view: View, token: Option<&TokenConfig>) -> View {
    if let Some(rate) = token.and_then(|token| token.rate) {
        view = view.rate(rate);
    }
    match token.and_then(|token| token.concurrent) {
        Some(most) => view.max_in_flight(most),
        None => view,
    }
}

impl fmt::Debug for ClientTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTools").finish_non_exhaustive()
    }
}

/// What is kept for a legacy client.
#[derive(Debug, Default)]
pub(super) struct LegacyClient {
    tools: Mutex<Option<Arc<ClientTools>>>,
    /// Its subscriptions that wait for their servers.
    pub(super) confirmations: Confirmations,
}

impl LegacyClient {
    /// The client's toolset, opened again if the config says something else now.
    pub(super) fn tools(
        &self,
        board: &Pegboard,
        scope: &Scope,
        principal: Option<&Principal>,
    ) -> Result<Arc<ClientTools>, RpcError> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = &*tools
            && tools.is_current(board, scope)
        {
            return Ok(tools.clone());
        }
        let opened = ClientTools::open(board, scope, principal, Audience::OneClient)?;
        *tools = Some(opened.clone());
        Ok(opened)
    }
}
