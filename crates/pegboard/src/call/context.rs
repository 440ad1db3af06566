//! The state that all steps of a call share: view, route, settings and deadline.

use std::{borrow::Cow, sync::Arc};

use tokio::time::Instant;

use super::{forwarding::ForwardedCall, route::resolved::Route, view::View};
use crate::server::Server;
use pegboard_base::deadline::Deadline;
use pegboard_config::ServerConfig;
use pegboard_tools::catalog::Tool;
use pegboard_tools::tool_call::ToolCall;

/// The state that all steps of a call share.
pub(crate) struct CallContext<'a> {
    pub(super) view: &'a View,
    pub(super) route: &'a Route,
    /// A snapshot of the server's settings, taken when the call began.
    pub(super) config: Arc<ServerConfig>,
    pub(super) started: Instant,
    /// The one deadline for everything the call waits for.
    pub(super) deadline: Deadline,
    /// Set if the call is passed on for a client of the program.
    pub(super) forwarded: Option<&'a ForwardedCall<'a>>,
}

impl<'a> CallContext<'a> {
    pub(super) fn new(view: &'a View, route: &'a Route, call: &ToolCall, started: Instant) -> Self {
        let config = route.server.config_snapshot();
        let most = config.limits.call_total_timeout;
        Self {
            view,
            route,
            deadline: Deadline::after(started, call.timeout.unwrap_or(most).min(most)),
            config,
            started,
            forwarded: None,
        }
    }

    /// Creates a context with its own deadline, for the end of a call that was started as a task.
    pub(super) fn until(view: &'a View, route: &'a Route, deadline: Deadline) -> Self {
        Self {
            view,
            route,
            config: route.server.config_snapshot(),
            started: Instant::now(),
            deadline,
            forwarded: None,
        }
    }

    pub(super) fn server(&self) -> &'a Server {
        &self.route.server
    }

    pub(super) fn tool(&self) -> &'a Tool {
        &self.route.tool
    }

    /// The name of the tool as the reader of the view's texts knows it.
    pub(super) fn tool_name(&self) -> Cow<'a, str> {
        self.route.name_for(self.view.audience)
    }
}
