//! What a daemon answers to the commands of its user, beside MCP.

use axum::{
    Extension, Json, Router,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use pegboard_daemon::Daemon;
use pegboard_gateway::LocalClient;
use serde_json::json;

use super::{hello::Identified, journal::Unfinished};

/// The routes under `/local`. They answer only at the local socket.
pub(crate) fn router(identified: Identified, daemon: Daemon, unfinished: &[Unfinished]) -> Router {
    let unfinished = json!(unfinished);
    let hello = async move |client: Option<Extension<LocalClient>>| -> Response {
        match client {
            Some(_) => Json(identified.hello()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        }
    };
    let status = async move |client: Option<Extension<LocalClient>>| -> Response {
        match client {
            Some(_) => {
                let mut status = daemon.status();
                status["unfinished"] = unfinished;
                Json(status).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        }
    };
    Router::new()
        .route("/local/hello", get(hello))
        .route("/local/status", get(status))
}
