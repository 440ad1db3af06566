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

use crate::{access, api, overview::Overview, sign_in_waits::SignInWaits};

/// Says whether clients should be sent here. A probe needs no token and is told the states of required servers only; a caller that may
/// read the whole board is also told why they are not ready.
pub(crate) async fn ready(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    let status = overview.board.status().without_call_texts();
    let is_told_why = access::may_read_all(caller.as_deref()).is_ok();
    let required = status.servers.iter().filter(|server| server.required);
    let waits = overview.sign_in_waits();
    let (waiting, missing): (Vec<_>, Vec<_>) = required
        .filter(|server| server.state != ServerState::Ready)
        .partition(|server| waits.has(server));
    let rows = |servers: Vec<&ServerStatus>| -> Vec<Value> {
        let rows = servers.into_iter().map(|server| row(server, &waits, is_told_why));
        let mut rows: Vec<Value> = rows.collect();
        // A probe must not learn how many principals there are.
        rows.dedup_by(|one, before| one["server"] == before["server"]);
        rows
    };
    let word = word(&overview, &status, &waits);
    let code = match word {
        "ready" | "degraded" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let is_ready = code == StatusCode::OK;
    let status = if is_ready { "ready" } else { word };
    let mut document = json!({"ready": is_ready, "status": status, "not_ready": rows(missing)});
    if !waiting.is_empty() {
        document["needs_auth"] = rows(waiting).into();
    }
    answer(code, document)
}

/// Says how the daemon and its servers are. A caller whose token is for one view is told the summary only.
pub(crate) async fn health(State(overview): State<Overview>, caller: Option<axum::Extension<Caller>>) -> Response {
    if let Err(refusal) = access::may_read(caller.as_deref()) {
        return refusal.into_response();
    }
    let status = overview.board.status().without_call_texts();
    let uptime = pegboard::Timestamp::now().duration_since(overview.started_at);
    let waits = overview.sign_in_waits();
    let mut document = json!({
        "status": word(&overview, &status, &waits),
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": overview.started_at,
        "uptime_s": uptime.as_secs(),
    });
    if access::may_read_all(caller.as_deref()).is_ok() {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for server in &status.servers {
            *states.entry(server.state.as_str()).or_default() += 1;
        }
        let is_shown = |server: &&ServerStatus| server.is_troubled() || is_missing(server);
        let troubled = status.servers.iter().filter(is_shown);
        let (waiting, troubled): (Vec<_>, Vec<_>) = troubled.partition(|server| waits.has(server));
        let rows = |servers: Vec<&ServerStatus>| -> Vec<Value> {
            let rows = servers.into_iter().map(|server| row(server, &waits, true));
            rows.collect()
        };
        let last = overview.reloads.last();
        let failed = last
            .failed
            .as_ref()
            .map(|failed| json!({"at": failed.at, "message": failed.message, "hint": failed.hint}));
        document["servers"] = json!({"total": status.servers.len(), "states": states, "troubled": rows(troubled)});
        if !waiting.is_empty() {
            document["servers"]["needs_auth"] = rows(waiting).into();
        }
        let starting = |server: &&ServerStatus| server.state == ServerState::Connecting && !server.is_troubled();
        let starting: Vec<_> = status.servers.iter().filter(starting).collect();
        if !starting.is_empty() {
            document["servers"]["starting"] = rows(starting).into();
        }
        if let Some(replicas) = overview.replicas() {
            document["replicas"] = json!({"count": replicas.replicas, "store_answers": replicas.store_answers});
        }
        document["warnings"] = json!(api::all_warnings(&status, &overview.reloads));
        document["reload"] = json!({
            "applied_at": last.applied_at, "applied": last.applied, "failures": last.failures, "failed": failed,
            "notes": last.notes.iter().map(api::NoteDocument::from).collect::<Vec<_>>(),
        });
    }
    answer(StatusCode::OK, document)
}

/// One word about the daemon.
fn word(overview: &Overview, status: &BoardStatus, waits: &SignInWaits) -> &'static str {
    if overview.is_stopping() {
        "stopping"
    } else if !waits.is_ready(&overview.board, status) {
        "not_ready"
    } else if !waits.is_healthy(status) || !overview.reloads.last().is_healthy() || overview.has_lost_store() {
        "degraded"
    } else {
        "ready"
    }
}

/// Whether a required server is not connected because its config says `start = "explicit"`.
fn is_missing(server: &ServerStatus) -> bool {
    server.required && server.awaits_connect
}

fn row(server: &ServerStatus, waits: &SignInWaits, with_error: bool) -> Value {
    let mut row = json!({"server": server.name, "state": server.state});
    if let Some(principal) = server.principal.as_ref().filter(|_| with_error) {
        row["principal"] = json!(principal);
    }
    if let Some(error) = server.last_error.as_ref().filter(|_| with_error) {
        row["error"] = json!(error.message);
        row["code"] = json!(error.code);
        row["hint"] = json!(waits.hint(server).or_else(|| error.hint.clone()));
    } else if server.awaits_connect && with_error {
        row["error"] = "nobody has connected it yet".into();
        row["hint"] = api::how_to_connect(&server.name).into();
    }
    row
}

fn answer(code: StatusCode, document: Value) -> Response {
    let mut response = (code, Json(document)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
