//! [`Resolver`]: finds the tool that a name means. Servers that may have it are started and waited for.

use std::{sync::Arc, time::Duration};

use super::{builtin_definitions::ResourceTools, builtin_tools, known_tool::KnownTool, open_view::OpenView};
use crate::{
    audit::AuditRule,
    call::{self, CallGuard, Route, Routed, Unroutable, Visibility},
    server::{Phase, Server},
};
use futures_util::future::BoxFuture;
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_tools::outcome::Failure;

/// How often a lookup is repeated if a server is replaced meanwhile.
const LOOKUP_ATTEMPTS: usize = 3;
/// How long a call without a timeout waits for a server whose tools are not known.
pub(super) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(60);

/// Finds the tools of a view by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver<'a> {
    open: &'a OpenView,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// The route of `name`, if it is known.
    pub(super) fn find(self, name: &str) -> Result<Option<Arc<Route>>, Failure> {
        self.open.check_open()?;
        self.open.read_snapshot(|snapshot| {
            if let Some(failure) = &snapshot.selection_error {
                return Err(failure.clone());
            }
            match snapshot.table.find(name) {
                Routed::To(route) => Ok(Some(route)),
                Routed::Ambiguous(candidates) => Err(self.explain_ambiguous(name, &candidates)),
                Routed::Repaired(_) | Routed::Hidden(_) | Routed::Nowhere => Ok(None),
            }
        })
    }

    /// The route of `name`, and whether the name had to be repaired. If it is not known yet, waits for the servers that may have the tool,
    /// and looks it up again.
    pub(super) fn resolve(
        self,
        name: &'a str,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<(Arc<Route>, bool), Unroutable>> {
        Box::pin(async move {
            for _ in 1..LOOKUP_ATTEMPTS {
                let routed = self.resolve_once(name, deadline).await;
                // The replacement of a server that was replaced during the wait may have the tool.
                if routed.is_ok() || deadline.has_passed() || !self.may_appear(name) {
                    return routed;
                }
            }
            self.resolve_once(name, deadline).await
        })
    }

    /// Whether a server that the name may refer to is about to start.
    fn may_appear(self, name: &str) -> bool {
        let is_starting = |server: &Server| matches!(server.phase(), Phase::Idle | Phase::Connecting(_));
        let mut servers = self.open.selected_servers();
        servers.retain(|server| call::may_belong_to(name, server.name()) && server.is_enabled());
        servers
            .iter()
            .any(|server| server.activation().is_requested() && is_starting(server))
    }

    /// Whether the name says which server has the tool.
    fn names_server(self, name: &str) -> bool {
        let servers = self.open.selected_servers();
        let is_named = |server: &Server| server.is_enabled() && call::may_belong_to(name, server.name());
        servers.iter().any(is_named)
    }

    async fn resolve_once(self, name: &str, deadline: Deadline) -> Result<(Arc<Route>, bool), Unroutable> {
        if let Some(route) = self.find(name)? {
            return Ok((route, false));
        }
        if self.open.recheck_held()
            && let Some(route) = self.find(name)?
        {
            return Ok((route, false));
        }
        // A client must not learn from the time of the answer that there is such a tool.
        if self.open.view.audience.may_know_hidden() {
            let servers = self.open.servers();
            let visibility = Visibility::new(&self.open.view, &servers);
            if let Some(refusal) = visibility.refusal(name, &servers, false) {
                return Err(refusal);
            }
        }
        let mut unknown = self.open.idle_servers();
        unknown.retain(|server| call::may_belong_to(name, server.name()));
        let names_server = !unknown.is_empty();
        // A misspelt tool of a server that is known is no reason to start others.
        if unknown.is_empty() && !self.names_server(name) {
            unknown = self.open.idle_servers();
            unknown.retain(|server| server.is_enabled());
        }
        let waiting = futures_util::future::join_all(unknown.iter().map(|server| server.ensure_live(deadline)));
        let outcomes = waiting.await;
        match self.open.table().find_forgiving(name, self.open.view.audience) {
            Routed::To(route) => Ok((route, false)),
            Routed::Repaired(route) => {
                tracing::info!(asked = name, tool = %route.tool.dotted_name(), "a name was repaired");
                Ok((route, true))
            }
            Routed::Ambiguous(candidates) => Err(self.explain_ambiguous(name, &candidates).into()),
            Routed::Hidden(tool) => Err(self.explain_unknown(&tool)),
            Routed::Nowhere => {
                let down = unknown
                    .iter()
                    .zip(outcomes)
                    .find_map(|(server, live)| Some((server, live.err()?)));
                match down {
                    // The name says which server has the tool, and that server cannot be reached.
                    Some((server, outage)) if names_server => {
                        let mut refusal = Unroutable::from(call::outage_failure(server.name().as_str(), &outage));
                        if outage.is_pending_trust() {
                            refusal = refusal.by(AuditRule::ProjectFile);
                        }
                        // If the name may refer to two servers, it does not say which tool is meant.
                        Err(match (unknown.len(), call::tool_part(name, server.name())) {
                            (1, Some(tool)) => refusal.with_identified_tool(server.name(), tool),
                            _ => refusal,
                        })
                    }
                    _ => Err(self.explain_unknown(name)),
                }
            }
        }
    }

    /// Why a name has no route: the view may not see the tool, or no server has it. To a client both are the same; the audit log has the rule.
    pub(super) fn explain_unknown(self, name: &str) -> Unroutable {
        let servers = self.open.servers();
        let visibility = Visibility::new(&self.open.view, &servers);
        let refusal = visibility.refusal(name, &servers, true);
        if self.open.view.audience.may_know_hidden()
            && let Some(refusal) = refusal
        {
            return refusal;
        }
        let mut offering = self.open.selected_servers();
        offering.retain(|server| server.is_enabled() && visibility.may_see_tools_of(server));
        let failure = self.open.table().explain(name, &offering, self.open.view.audience);
        match refusal {
            Some(refusal) => Unroutable { failure, ..refusal },
            None => failure.into(),
        }
    }

    /// The failure for a name that several tools have.
    pub(super) fn explain_ambiguous(self, name: &str, candidates: &[Arc<Route>]) -> Failure {
        let candidates: Vec<_> = candidates
            .iter()
            .map(|route| route.name_for(self.open.view.audience))
            .collect();
        call::ambiguous_name_failure(name, &candidates)
    }

    /// Resolves the name of a call. Publishes the call before it waits for servers.
    pub(super) async fn resolve_in_call(
        self,
        name: &str,
        deadline: Deadline,
        guard: &mut CallGuard<'_>,
    ) -> Result<(Arc<Route>, bool), Unroutable> {
        let may_wait = self.find(name)?.is_none() && !self.open.idle_servers().is_empty();
        if may_wait {
            guard.create();
        }
        self.resolve(name, deadline).await
    }

    /// The tool that `name` means, if it is known now.
    pub(super) fn find_tool(self, name: &str) -> Option<KnownTool> {
        let route = self.find(name).ok()??;
        let era = route.server.phase().as_live().map(|live| live.session.peer.era);
        Some(KnownTool {
            tool: route.tool.clone(),
            era,
        })
    }

    /// The server that the name of a tool refers to, even if the tool is not known. `None` if no server of the view fits, or several do.
    pub(super) fn find_server(self, name: &str) -> Option<ServerName> {
        if let Ok(Some(route)) = self.find(name) {
            return Some(route.tool.server.clone());
        }
        let mut servers = self.open.selected_servers();
        servers.retain(|server| call::may_belong_to(name, server.name()));
        match servers.as_slice() {
            [server] => Some(server.name().clone()),
            _ => None,
        }
    }

    /// Whether `name` means a built-in tool of the view.
    pub(super) fn is_built_in(self, name: &str) -> bool {
        let view = &self.open.view;
        self.open.read_snapshot(|snapshot| {
            let discovery = view.tool_budget.is_some().then(|| snapshot.discovery.all());
            let resources = snapshot.resources.as_ref().map(ResourceTools::all);
            let reader = view.result_options.lists_reader().then_some(&snapshot.read_output);
            let mut tools = discovery.into_iter().chain(resources).flatten().chain(reader);
            tools.any(|tool| builtin_tools::matches(name, tool, &snapshot.table, view.audience))
        })
    }
}
