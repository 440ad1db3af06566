//! Counts a call and rings its events, exactly once each, however the call ends.

use std::{ops::Deref, sync::Arc};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{Route, ToolCall, View};
use crate::{
    catalog::Tool,
    event::{CallEnd, Event},
    metrics::ServerCounters,
    name::ServerName,
    outcome::{Kind, Reply},
};

/// The longest name of a tool in an event, in bytes. A name that leads nowhere may be any text that a model wrote.
const NAME: usize = 512;

/// Owns the end of one call. [`CallGuard::complete`] ends it with a reply; a guard that is dropped before ends it as cancelled.
///
/// Without listeners it is a few words and allocates nothing.
pub(crate) struct CallGuard<'a> {
    view: Kept<'a, View>,
    who: Who<'a>,
    /// What listeners are told; made only when there are some.
    told: Option<Box<Told>>,
    started: Instant,
    is_open: bool,
}

/// Whose counters a call belongs to.
enum Who<'a> {
    /// No tool was found for it yet.
    Unrouted,
    /// A tool that the view answers itself.
    Own,
    Server(Kept<'a, ServerCounters>),
}

/// A value that is borrowed for the length of a call, or held for longer.
enum Kept<'a, T> {
    Borrowed(&'a T),
    Held(Arc<T>),
}

impl<T> Deref for Kept<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Held(value) => value,
        }
    }
}

/// What listeners are told of one call.
#[derive(Debug)]
struct Told {
    id: String,
    name: String,
    server: Option<ServerName>,
    tool: Option<String>,
    /// Whether they know of it already.
    is_created: bool,
}

impl<'a> CallGuard<'a> {
    /// Begins a call whose tool is not known yet. Listeners are told of it once that is known, or with [`CallGuard::create`].
    pub(crate) fn open(view: &'a View, call: &ToolCall, started: Instant) -> Self {
        Self {
            told: view.events.has_subscribers().then(|| Box::new(Told::of(call))),
            view: Kept::Borrowed(view),
            who: Who::Unrouted,
            started,
            is_open: true,
        }
    }

    /// Begins a call on its route.
    pub(crate) fn routed(view: &'a View, route: &'a Route, call: &ToolCall, started: Instant) -> Self {
        let mut guard = Self::open(view, call, started);
        guard.route(route);
        guard
    }

    /// The route of the call was found.
    pub(crate) fn route(&mut self, route: &'a Route) {
        let counts = route.server.counts();
        counts.begin();
        self.who = Who::Server(Kept::Borrowed(counts));
        self.leads_to(&route.tool, route.server.name());
    }

    /// The call is one of a tool that the view answers itself.
    pub(crate) fn own(&mut self, tool: &Tool) {
        self.who = Who::Own;
        self.leads_to(tool, &tool.server);
    }

    fn leads_to(&mut self, tool: &Tool, server: &ServerName) {
        if let Some(told) = &mut self.told {
            told.name = tool.dotted_name();
            told.server = Some(server.clone());
            told.tool = Some(tool.name.clone());
        }
        self.create();
    }

    /// Tells listeners of the call, if they do not know of it.
    pub(crate) fn create(&mut self) {
        if let Some(told) = &mut self.told
            && !std::mem::replace(&mut told.is_created, true)
        {
            self.view.events.send(|| told.created());
        }
    }

    /// The same call for longer than its route and view are borrowed.
    pub(crate) fn held(mut self, view: &Arc<View>, route: &Route) -> CallGuard<'static> {
        self.is_open = false;
        CallGuard {
            view: Kept::Held(view.clone()),
            who: Who::Server(Kept::Held(route.server.counts().clone())),
            told: self.told.take(),
            started: self.started,
            is_open: true,
        }
    }

    /// The call has ended with a reply.
    pub(crate) fn complete(mut self, reply: &Reply) {
        self.is_open = false;
        let kind = reply.outcome.kind();
        self.create();
        self.count(kind, reply.latency);
        self.view.events.send(|| Event::completed(reply));
        if kind == Kind::Ok {
            tracing::debug!(id = %reply.id, latency = ?reply.latency, "call ended");
        } else {
            let (server, tool) = (reply.server.as_ref().map(tracing::field::display), &reply.tool);
            let tool = tool.as_ref().map(tracing::field::display);
            tracing::info!(id = %reply.id, server, tool, kind = kind.as_str(), latency = ?reply.latency, "call failed");
        }
    }

    fn count(&self, kind: Kind, took: std::time::Duration) {
        match &self.who {
            Who::Unrouted => self.view.tallies.unrouted.count(kind, took),
            Who::Own => self.view.tallies.own_tools.count(kind, took),
            Who::Server(counts) => counts.end(kind, took),
        }
    }

    /// The caller has dropped the call.
    #[cold]
    fn cancel(&mut self) {
        self.create();
        let took = self.started.elapsed();
        self.count(Kind::Cancelled, took);
        if let Some(told) = self.told.take() {
            tracing::info!(id = %told.id, kind = Kind::Cancelled.as_str(), latency = ?took, "call dropped");
            let end = CallEnd {
                id: told.id,
                name: told.name,
                server: told.server,
                tool: told.tool,
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
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

impl Told {
    fn of(call: &ToolCall) -> Self {
        let name = &call.name[..call.name.floor_char_boundary(NAME)];
        Self {
            id: call.id.clone(),
            name: name.to_owned(),
            server: None,
            tool: None,
            is_created: false,
        }
    }

    fn created(&self) -> Event {
        Event::CallCreated {
            id: self.id.clone(),
            name: self.name.clone(),
            server: self.server.clone(),
            tool: self.tool.clone(),
            at: Timestamp::now(),
        }
    }
}
