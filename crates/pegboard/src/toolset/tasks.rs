//! Starts calls as tasks, and resumes tasks that were started earlier.

use tokio::time::Instant;

use super::{routing::LOOKUP_TIMEOUT, toolset_handle::Toolset};
use crate::call::{self, CallGuard, TaskHandle, ToolCall};
use pegboard_base::deadline::Deadline;
use pegboard_tools::outcome::{Failure, Reply};

impl Toolset {
    /// Starts a tool as a task and returns as soon as its server has accepted it. The reply to a call that could not be started says why.
    pub async fn start(&self, call: ToolCall) -> Result<TaskHandle, Box<Reply>> {
        if let Some(selection) = &call.selection {
            let selected = self.selecting(selection);
            return selected.start_here(call).await;
        }
        self.start_here(call).await
    }

    async fn start_here(&self, call: ToolCall) -> Result<TaskHandle, Box<Reply>> {
        let started = Instant::now();
        let deadline = Deadline::within(call.timeout.unwrap_or(LOOKUP_TIMEOUT));
        let mut guard = CallGuard::open(&self.view, &call, started);
        match self.route_in_call(&call.name, deadline, &mut guard).await {
            Ok((route, _)) => {
                let routed = route.clone();
                let mut guard: CallGuard<'_> = guard;
                guard.route(&routed);
                call::start_task(&self.view, route, call, started, guard).await
            }
            Err(refused) => Err(Box::new(call::refuse(&call, refused, started, guard))),
        }
    }

    /// Resumes a task that was started earlier, even by another program. `name` is its tool and `id` its [`TaskHandle::id`]. Requests the
    /// task's status from the server.
    pub async fn task(&self, name: &str, id: &str) -> Result<TaskHandle, Failure> {
        let deadline = Deadline::within(LOOKUP_TIMEOUT);
        let (route, _) = self.route(name, deadline).await?;
        call::attach_task(&self.view, route, id, deadline).await
    }
}
