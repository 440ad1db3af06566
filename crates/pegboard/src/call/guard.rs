//! Counts a call and publishes its events, exactly once each, however the call ends.

use std::{ops::Deref, sync::Arc};

use pegboard_base::timestamp::Timestamp;
use tokio::time::Instant;

use super::{audience::Audience, route::resolved::Route, view::View};
use crate::{
    audit::{AuditDecision, AuditEntry, AuditRule},
    event::{CallEnd, Event},
    metrics::{ServerCounters, SumCounters},
};
use pegboard_base::{caller::Principal, name::ServerName};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    catalog::Tool,
    outcome::{Kind, Outcome, Reply},
};

/// The longest tool name in an event, in bytes. An unknown name may be any text that a model wrote.
const MAX_NAME: usize = 512;

/// Reports the end of one call exactly once. [`CallGuard::complete`] ends it with a reply; dropping the guard before that ends it as
/// cancelled.
///
/// It allocates only if the board has subscribers or an audit log.
pub(crate) struct CallGuard<'a> {
    view: BorrowedOrShared<'a, View>,
    counters: Counters<'a>,
    /// The counters of its tool, if tools are counted.
    tool: Option<Arc<SumCounters>>,
    /// The call's data in events; only set if there are subscribers or an audit log.
    info: Option<Box<CallInfo>>,
    started: Instant,
    is_open: bool,
}

/// Which counters a call belongs to.
enum Counters<'a> {
    /// The call has no route yet, or never gets one.
    Unrouted,
    /// A built-in tool, which the view answers itself.
    BuiltIn,
    Server(BorrowedOrShared<'a, ServerCounters>),
}

/// A value that is borrowed during a call, or shared for longer.
enum BorrowedOrShared<'a, T> {
    Borrowed(&'a T),
    Shared(Arc<T>),
}

impl<T> Deref for BorrowedOrShared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Shared(value) => value,
        }
    }
}

/// One call as events describe it.
#[derive(Debug)]
struct CallInfo {
    id: String,
    name: String,
    server: Option<ServerName>,
    tool: Option<String>,
    /// Whether the `CallCreated` event was sent.
    is_created: bool,
}

impl<'a> CallGuard<'a> {
    /// Begins a call whose tool is not known yet. `CallCreated` is sent once it is known, or with [`CallGuard::create`].
    pub(crate) fn open(view: &'a View, call: &ToolCall, started: Instant) -> Self {
        if let Some(counts) = &view.label_counts {
            counts.begin();
        }
        Self {
            tool: None,
            info: (view.events.has_subscribers() || view.audit.is_some()).then(|| Box::new(CallInfo::new(call))),
            view: BorrowedOrShared::Borrowed(view),
            counters: Counters::Unrouted,
            started,
            is_open: true,
        }
    }

    /// Begins a call on its route.
    pub(crate) fn open_on_route(view: &'a View, route: &'a Route, call: &ToolCall, started: Instant) -> Self {
        let mut guard = Self::open(view, call, started);
        guard.route(route);
        guard
    }

    /// Sets the route of the call.
    pub(crate) fn route(&mut self, route: &'a Route) {
        let counts = route.server.counts();
        counts.begin();
        self.counters = Counters::Server(BorrowedOrShared::Borrowed(counts));
        self.tool = counts.tool(&route.tool.name);
        self.set_tool(&route.tool, route.server.name());
    }

    /// Marks the call as one of a built-in tool.
    pub(crate) fn mark_built_in(&mut self, tool: &Tool) {
        self.counters = Counters::BuiltIn;
        self.set_tool(tool, &tool.server);
    }

    fn set_tool(&mut self, tool: &Tool, server: &ServerName) {
        if let Some(info) = &mut self.info {
            info.name = tool.dotted_name();
            info.server = Some(server.clone());
            info.tool = Some(tool.name.clone());
        }
        self.create();
    }

    /// Sends `CallCreated` unless it was sent.
    pub(crate) fn create(&mut self) {
        if let Some(info) = &mut self.info
            && !std::mem::replace(&mut info.is_created, true)
        {
            self.view
                .events
                .send(|| info.to_created_event(self.view.principal.as_ref()));
        }
    }

