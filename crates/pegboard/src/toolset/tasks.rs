//! Calls that are started and fetched later.

use tokio::time::Instant;

use super::{LOOK_UP, Toolset};
use crate::{
    call::{self, TaskHandle, ToolCall},
    deadline::Deadline,
    outcome::{Failure, Reply},
};

impl Toolset {
    /// Starts a tool as a task and returns as soon as its server has taken it on. The reply of a call that could not be started says why.
    pub async fn start(&self, call: ToolCall) -> Result<TaskHandle, Box<Reply>> {
        if let Some(selection) = &call.selection {
            let narrowed = self.selecting(selection);
            return narrowed.start_here(call).await;
        }
        self.start_here(call).await
    }

    async fn start_here(&self, call: ToolCall) -> Result<TaskHandle, Box<Reply>> {
        let started = Instant::now();
        let deadline = Deadline::within(call.timeout.unwrap_or(LOOK_UP));
        match self.route(&call.name, deadline).await {
            Ok((route, _)) => call::start(&self.view, route, call, started).await,
            Err(astray) => Err(Box::new(call::refuse(&call, astray, started))),
        }
    }

    /// Takes up a task that was started earlier, also by another program: `name` is its tool, `id` what [`TaskHandle::id`] said. The server is
    /// asked whether it knows the task.
    pub async fn task(&self, name: &str, id: &str) -> Result<TaskHandle, Failure> {
        let deadline = Deadline::within(LOOK_UP);
        let (route, _) = self.route(name, deadline).await?;
        call::take_up(&self.view, route, id, deadline).await
    }
}
