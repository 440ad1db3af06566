//! `GET servers` and `GET warnings`: the state of the servers that the caller sees.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use pegboard::Timestamp;
use pegboard::{
    Pegboard, ServerName, State as ServerState,
    status::{BoardStatus, ServerStatus, Warning},
};
use pegboard_gateway::Caller;
use serde_json::Value;

use super::{
    access::StatusReader,
    documents::{StatusDocument, WarningDocument, WarningsDocument, json},
    paths::ServerPath,
    problem::Problem,
    state::ApiState,
};
use crate::{reloads::Reloads, sign_in_waits::SignInWaits};

/// `GET servers`.
pub(super) async fn all(State(api): State<Arc<ApiState>>, StatusReader(caller): StatusReader) -> Response {
    json(StatusCode::OK, &document(&api, &caller, None))
}

/// `GET servers/{name}`.
pub(super) async fn one(
    State(api): State<Arc<ApiState>>,
    StatusReader(caller): StatusReader,
    ServerPath(name): ServerPath,
) -> Result<Response, Problem> {
    let document = document(&api, &caller, Some(name.as_str()));
    match document.servers.is_empty() {
        true => Err(Problem::no_server(name.as_str())),
        false => Ok(json(StatusCode::OK, &document)),
    }
}

/// `GET warnings`.
pub(super) async fn warnings(State(api): State<Arc<ApiState>>, StatusReader(caller): StatusReader) -> Response {
    let StatusDocument { warnings, .. } = document(&api, &caller, None);
    json(StatusCode::OK, &WarningsDocument { warnings })
}

/// The status of the whole board.
pub(crate) fn status(board: &Pegboard, reloads: &Reloads) -> Value {
    let status = board.status().without_call_texts();
    serde_json::json!(StatusDocument {
        warnings: all_warnings(&status, reloads),
        servers: status.servers,
        queues: status.queues,
        healthy: status.healthy,
        ready: status.ready,
    })
}

/// The warnings of a board, and those about its config.
pub(crate) fn all_warnings(status: &BoardStatus, reloads: &Reloads) -> Vec<WarningDocument> {
    let of_board = status.warnings.iter().cloned().map(Into::into);
    let unconnected = unconnected_warnings(&status.servers, reloads.last().applied_at);
    let of_config = WarningDocument::from_reload(&reloads.last());
    of_board.chain(unconnected).chain(of_config).collect()
}

/// One warning for each `explicit` server that is not connected yet. Its views have instances of their own.
fn unconnected_warnings(rows: &[ServerStatus], since: Timestamp) -> Vec<WarningDocument> {
    let warnings = rows
        .iter()
        .filter_map(|row| WarningDocument::from_unconnected(row, since));
    let mut warnings: Vec<_> = warnings.collect();
    warnings.dedup_by(|one, before| one.id == before.id);
    warnings
}

/// The status of the servers that a caller sees, or of one of them.
pub(super) fn document(api: &ApiState, caller: &Caller, only: Option<&str>) -> StatusDocument {
    let status = api.board.status().without_call_texts();
    let waits = SignInWaits::new(&api.board, api.sign_in_links.as_ref());
    let (mut healthy, ready) = (waits.is_healthy(&status), waits.is_ready(&api.board, &status));
    let BoardStatus {
        mut servers,
        queues,
        warnings,
        ..
    } = status;
    let is_wanted = |name: &str| only.is_none_or(|only| only == name) && api.sees(caller, name);
    let is_whole = only.is_none() && caller.view().is_none();
    let mut warnings: Vec<Warning> = warnings;
    let mut queues = queues;
    servers.retain(|row| is_wanted(row.name.as_str()) && is_of(caller, row));
    warnings.retain(|warning| match &warning.server {
        Some(server) => is_wanted(server.as_str()) && is_about(caller, warning, server),
        None => is_whole,
    });
    if !is_whole {
        // A queue may be shared with servers that the caller does not see.
        queues.clear();
        healthy = servers.iter().all(|row| is_well(row) || waits.has(row));
    }
    let mut warnings: Vec<WarningDocument> = warnings.into_iter().map(Into::into).collect();
    warnings.extend(unconnected_warnings(&servers, api.reloads.last().applied_at));
    let mut of_config = WarningDocument::from_reload(&api.reloads.last());
    of_config.retain(|warning| match &warning.server {
        Some(server) => is_wanted(server.as_str()),
        None => is_whole,
    });
    warnings.extend(of_config);
    StatusDocument {
        servers,
        queues,
        healthy,
        ready,
        warnings,
    }
}

/// Whether a caller sees a row of a server that it sees. A caller with a view sees no instances of other principals.
fn is_of(caller: &Caller, row: &ServerStatus) -> bool {
    let is_own = row
        .principal
        .as_ref()
        .is_none_or(|principal| Some(principal) == caller.principal());
    let is_shared = row.view.is_none() || row.principal.is_some();
    caller.view().is_none() || (is_own && is_shared)
}

/// Whether a caller sees a warning about a server that it sees.
fn is_about(caller: &Caller, warning: &Warning, server: &ServerName) -> bool {
    let Some(of) = warning.id.strip_prefix("mcp_health:") else {
        return true;
    };
    // Further parts name the view or the principal that alone uses the server.
    let own = caller
        .principal()
        .map(|principal| format!("{server}:principal:{principal}"));
    caller.view().is_none() || of == server.as_str() || own.as_deref() == Some(of)
}

fn is_well(row: &ServerStatus) -> bool {
    row.draining
        || matches!(
            row.state,
            ServerState::Ready | ServerState::Idle | ServerState::Disabled
        )
}
