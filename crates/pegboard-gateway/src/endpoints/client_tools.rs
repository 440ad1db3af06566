//! [`ClientTools`]: the toolset that a client's requests go through, and what belongs to it.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard::{Pegboard, Principal, Toolset, board::GatewaySettings, credential::CallerRights};
use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use super::{
    approvals::{ApprovedBefore, ClientApprover},
    client_capabilities::LastCapabilities,
    confirmations::Confirmations,
    hosts::ClientHost,
    open_exchanges::{Audience, OpenExchanges},
    scope::EndpointTarget,
    wanted_logs::WantedLevels,
};
use crate::{
    door::CallLimits,
    protocol::{Client, RpcError},
};

/// How long a toolset is kept for a task at most, and for a task without a limit.
const MAX_TASK_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a listing waits for servers of which nothing is known yet. Clients are notified of those that come later. Some hosts list once and do
/// not heed notifications, and some give a listing less than five seconds; Claude Code counts all servers as failed then.
pub(super) const PATIENCE: Duration = Duration::from_millis(2500);

/// How long one of a session's listings waits at least, after the first ones have used up [`PATIENCE`] together.
const LATER_PATIENCE: Duration = Duration::from_millis(500);

/// Whose requests, toolsets and tasks belong together: those of a principal whose access tokens have the same rights.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PrincipalKey {
    principal: Option<Principal>,
    rights: Option<CallerRights>,
}

impl PrincipalKey {
    pub(super) fn from_client(client: &Client) -> Self {
        Self {
            principal: client.principal().cloned(),
            rights: client.rights(),
        }
    }

    #[cfg(test)]
    pub(super) fn new(principal: Option<&str>, rights: Option<CallerRights>) -> Self {
        Self {
            principal: principal.map(Principal::new),
            rights,
        }
    }
}

/// The toolset of one legacy client, or of all modern clients of an owner.
pub(super) struct ClientTools {
    pub(super) toolset: Toolset,
    pub(super) exchanges: Arc<OpenExchanges>,
    pub(super) capabilities: LastCapabilities,
    pub(super) wanted_levels: WantedLevels,
    /// The settings of the config that the toolset was opened with.
    settings: Arc<GatewaySettings>,
    /// The limits of the client's access token that it was opened with.
    limits: CallLimits,
    /// When the last of its tasks expires.
    tasks_until: Mutex<Option<Instant>>,
    /// Whether one session has it, or several clients share it.
    audience: Audience,
    /// When the session's first listing was asked for.
    first_listing: OnceLock<Instant>,
}

impl ClientTools {
    pub(super) fn open(
        board: &Pegboard,
        scope: &EndpointTarget,
        client: &Client,
        audience: Audience,
    ) -> Result<Arc<Self>, RpcError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Read before the view, so that a change in between opens the toolset again.
        let settings = board.gateway_settings();
        let limits = client.caller().limits();
        let exchanges = OpenExchanges::new(audience);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut view = scope
            .view(board, client.caller())?
            .name(format!("{}#{number}", scope.label()))
            .label(scope.label())
            .host(ClientHost::new(exchanges.clone()));
        if !matches!(scope, EndpointTarget::Approved(_)) {
            view = view.list_known();
        }
        if let EndpointTarget::Approved(_) = scope {
            view = view.approver(ApprovedBefore);
        } else if !board.has_approver() && !view.has_approver() {
            view = view.approver(ClientApprover::new(exchanges.clone()));
        }
        if let Some(principal) = client.principal() {
            // A principal of the program may have the name of a token of the config by chance.
            let tokens = Some(&settings.serve.tokens).filter(|_| !scope.is_decided_by_program());
            let of_token = tokens
                .and_then(|tokens| tokens.get(principal.as_str()))
                .map(CallLimits::from_token);
            view = of_token.unwrap_or_default().apply(view);
            view = limits.apply(view).principal(principal.clone());
        }
        if let Some(rights) = client.rights() {
            view = view.caller_rights(rights);
        }
        Ok(Arc::new(Self {
            toolset: board.toolset_with(view),
            exchanges,
            capabilities: LastCapabilities::default(),
            wanted_levels: WantedLevels::new(audience),
            settings,
            limits,
            tasks_until: Mutex::default(),
            audience,
            first_listing: OnceLock::new(),
        }))
    }

    /// How long a listing waits for servers of which nothing is known yet. The listings of one session wait that long together. Clients that share
    /// a toolset have no sessions, and none pays for what another has waited.
    pub(super) fn listing_patience(&self) -> Duration {
        match self.audience {
            Audience::OneClient => {
                let first = self.first_listing.get_or_init(Instant::now);
                PATIENCE.saturating_sub(first.elapsed()).max(LATER_PATIENCE)
            }
            Audience::Several => PATIENCE,
        }
    }

    /// Waits until the config says that it should show something else to its client, or limits it otherwise.
    pub(super) async fn outdated(&self, board: &Pegboard, scope: &EndpointTarget, client: &Client) {
        let mut known = self.settings.clone();
        while self.is_current(board, scope, client) {
            tokio::select! {
                settings = board.gateway_settings_after(&known) => known = settings,
                () = client.caller().limits.changed(self.limits) => {}
            }
        }
    }

    /// Notes that a task was started, which its server keeps for `ttl`. The toolset is kept as long, because its own servers end with it.
    pub(super) fn keep_for_task(&self, ttl: Option<Duration>) {
        let until = Instant::now() + ttl.unwrap_or(MAX_TASK_TIME).min(MAX_TASK_TIME);
        let mut last = self.tasks_until.lock();
        *last = Some(last.map_or(until, |last| last.max(until)));
    }

    /// Whether one of its tasks may still be asked after.
    pub(super) fn has_tasks(&self, now: Instant) -> bool {
        let until = *self.tasks_until.lock();
        until.is_some_and(|until| now < until)
    }

    /// Whether it shows what the config says now, with the limits that its client has now.
    pub(super) fn is_current(&self, board: &Pegboard, scope: &EndpointTarget, client: &Client) -> bool {
        let now = board.gateway_settings();
        let same_tokens = Arc::ptr_eq(&self.settings, &now) || self.settings.serve.tokens == now.serve.tokens;
        let same_names = self.settings.naming == now.naming;
        same_tokens && same_names && self.limits == client.caller().limits() && scope.is_same(&self.settings, &now)
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
        scope: &EndpointTarget,
        client: &Client,
    ) -> Result<Arc<ClientTools>, RpcError> {
        let mut tools = self.tools.lock();
        if let Some(tools) = &*tools
            && tools.is_current(board, scope, client)
        {
            return Ok(tools.clone());
        }
        let opened = ClientTools::open(board, scope, client, Audience::OneClient)?;
        *tools = Some(opened.clone());
        Ok(opened)
    }
}
