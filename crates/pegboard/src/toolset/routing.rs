//! Finds the tool that a name means. Servers that may have it are started and waited for.

use std::{sync::Arc, time::Duration};

use super::toolset_handle::Toolset;
use crate::{
    audit::AuditRule,
    call::{self, Audience, Route, Routed, Unroutable, Visibility},
    server::{Phase, Server},
};
use pegboard_base::deadline::Deadline;
use pegboard_tools::outcome::Failure;

/// How often a lookup is repeated if a server is replaced meanwhile.
const LOOKUP_ATTEMPTS: usize = 3;
/// How long a call without a timeout waits for a server whose tools are not known.
pub(super) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(60);

impl Toolset {
    /// The route of `name`, if it is known.
    pub(super) fn known_route(&self, name: &str) -> Result<Option<Arc<Route>>, Failure> {
        self.check_open()?;
        self.snapshot(|snapshot| {
            if let Some(failure) = &snapshot.selection_error {
                return Err(failure.clone());
            }
            match snapshot.table.find(name) {
                Routed::To(route) => Ok(Some(route)),
                Routed::Ambiguous(candidates) => Err(self.ambiguous(name, &candidates)),
                Routed::Repaired(_) | Routed::Hidden(_) | Routed::Nowhere => Ok(None),
            }
        })
    }

    /// The route of `name`, and whether the name had to be repaired. If it is not known yet, waits for the servers that may have the tool,
    /// and looks it up again.
    pub(crate) async fn route(&self, name: &str, deadline: Deadline) -> Result<(Arc<Route>, bool), Unroutable> {
        for _ in 1..LOOKUP_ATTEMPTS {
            let routed = self.route_once(name, deadline).await;
            // The replacement of a server that was replaced during the wait may have the tool.
            if routed.is_ok() || deadline.has_passed() || !self.may_appear(name) {
                return routed;
            }
        }
        self.route_once(name, deadline).await
    }

    /// Whether a server that the name may refer to is about to start.
    fn may_appear(&self, name: &str) -> bool {
        let is_starting = |server: &Server| matches!(server.phase(), Phase::Idle | Phase::Connecting(_));
        let mut servers = self.selected_servers();
        servers.retain(|server| call::may_belong_to(name, server.name()) && server.is_enabled());
        servers
            .iter()
            .any(|server| server.is_requested() && is_starting(server))
    }

    async fn route_once(&self, name: &str, deadline: Deadline) -> Result<(Arc<Route>, bool), Unroutable> {
        if let Some(route) = self.known_route(name)? {
            return Ok((route, false));
        }
        if self.recheck_held()
            && let Some(route) = self.known_route(name)?
        {
            return Ok((route, false));
        }
        // A client must not learn from the time of the answer that there is such a tool.
        if self.view.audience == Audience::Agent
            && let Some(refusal) = self.refusal(name, false)
        {
            return Err(refusal);
        }
        let mut unknown = self.not_ready();
        unknown.retain(|server| call::may_belong_to(name, server.name()));
        let names_server = !unknown.is_empty();
        if unknown.is_empty() {
            unknown = self.not_ready();
            unknown.retain(|server| server.is_enabled());
        }
        let waiting = futures_util::future::join_all(unknown.iter().map(|server| server.live(deadline)));
        let outcomes = waiting.await;
        match self.table().find_forgiving(name, self.view.audience) {
            Routed::To(route) => Ok((route, false)),
            Routed::Repaired(route) => {
                tracing::info!(asked = name, tool = %route.tool.dotted_name(), "a name was repaired");
                Ok((route, true))
            }
            Routed::Ambiguous(candidates) => Err(self.ambiguous(name, &candidates).into()),
            Routed::Hidden(tool) => Err(self.unknown(&tool)),
            Routed::Nowhere => {
                let down = unknown
                    .iter()
                    .zip(outcomes)
                    .find_map(|(server, live)| Some((server, live.err()?)));
                match down {
                    // The name says which server has the tool, and that server cannot be reached.
                    Some((server, outage)) if names_server => {
                        let mut refusal = Unroutable::from(call::unavailable(server.name().as_str(), &outage));
                        if outage.is_pending_trust() {
                            refusal = refusal.by(AuditRule::ProjectFile);
                        }
                        // If the name may refer to two servers, it does not say which tool is meant.
                        Err(match (unknown.len(), call::tool_part(name, server.name())) {
                            (1, Some(tool)) => refusal.identified(server.name(), tool),
                            _ => refusal,
                        })
                    }
                    _ => Err(self.unknown(name)),
                }
            }
        }
    }

    /// Reads the pins of servers with held tools again, if a person has accepted some elsewhere. Returns whether that was so.
    pub(super) fn recheck_held(&self) -> bool {
        let servers = self.selected_servers();
        servers.iter().filter(|server| server.recheck_held()).count() > 0
    }

    /// Why a name has no route: the view may not see the tool, or no server has it. To a client both are the same; the audit log has the rule.
    pub(super) fn unknown(&self, name: &str) -> Unroutable {
        let servers = self.servers();
        let visibility = Visibility::new(&self.view, &servers);
        let refusal = visibility.refusal(name, &servers, true);
        if self.view.audience == Audience::Agent
            && let Some(refusal) = refusal
        {
            return refusal;
        }
        let mut offering = self.selected_servers();
        offering.retain(|server| server.is_enabled() && visibility.may_see_tools_of(server));
        let failure = self.table().explain(name, &offering, self.view.audience);
        match refusal {
            Some(refusal) => Unroutable { failure, ..refusal },
            None => failure.into(),
        }
    }

    /// The failure for a name that several tools have.
    pub(super) fn ambiguous(&self, name: &str, candidates: &[Arc<Route>]) -> Failure {
        let candidates: Vec<_> = candidates
            .iter()
            .map(|route| route.name_for(self.view.audience))
            .collect();
        call::ambiguous(name, &candidates)
    }

    pub(super) fn not_ready(&self) -> Vec<Server> {
        let mut servers = self.selected_servers();
        servers.retain(|server| server.phase().live().is_none());
        servers
    }
}
