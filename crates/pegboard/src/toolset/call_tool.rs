//! Calls a tool: a tool of a server, or a built-in one.

use std::sync::Arc;

use tokio::{sync::mpsc, time::Instant};

use super::{builtin_tools::BuiltinReply, routing::LOOKUP_TIMEOUT, toolset_handle::Toolset};
use crate::call::{self, CallGuard, CallStream, ForwardedCall, Route, ToolCall, Unroutable};
use pegboard_base::deadline::Deadline;
use pegboard_tools::outcome::Reply;

/// The capacity of a call stream's progress channel. While it is full, further progress is dropped.
const STEPS: usize = 64;

impl Toolset {
    /// Calls a tool. Every failure is a reply too. Dropping the future cancels the call on the server.
    pub async fn call(&self, call: ToolCall) -> Reply {
        // Boxed, because it is rare and would enlarge the future of every call.
        if call::is_traced() {
            return Box::pin(call::traced(call, |call| self.call_untraced(call, None))).await;
        }
        self.call_untraced(call, None).await
    }

    /// Calls a tool outside of a span. `forwarded` is set if the call is passed on for a client of the program.
    pub(super) async fn call_untraced(&self, call: ToolCall, forwarded: Option<&ForwardedCall<'_>>) -> Reply {
        let (mut call, started) = (call, Instant::now());
        if let Some(selection) = &call.selection {
            let selected = self.selecting(selection);
            return Box::pin(selected.call_any(call, started, forwarded)).await;
        }
        // Most calls are of a known tool of a server. The other paths are boxed, because they would enlarge the future of these calls.
        if self.has_builtin_tools() {
            return Box::pin(self.call_any(call, started, forwarded)).await;
        }
        match self.known_route(&call.name) {
            Ok(Some(route)) => {
                let guard = CallGuard::routed(&self.view, &route, &call, started);
                call::run(&self.view, &route, &mut call, started, guard, forwarded).await
            }
            Ok(None) => {
                let guard = CallGuard::open(&self.view, &call, started);
                Box::pin(self.call_after_lookup(call, started, guard, forwarded)).await
            }
            Err(failure) => {
                let guard = CallGuard::open(&self.view, &call, started);
                call::refuse(&call, failure.into(), started, guard)
            }
        }
    }

    /// Calls a tool that may be a built-in one.
    async fn call_any(&self, call: ToolCall, started: Instant, forwarded: Option<&ForwardedCall<'_>>) -> Reply {
        let guard = CallGuard::open(&self.view, &call, started);
        self.call_opened(call, started, guard, forwarded).await
    }

    /// Calls a tool that may be a built-in one, as part of a call that has begun.
    pub(super) async fn call_opened(
        &self,
        call: ToolCall,
        started: Instant,
        guard: CallGuard<'_>,
        forwarded: Option<&ForwardedCall<'_>>,
    ) -> Reply {
        let (mut call, mut guard) = (call, guard);
        if self.has_builtin_tools() && !self.is_closed() {
            match self.call_builtin(call, started, guard).await {
                Ok(reply) => return reply,
                Err(other) => (call, guard) = *other,
            }
        }
        self.call_after_lookup(call, started, guard, forwarded).await
    }

    /// Calls a tool that may have to be looked up by starting servers.
    async fn call_after_lookup(
        &self,
        mut call: ToolCall,
        started: Instant,
        mut guard: CallGuard<'_>,
        forwarded: Option<&ForwardedCall<'_>>,
    ) -> Reply {
        let deadline = Deadline::after(started, call.timeout.unwrap_or(LOOKUP_TIMEOUT));
        match self.route_in_call(&call.name, deadline, &mut guard).await {
            Ok((route, is_repaired)) => {
                let written = is_repaired.then(|| call.name.clone());
                let mut guard: CallGuard<'_> = guard;
                guard.route(&route);
                let mut reply = call::run(&self.view, &route, &mut call, started, guard, forwarded).await;
                if let Some(written) = written {
                    reply.repaired = Some(format!("`{}` was taken for `{}`", written.escape_debug(), reply.name));
                }
                reply
            }
            Err(refused) => call::refuse(&call, refused, started, guard),
        }
    }

    /// Finds the route of `name`. Publishes the call before it waits for servers.
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

    /// Whether the view may have built-in tools. Cheap: it reads only flags.
    fn has_builtin_tools(&self) -> bool {
        let (view, outputs) = (&self.view, &self.view.result_options);
        view.tool_budget.is_some() || view.resource_tools || outputs.always_readable || outputs.spill.is_used()
    }

    /// Answers a call of a built-in tool, or returns the call if it is of another tool.
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

    /// Calls a tool and streams its events: created, progress, and completed with the reply. The channel set with
    /// [`ToolCall::progress`] gets no progress then.
    pub fn stream(&self, call: ToolCall) -> CallStream {
        let (steps, progress) = mpsc::channel(STEPS);
        let (id, name) = (call.id.clone(), call.name.clone());
        let (toolset, call) = (self.clone(), call.progress(steps));
        CallStream::new(id, name, Box::pin(async move { toolset.call(call).await }), progress)
    }
}
