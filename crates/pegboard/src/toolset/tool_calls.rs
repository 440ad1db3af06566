//! [`ToolCalls`]: calls a tool of a server, or a built-in one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{
    builtin_tools::{self, BuiltinReply},
    open_view::OpenView,
    output_reader::OutputReader,
    resolver::{LOOKUP_TIMEOUT, Resolver},
    resource_reader::ResourceReader,
    selection_views::SelectionViews,
    tool_finder::{Discovered, Rewritten, ToolFinder},
};
use crate::{
    audit::AuditRule,
    call::{self, CallGuard, ForwardedCall, Routed, TaskHandle, ToolCall, Unroutable},
    recent::Recording,
};
use pegboard_base::deadline::Deadline;
use pegboard_tools::outcome::{Failure, Kind, Reply};

/// The calls of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolCalls<'a> {
    open: &'a OpenView,
    selections: &'a SelectionViews,
}

impl<'a> ToolCalls<'a> {
    pub(super) fn new(open: &'a OpenView, selections: &'a SelectionViews) -> Self {
        Self { open, selections }
    }

    /// Calls a tool. `forwarded` is set if the call is passed on for a client of the program.
    ///
    /// Boxed, like everything that other crates await: the future is compiled here once, and not again in each of them.
    pub(super) fn call(self, call: ToolCall, forwarded: Option<&'a ForwardedCall<'a>>) -> BoxFuture<'a, Reply> {
        if self.open.view.tallies.recent_calls.is_on() {
            return Box::pin(self.call_recorded(call, forwarded));
        }
        self.call_unrecorded(call, forwarded)
    }

    /// Calls a tool, and records the call for people who watch.
    async fn call_recorded(self, mut call: ToolCall, forwarded: Option<&'a ForwardedCall<'a>>) -> Reply {
        let view = &self.open.view;
        let target = match self.open.table().find(&call.name) {
            Routed::To(route) => Some((
                route.server.name().clone(),
                Arc::clone(&route.server.masker().current()),
            )),
            _ => None,
        };
        let (name, principal) = (view.name.as_deref(), view.principal.as_ref());
        let recording = Recording::begin(&view.tallies.recent_calls, &mut call, target, name, principal);
        let reply = self.call_unrecorded(call, forwarded).await;
        recording.finish(&reply);
        reply
    }

    fn call_unrecorded(self, call: ToolCall, forwarded: Option<&'a ForwardedCall<'a>>) -> BoxFuture<'a, Reply> {
        if call::is_traced() {
            return Box::pin(call::trace(call, move |call| self.call_untraced(call, forwarded)));
        }
        Box::pin(self.call_untraced(call, forwarded))
    }

    /// Calls a tool outside of a span.
    async fn call_untraced(self, call: ToolCall, forwarded: Option<&ForwardedCall<'_>>) -> Reply {
        let (mut call, started) = (call, Instant::now());
        if let Some(selection) = &call.selection {
            let selected = self.selections.get(self.open, selection);
            let calls = ToolCalls::new(&selected, self.selections);
            return Box::pin(calls.call_any(call, started, forwarded)).await;
        }
        // Most calls are of a known tool of a server. The other paths are boxed, because they would enlarge the future of these calls.
        if self.has_builtin_tools() {
            return Box::pin(self.call_any(call, started, forwarded)).await;
        }
        match Resolver::new(self.open).find(&call.name) {
            Ok(Some(route)) => {
                let guard = CallGuard::open_on_route(&self.open.view, &route, &call, started);
                call::run(&self.open.view, &route, &mut call, started, guard, forwarded).await
            }
            Ok(None) => {
                let guard = CallGuard::open(&self.open.view, &call, started);
                Box::pin(self.call_after_lookup(call, started, guard, forwarded)).await
            }
            Err(failure) => {
                let guard = CallGuard::open(&self.open.view, &call, started);
                call::refuse(&call, failure.into(), started, guard)
            }
        }
    }

    /// Calls a tool that may be a built-in one.
    async fn call_any(self, call: ToolCall, started: Instant, forwarded: Option<&ForwardedCall<'_>>) -> Reply {
        let guard = CallGuard::open(&self.open.view, &call, started);
        self.continue_call(call, started, guard, forwarded).await
    }

    /// Calls a tool that may be a built-in one, as part of a call that has begun.
    async fn continue_call(
        self,
        call: ToolCall,
        started: Instant,
        guard: CallGuard<'a>,
        forwarded: Option<&ForwardedCall<'_>>,
    ) -> Reply {
        let (mut call, mut guard) = (call, guard);
        if self.has_builtin_tools() && !self.open.is_closed() {
            match self.call_builtin(call, started, guard).await {
                Ok(reply) => return reply,
                Err(other) => (call, guard) = *other,
            }
        }
        self.call_after_lookup(call, started, guard, forwarded).await
    }

    /// Calls a tool that may have to be looked up by starting servers.
    async fn call_after_lookup(
        self,
        mut call: ToolCall,
        started: Instant,
        mut guard: CallGuard<'_>,
        forwarded: Option<&ForwardedCall<'_>>,
    ) -> Reply {
        let deadline = Deadline::after(started, call.timeout.unwrap_or(LOOKUP_TIMEOUT));
        match Resolver::new(self.open)
            .resolve_in_call(&call.name, deadline, &mut guard)
            .await
        {
            Ok((route, is_repaired)) => {
                let written = is_repaired.then(|| call.name.clone());
                let mut guard: CallGuard<'_> = guard;
                guard.route(&route);
                let mut reply = call::run(&self.open.view, &route, &mut call, started, guard, forwarded).await;
                if let Some(written) = written {
                    reply.repaired = Some(format!("`{}` was taken for `{}`", written.escape_debug(), reply.name));
                }
                reply
            }
            Err(refused) => call::refuse(&call, refused, started, guard),
        }
    }

    /// Whether the view may have built-in tools. Cheap: it reads only flags.
    fn has_builtin_tools(self) -> bool {
        let view = &self.open.view;
        view.tool_budget.is_some() || view.resource_tools || view.result_options.lists_reader()
    }

    /// Answers a call of a built-in tool, or returns the call if it is of another tool.
    async fn call_builtin(self, call: ToolCall, started: Instant, guard: CallGuard<'a>) -> BuiltinReply<'a> {
        let (call, guard) = match OutputReader::new(self.open).answer(call, started, guard).await {
            Err(other) => *other,
            reply => return reply,
        };
        let (call, guard) = match ToolFinder::new(self.open).answer(call, started, guard).await {
            Discovered::Reply(reply) => return Ok(*reply),
            Discovered::Other(other) => *other,
            Discovered::Forward(rewritten) => {
                let Rewritten {
                    call,
                    guard,
                    called,
                    listed,
                } = *rewritten;
                let mut reply = Box::pin(self.continue_call(call, started, guard, None)).await;
                builtin_tools::note_repair(&mut reply, &called, &listed);
                return Ok(reply);
            }
        };
        ResourceReader::new(self.open).answer(call, started, guard).await
    }

    /// Refuses a call whose caller lacks a right that the program grants.
    pub(super) fn refuse(self, call: &ToolCall, why: &str) -> Reply {
        let started = Instant::now();
        let guard = CallGuard::open(&self.open.view, call, started);
        let failure = Failure::new(Kind::NotPermitted, why);
        let refused = match Resolver::new(self.open).find_tool(&call.name) {
            Some(known) => Unroutable::for_tool(&known.tool, AuditRule::Scope, failure),
            None => Unroutable {
                failure,
                identified: None,
                is_listed: false,
                rule: AuditRule::Scope,
            },
        };
        call::refuse(call, refused, started, guard)
    }

    /// Starts a tool as a task and returns as soon as its server has accepted it.
    pub(super) fn start(self, call: ToolCall) -> BoxFuture<'a, Result<TaskHandle, Box<Reply>>> {
        Box::pin(async move {
            if let Some(selection) = &call.selection {
                let selected = self.selections.get(self.open, selection);
                return start_task(&selected, call).await;
            }
            start_task(self.open, call).await
        })
    }

    /// Attaches to a task of the tool `name` that was started earlier.
    pub(super) fn attach(self, name: &'a str, id: &'a str) -> BoxFuture<'a, Result<TaskHandle, Failure>> {
        Box::pin(async move {
            let deadline = Deadline::within(LOOKUP_TIMEOUT);
            let (route, _) = Resolver::new(self.open).resolve(name, deadline).await?;
            call::attach_task(&self.open.view, route, id, deadline).await
        })
    }

    /// Whether the called tool is known, declares itself read-only, and its server is trusted.
    pub(super) fn only_reads(self, call: &ToolCall) -> bool {
        let table = match &call.selection {
            Some(selection) => self.selections.get(self.open, selection).table(),
            None => self.open.table(),
        };
        let Routed::To(route) = table.find(&call.name) else {
            return false;
        };
        route
            .tool
            .is_read_only(route.is_believed(&route.server.config_snapshot().policy))
    }
}

async fn start_task(open: &OpenView, call: ToolCall) -> Result<TaskHandle, Box<Reply>> {
    let started = Instant::now();
    let deadline = Deadline::within(call.timeout.unwrap_or(LOOKUP_TIMEOUT));
    let mut guard = CallGuard::open(&open.view, &call, started);
    match Resolver::new(open)
        .resolve_in_call(&call.name, deadline, &mut guard)
        .await
    {
        Ok((route, _)) => {
            let routed = route.clone();
            let mut guard: CallGuard<'_> = guard;
            guard.route(&routed);
            call::start_task(&open.view, route, call, started, guard).await
        }
        Err(refused) => Err(Box::new(call::refuse(&call, refused, started, guard))),
    }
}
