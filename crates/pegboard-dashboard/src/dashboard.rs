//! [`Dashboard`]: the routes of the pages.

use std::sync::Arc;

use axum::{
    Router,
    middleware::map_response,
    routing::{get, post},
};
use pegboard_daemon::LocalApi;
use pegboard_gateway::BrowserSessions;

use crate::{
    assets, layout,
    pages::{
        agents, calls, config, definition, overview, policy, server, server_changes, servers, sign_in, tool, tool_call,
        tools,
    },
    ui::{ReadConfig, ReadScore, Sources, Ui},
};

/// The pages of a daemon.
#[derive(Clone)]
pub struct Dashboard {
    api: LocalApi,
    sessions: BrowserSessions,
    sources: Sources,
}

impl Dashboard {
    /// The pages of a daemon with this API, for browsers with these sessions.
    pub fn new(api: LocalApi, sessions: BrowserSessions) -> Self {
        Self {
            api,
            sessions,
            sources: Sources::default(),
        }
    }

    /// Shows the config that this reads. It runs on a thread that may wait for a disk.
    #[must_use]
    pub fn config(mut self, read: ReadConfig) -> Self {
        self.sources.config = Some(read);
        self
    }

    /// Shows how servers stood `pegboard torture`. It runs on a thread that may wait for a disk.
    #[must_use]
    pub fn scores(mut self, read: ReadScore) -> Self {
        self.sources.score = Some(read);
        self
    }

    /// The router of the pages. From now on the counters of the board are read every ten seconds.
    pub fn router(self) -> Router {
        self.sessions.serve();
        let ui = Arc::new(Ui::new(self.api, self.sessions, self.sources));
        Router::new()
            .route("/", get(overview::get))
            .route("/ui", get(async || layout::see_other("/")))
            .route("/ui/live/overview", get(overview::live))
            .route("/ui/servers", get(servers::get))
            .route("/ui/live/servers", get(servers::live))
            .route("/ui/servers/{name}", get(server::get))
            .route("/ui/live/servers/{name}", get(server::live))
            .route("/ui/servers/{name}/{change}", post(server_changes::post))
            .route("/ui/tools", get(tools::get))
            .route("/ui/tools/{server}/{tool}", get(tool::get).post(tool_call::post))
            .route("/ui/calls", get(calls::get))
            .route("/ui/live/calls", get(calls::live))
            .route("/ui/calls/{number}", get(calls::one))
            .route("/ui/agents", get(agents::get))
            .route("/ui/live/agents", get(agents::live))
            .route("/ui/policy", get(policy::get))
            .route("/ui/live/policy", get(policy::live))
            .route("/ui/approvals/{number}/{answer}", post(policy::answer))
            .route(
                "/ui/definitions/{server}/{hash}",
                get(definition::get).post(definition::accept),
            )
            .route("/ui/config", get(config::get).post(config::post))
            .route("/ui/sign-in", get(sign_in::get).post(sign_in::post))
            .route("/ui/sign-out", post(sign_in::sign_out))
            .route("/ui/open/{code}", get(sign_in::open))
            .route("/ui/assets/{digest}/{name}", get(assets::get))
            .route("/ui/{*rest}", get(sign_in::no_page))
            .layer(map_response(layout::protect))
            .with_state(ui)
    }
}

impl std::fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dashboard")
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}
