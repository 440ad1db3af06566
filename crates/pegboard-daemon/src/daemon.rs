//! [`Daemon`]: a board with the routes that operators and programs use.

use std::sync::Arc;

use axum::{Router, routing::get};
use jiff::Timestamp;
use pegboard::Pegboard;
use pegboard_gateway::Monitor;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, ApiState, ServerSettings},
    health, metrics,
    reloads::Reloads,
};

/// The routes of a daemon besides MCP. Clones share the board.
#[derive(Clone, Debug)]
pub struct Daemon {
    board: Pegboard,
    reloads: Reloads,
    settings: Option<Arc<dyn ServerSettings>>,
    stop: CancellationToken,
    started_at: Timestamp,
    monitor: Option<Monitor>,
}

impl Daemon {
    /// The daemon of a board whose config is applied by whoever holds the other end of `reloads`.
    pub fn new(board: Pegboard, reloads: Reloads) -> Self {
        Self {
            board,
            reloads,
            settings: None,
            stop: CancellationToken::new(),
            started_at: Timestamp::now(),
            monitor: None,
        }
    }

    /// Adds what the gateway in front of it counts to its metrics. It is not ready any more once that gateway stops.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Monitor) -> Self {
        self.monitor = Some(monitor);
        self
    }

    /// Lets clients with the scope `admin` add servers, if the config allows it. Without this they cannot.
    #[must_use]
    pub fn server_settings(mut self, settings: Arc<dyn ServerSettings>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Ends the streams on which clients only listen when `stop` is cancelled, so that they do not hold up a shutdown.
    #[must_use]
    pub fn stop_with(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// The router of all routes.
    pub fn router(&self) -> Router {
        let api = ApiState::new(
            self.board.clone(),
            self.reloads.clone(),
            self.settings.clone(),
            self.stop.clone(),
        );
        Router::new()
            .route("/readyz", get(health::ready))
            .route("/health", get(health::health))
            .route("/metrics", get(metrics::get))
            .with_state(self.clone())
            .merge(api::router(Arc::new(api)))
            .method_not_allowed_fallback(api::wrong_method)
            .fallback(api::unknown_path)
    }

    /// The board.
    pub fn board(&self) -> &Pegboard {
        &self.board
    }

    /// When it was started.
    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// What the gateway in front of it counts.
    pub(crate) fn monitor(&self) -> Option<&Monitor> {
        self.monitor.as_ref()
    }

    /// Returns `true` once the gateway in front of it stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.monitor.as_ref().is_some_and(Monitor::is_draining)
    }

    /// The reloads of its config.
    pub fn reloads(&self) -> &Reloads {
        &self.reloads
    }
}
