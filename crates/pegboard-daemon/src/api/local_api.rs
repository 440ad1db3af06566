//! [`LocalApi`]: the API for pages that are served by the same process.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use pegboard::{Event, Pegboard, Provider, ServerName, Timestamp, Toolset};
use pegboard_gateway::{Caller, GatewayMetrics};
use serde_json::Value;
use tower_service::Service as _;

use super::{documents::StatusDocument, events::is_seen, routes::router, servers::document, state::ApiState};
use crate::reloads::Reloads;

/// The longest response that a page reads.
const MAX_RESPONSE: usize = 64 << 20;

/// The API of a daemon for its own pages. What a caller sees and may do is what it sees and may do over HTTP: requests that change or call something
/// take the same path, with its checks and its records. Clones share everything.
#[derive(Clone, Debug)]
pub struct LocalApi {
    state: Arc<ApiState>,
    router: Router,
    started_at: Timestamp,
}

/// The response of the API to a page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApiReply {
    /// Its status.
    pub status: StatusCode,
    /// Its document; `null` if there is none.
    pub body: Value,
}

impl ApiReply {
    /// Whether the request was successful.
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// What is wrong, and what to do, of a response that is a problem.
    pub fn problem(&self) -> (String, Option<String>) {
        let text = |field: &str| self.body[field].as_str().map(str::to_owned);
        let detail = text("detail").unwrap_or_else(|| format!("the request failed with status {}", self.status));
        (detail, text("hint"))
    }
}

impl LocalApi {
    pub(crate) fn new(state: Arc<ApiState>, started_at: Timestamp) -> Self {
        Self {
            router: router(state.clone()),
            state,
            started_at,
        }
    }

    /// The board.
    pub fn board(&self) -> &Pegboard {
        &self.state.board
    }

    /// The reloads of its config.
    pub fn reloads(&self) -> &Reloads {
        &self.state.reloads
    }

    /// When the daemon was started.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// What the gateway has counted.
    pub fn gateway_metrics(&self) -> GatewayMetrics {
        self.state.monitor.read()
    }

    /// Completes when the daemon stops.
    pub async fn stopped(&self) {
        self.state.stop.cancelled().await;
    }

    /// The status that a caller sees: the document of `GET servers`. Whether it may is for the page to check.
    pub fn status(&self, caller: &Caller) -> StatusDocument {
        document(&self.state, caller, None)
    }

    /// Whether a caller sees a server.
    pub fn sees(&self, caller: &Caller, server: &ServerName) -> bool {
        self.state.sees(caller, server.as_str())
    }

    /// Whether a caller sees an event of the board.
    pub fn sees_event(&self, caller: &Caller, event: &Event) -> bool {
        is_seen(&self.state, caller, event)
    }

    /// The toolset that lists what a caller sees, with the names and definitions of a provider. Fails with the reason.
    pub fn listings(&self, caller: &Caller, provider: Provider) -> Result<Toolset, String> {
        self.state
            .listings(caller, provider)
            .map_err(|problem| problem.detail().to_owned())
    }

    /// Sends a request of a caller to the API.
    pub async fn request(&self, caller: &Caller, method: Method, path: &str, body: &Value) -> ApiReply {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder().method(method).uri(path);
        let Ok(mut request) = request.body(Body::from(body)) else {
            return failed("the name cannot be part of a path");
        };
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json.clone());
        request.headers_mut().insert(ACCEPT, json);
        request.extensions_mut().insert(caller.clone());
        let response = match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        match to_bytes(response.into_body(), MAX_RESPONSE).await {
            Ok(bytes) => ApiReply {
                status,
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
            },
            Err(_) => failed("the response is too long for a page"),
        }
    }
}

fn failed(why: &str) -> ApiReply {
    ApiReply {
        status: StatusCode::BAD_REQUEST,
        body: serde_json::json!({"detail": why}),
    }
}