    /// Turns the guard into one that does not borrow its route and view.
    pub(crate) fn into_shared(mut self, view: &Arc<View>, route: &Route) -> CallGuard<'static> {
        self.is_open = false;
        CallGuard {
            view: BorrowedOrShared::Shared(view.clone()),
            counters: Counters::Server(BorrowedOrShared::Shared(route.server.counts().clone())),
            tool: self.tool.take(),
            info: self.info.take(),
            started: self.started,
            is_open: true,
        }
    }

    /// Ends the call with a reply. The decision about a call on a route is in the audit log by now.
    pub(crate) fn complete(self, reply: &Reply) {
        if let Counters::BuiltIn = self.counters {
            let (decision, rule) = match &reply.outcome {
                Outcome::Refused(failure) => (AuditDecision::Denied, Some(AuditRule::from_kind(failure.kind))),
                _ => (AuditDecision::Allowed, None),
            };
            self.decide(reply, true, decision, rule);
        }
        self.end(reply, true);
    }

    /// Who reads the reply.
    pub(crate) fn audience(&self) -> Audience {
        self.view.audience
    }

    /// Ends a call without a route. `is_listed` says whether the reply names a tool that its server lists.
    pub(crate) fn refuse(mut self, reply: &Reply, rule: AuditRule, is_listed: bool) {
        // A server that was never ready has no tools to route to, but its failures are its own.
        if is_outage(reply.outcome.kind())
            && let Some(counts) = reply.server.as_ref().and_then(|server| self.view.tallies.find(server))
        {
            counts.begin();
            self.counters = Counters::Server(BorrowedOrShared::Shared(counts));
        }
        self.decide(reply, is_listed, AuditDecision::Denied, Some(rule));
        self.end(reply, is_listed);
    }

    fn decide(&self, reply: &Reply, is_listed: bool, decision: AuditDecision, rule: Option<AuditRule>) {
        if let Some(log) = &self.view.audit {
            let entry = AuditEntry::unrouted_decision(reply, is_listed, decision, rule);
            log.record(entry.with_view(self.view.name.as_ref(), self.view.principal.as_ref()));
        }
    }

    fn end(mut self, reply: &Reply, is_listed: bool) {
        self.is_open = false;
        let kind = reply.outcome.kind();
        self.create();
        self.count(kind, reply.latency);
        self.view
            .events
            .send(|| Event::from_reply(reply, self.view.principal.as_ref()));
        if let Some(log) = &self.view.audit {
            log.record(
                AuditEntry::from_reply(reply, is_listed)
                    .with_view(self.view.name.as_ref(), self.view.principal.as_ref()),
            );
        }
        if reply.untrusted
            && let Some(server) = &reply.server
        {
            self.view.rules.taint.mark(server);
        }
        if kind == Kind::Ok {
            tracing::debug!(id = %reply.id, latency = ?reply.latency, "call ended");
        } else {
            let (server, tool) = (reply.server.as_ref().map(tracing::field::display), &reply.tool);
            let tool = tool.as_ref().map(tracing::field::display);
            let principal = self.view.principal.as_ref().map(tracing::field::display);
            tracing::info!(id = %reply.id, principal, server, tool, kind = kind.as_str(), latency = ?reply.latency, "call failed");
        }
    }

    fn count(&self, kind: Kind, took: std::time::Duration) {
        match &self.counters {
            Counters::Unrouted => self.view.tallies.unrouted.count(kind, took),
            Counters::BuiltIn => self.view.tallies.own_tools.count(kind, took),
            Counters::Server(counts) => counts.end(kind, took),
        }
        for counts in [&self.tool, &self.view.principal_counts].into_iter().flatten() {
            counts.count(kind, took);
        }
        if let Some(counts) = &self.view.label_counts {
            counts.end(kind, took);
        }
    }

    /// Ends the call as cancelled.
    #[cold]
    fn cancel(&mut self) {
        self.create();
        let took = self.started.elapsed();
        self.count(Kind::Cancelled, took);
        if let Some(info) = self.info.take() {
            if let Some(log) = &self.view.audit {
                let (server, tool) = (info.server.as_ref(), info.tool.as_deref());
                let entry = AuditEntry::cancelled(&info.id, &info.name, server, tool, took);
                log.record(entry.with_view(self.view.name.as_ref(), self.view.principal.as_ref()));
            }
            tracing::info!(id = %info.id, kind = Kind::Cancelled.as_str(), latency = ?took, "call dropped");
            let end = CallEnd {
                id: info.id,
                name: info.name,
                server: info.server,
                tool: info.tool,
                principal: self.view.principal.clone(),
            };
            self.view.events.send(|| Event::cancelled(end, took));
        } else {
            tracing::info!(kind = Kind::Cancelled.as_str(), latency = ?took, "call dropped");
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.cancel();
        }
    }
}

impl std::fmt::Debug for CallGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallGuard")
            .field("call", &self.info)
            .finish_non_exhaustive()
    }
}

/// Whether a call of this kind failed because its server is not ready.
fn is_outage(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Unavailable | Kind::NeedsAuth | Kind::RestartFailed | Kind::RestartInProgress | Kind::Timeout
    )
}

impl CallInfo {
    fn new(call: &ToolCall) -> Self {
        let name = &call.name[..call.name.floor_char_boundary(MAX_NAME)];
        Self {
            id: call.id.clone(),
            name: name.to_owned(),
            server: None,
            tool: None,
            is_created: false,
        }
    }

    fn to_created_event(&self, principal: Option<&Principal>) -> Event {
        Event::CallCreated {
            id: self.id.clone(),
            name: self.name.clone(),
            server: self.server.clone(),
            tool: self.tool.clone(),
            principal: principal.cloned(),
            at: Timestamp::now(),
        }
    }
}
