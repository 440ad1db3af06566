//! [`Daemon`]: a board with the routes that operators and programs use.

use std::sync::Arc;

use axum::{Router, routing::get};
use pegboard::{Pegboard, SignInError};
use pegboard_gateway::{Monitor, SignInLinks};
use pegboard_telemetry::{Metric, Recorder};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, ApiState, LocalApi, ServerSettings},
    health, metrics,
    overview::Overview,
    reloads::Reloads,
    sign_in,
};

/// The routes of a daemon besides MCP. Clones share the board.
#[derive(Clone, Debug)]
pub struct Daemon {
    overview: Overview,
    settings: Option<Arc<dyn ServerSettings>>,
    stop: CancellationToken,
}

impl Daemon {
    /// The daemon of a board whose config is applied by whoever holds the other end of `reloads`.
    pub fn new(board: Pegboard, reloads: Reloads) -> Self {
        Self {
            overview: Overview::new(board, reloads),
            settings: None,
            stop: CancellationToken::new(),
        }
    }

    /// Adds what the gateway in front of it counts to its metrics. It is not ready any more once that gateway stops.
    #[must_use]
    pub fn with_monitor(mut self, monitor: Monitor) -> Self {
        self.overview.monitor = Some(monitor);
        self
    }

    /// Lets clients with the scope `admin` add servers, if the config allows it. Without this they cannot.
    #[must_use]
    pub fn server_settings(mut self, settings: Arc<dyn ServerSettings>) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Serves the pages on which people sign in to servers, at `/signin`. The links are those of the gateway in front of it.
    #[must_use]
    pub fn with_sign_in_links(mut self, links: SignInLinks) -> Self {
        self.overview.sign_in_links = Some(links);
        self
    }

    /// Adds the durations of requests, and how much telemetry was sent, to its metrics.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.overview.recorder = Some(recorder);
        self
    }

    /// The metrics of its page, for a collector of OpenTelemetry, without the durations that the exporter has itself.
    pub fn metrics(&self) -> Vec<Metric> {
        metrics::collect(&self.overview)
    }

    /// Ends the streams on which clients only listen when `stop` is cancelled, so that they do not hold up a shutdown.
    #[must_use]
    pub fn stop_with(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// The router of all routes.
    pub fn router(&self) -> Router {
        self.router_with(|_| Router::new())
    }

    /// The router of all routes and of pages that are made from the API.
    pub fn router_with(&self, pages: impl FnOnce(LocalApi) -> Router) -> Router {
        let api = ApiState::new(
            self.overview.board.clone(),
            self.overview.reloads.clone(),
            self.settings.clone(),
            self.stop.clone(),
            self.overview.monitor.clone().unwrap_or_default(),
            self.overview.sign_in_links.clone(),
        );
        let api = Arc::new(api);
        let sign_in = match &self.overview.sign_in_links {
            Some(links) => sign_in::router(api.clone(), links.clone()),
            None => Router::new(),
        };
        let pages = pages(LocalApi::new(api.clone(), self.overview.started_at));
        Router::new()
            .route("/readyz", get(health::ready))
            .route("/health", get(health::health))
            .route("/metrics", get(metrics::get))
            .with_state(self.overview.clone())
            .merge(api::router(api))
            .merge(sign_in)
            .merge(pages)
            .method_not_allowed_fallback(api::wrong_method)
            .fallback(api::unknown_path)
    }

    /// The status of the board, with a reload that failed among its warnings: the document of `GET servers`.
    pub fn status(&self) -> Value {
        api::status(&self.overview.board, &self.overview.reloads)
    }

    /// Who has signed in to which server: the document of `GET sign-ins`, without tokens.
    pub async fn sign_ins(&self) -> Result<Value, SignInError> {
        api::sign_ins(&self.overview.board).await
    }

    /// The board.
    pub fn board(&self) -> &Pegboard {
        &self.overview.board
    }

    /// The reloads of its config.
    pub fn reloads(&self) -> &Reloads {
        &self.overview.reloads
    }
}
