//! `GET /readyz` for probes, and `GET /health` for people and dashboards.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};
use pegboard::status::{BoardStatus, ServerStatus, State as ServerState};
use pegboard_gateway::Caller;
use serde_json::{Value, json};

use crate::{access, overview::Overview};

/// Says whether clients should be sent here. A probe needs no token and is told the states of required servers only; a caller that may
/// read the whole board is also told why they are not ready.
pub(crate) async fn ready(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    let status = overview.board.status();
    let is_told_why = access::may_read_all(caller.as_deref()).is_ok();
    let required = status.servers.iter().filter(|server| server.required);
    let missing: Vec<Value> = required
        .filter(|server| server.state != ServerState::Ready)
        .map(|server| row(server, is_told_why))
        .collect();
    let word = word(&overview, &status);
    let code = match word {
        "ready" | "degraded" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let is_ready = code == StatusCode::OK;
    let status = if is_ready { "ready" } else { word };
    answer(code, json!({"ready": is_ready, "status": status, "not_ready": missing}))
}

/// Says how the daemon and its servers are. A caller whose token is for one view is told the summary only.
pub(crate) async fn health(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    if let Err(refusal) = access::may_read(caller.as_deref()) {
        return refusal.into_response();
    }
    let status = overview.board.status();
    let uptime = jiff::Timestamp::now().duration_since(overview.started_at);
    let mut document = json!({
        "status": word(&overview, &status),
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": overview.started_at,
        "uptime_s": uptime.as_secs().max(0),
    });
    if access::may_read_all(caller.as_deref()).is_ok() {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for server in &status.servers {
            *states.entry(server.state.as_str()).or_default() += 1;
        }
        let troubled = status.servers.iter().filter(|server| is_troubled(server.state));
        let troubled: Vec<Value> = troubled.map(|server| row(server, true)).collect();
        let last = overview.reloads.last();
        let failed = last
            .failed
            .as_ref()
            .map(|failed| json!({"at": failed.at, "message": failed.message, "hint": failed.hint}));
        document["servers"] = json!({"total": status.servers.len(), "states": states, "troubled": troubled});
        document["warnings"] = json!(status.warnings);
        document["reload"] = json!({
            "applied_at": last.applied_at, "applied": last.applied, "failures": last.failures, "failed": failed,
        });
    }
    answer(StatusCode::OK, document)
}

/// One word about the daemon.
fn word(overview: &Overview, status: &BoardStatus) -> &'static str {
    if overview.is_stopping() {
        "stopping"
    } else if !status.ready {
        "not_ready"
    } else if !status.healthy || overview.reloads.last().failed.is_some() {
        "degraded"
    } else {
        "ready"
    }
}

fn is_troubled(state: ServerState) -> bool {
    !matches!(
        state,
        ServerState::Ready | ServerState::Idle | ServerState::Connecting | ServerState::Disabled
    )
}

fn row(server: &ServerStatus, with_error: bool) -> Value {
    let mut row = json!({"server": server.name, "state": server.state});
    if let Some(error) = server.last_error.as_ref().filter(|_| with_error) {
        row["error"] = json!(error.message);
        row["hint"] = json!(error.hint);
    }
    row
}

fn answer(code: StatusCode, document: Value) -> Response {
    let mut response = (code, Json(document)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
