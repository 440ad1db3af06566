//! Calls a tool: a tool of a server, or a built-in one.

use std::sync::Arc;

use tokio::{sync::mpsc, time::Instant};

use super::{builtin_tools::BuiltinReply, routing::LOOKUP_TIMEOUT, toolset_handle::Toolset};
use crate::{
    call::{self, CallGuard, CallStream, Route, ToolCall, Unroutable},
    deadline::Deadline,
    outcome::Reply,
};

/// How many steps of progress may wait in a stream of events. Only the newest matter.
const STEPS: usize = 64;

impl Toolset {
    /// Calls a tool. There is a reply in every case; dropping the future cancels the call on the server.
    pub async fn call(&self, call: ToolCall) -> Reply {
        // Boxed, because it is rare and every call would pay for the room.
        if call::is_traced() {
            return Box::pin(call::traced(call, |call| self.call_untraced(call))).await;
        }
        self.call_untraced(call).await
    }

    async fn call_untraced(&self, call: ToolCall) -> Reply {
        let (mut call, started) = (call, Instant::now());
        if let Some(selection) = &call.selection {
            let selection_views = self.selecting(selection);
            return Box::pin(selection_views.call_any(call, started)).await;
        }
        // Most calls are of a tool that is known and not ours. Boxed, because all others would make these pay for the room.
        if self.has_builtin_tools() {
            return Box::pin(self.call_any(call, started)).await;
        }
        match self.known_route(&call.name) {
            Ok(Some(route)) => {
                let guard = CallGuard::routed(&self.view, &route, &call, started);
                call::run(&self.view, &route, &mut call, started, guard).await
            }
            Ok(None) => {
                let guard = CallGuard::open(&self.view, &call, started);
                Box::pin(self.call_after_lookup(call, started, guard)).await
            }
            Err(failure) => {
                let guard = CallGuard::open(&self.view, &call, started);
                call::refuse(&call, failure.into(), started, guard)
            }
        }
    }

    /// Calls a tool that may be one of ours.
    async fn call_any(&self, call: ToolCall, started: Instant) -> Reply {
        let guard = CallGuard::open(&self.view, &call, started);
        self.call_opened(call, started, guard).await
    }

    /// Calls a tool that may be one of ours, as tool of a call that has begun.
    pub(super) async fn call_opened(&self, call: ToolCall, started: Instant, guard: CallGuard<'_>) -> Reply {
        let (mut call, mut guard) = (call, guard);
        if self.has_builtin_tools() && !self.is_closed() {
            match self.call_builtin(call, started, guard).await {
                Ok(reply) => return reply,
                Err(other) => (call, guard) = *other,
            }
        }
        self.call_after_lookup(call, started, guard).await
    }

    /// Calls a tool that may have to be looked for.
    async fn call_after_lookup(&self, mut call: ToolCall, started: Instant, mut guard: CallGuard<'_>) -> Reply {
        let deadline = Deadline::after(started, call.timeout.unwrap_or(LOOKUP_TIMEOUT));
        match self.route_in_call(&call.name, deadline, &mut guard).await {
            Ok((route, is_repaired)) => {
                let written = is_repaired.then(|| call.name.clone());
                let mut guard: CallGuard<'_> = guard;
                guard.route(&route);
                let mut reply = call::run(&self.view, &route, &mut call, started, guard).await;
                if let Some(written) = written {
                    reply.repaired = Some(format!("`{}` was taken for `{}`", written.escape_debug(), reply.name));
                }
                reply
            }
            Err(refused) => call::refuse(&call, refused, started, guard),
        }
    }

    /// Where `name` leads. Listeners are told of the call before servers are waited for.
    pub(super) async fn route_in_call(
        &self,
        name: &str,
        deadline: Deadline,
        guard: &mut CallGuard<'_>,
    ) -> Result<(Arc<Route>, bool), Unroutable> {
        let may_wait = self.known_route(name)?.is_none() && !self.not_ready().is_empty();
        if may_wait {
            guard.create();
        }
        self.route(name, deadline).await
    }

    /// Whether there may be tools that the toolset itself answers. It costs a look at some flags.
    fn has_builtin_tools(&self) -> bool {
        let (view, outputs) = (&self.view, &self.view.outputs);
        view.tool_budget.is_some() || view.resource_tools || outputs.always_readable || outputs.spill.is_used()
    }

    /// The reply to a call of a tool that the toolset itself answers, or the call back when another tool is meant.
    async fn call_builtin<'a>(&'a self, call: ToolCall, started: Instant, guard: CallGuard<'a>) -> BuiltinReply<'a> {
        let (call, guard) = match self.read_output(call, started, guard).await {
            Err(other) => *other,
            reply => return reply,
        };
        let (call, guard) = match self.discover(call, started, guard).await {
            Err(other) => *other,
            reply => return reply,
        };
        self.call_resource_tool(call, started, guard).await
    }

    /// Calls a tool and tells what happens meanwhile: the call is created, makes progress, and is completed with its reply. Progress does
    /// not go to [`ToolCall::progress`] then.
    pub fn stream(&self, call: ToolCall) -> CallStream {
        let (steps, told) = mpsc::channel(STEPS);
        let (id, name) = (call.id.clone(), call.name.clone());
        let (toolset, call) = (self.clone(), call.progress(steps));
        CallStream::new(id, name, Box::pin(async move { toolset.call(call).await }), told)
    }
}
