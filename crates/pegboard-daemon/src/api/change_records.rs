//! Records every request for a change in the audit log: who asked for what, and how it ended.

use std::sync::Arc;

use axum::{
    extract::{RawPathParams, Request, State, rejection::RawPathParamsRejection},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use http::{Method, StatusCode};
use pegboard::{
    Pegboard, ServerName,
    audit::{AdminChange, ChangeOutcome},
};
use pegboard_gateway::Caller;

use super::{problem::Problem, state::ApiState};

/// Passes a request on. If it asks for a change, that is recorded with its outcome, also if the client goes away before.
pub(super) async fn record(
    State(api): State<Arc<ApiState>>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let action = action(request.method(), request.uri().path());
    let (Some(action), Some(caller)) = (action, request.extensions().get::<Caller>()) else {
        return next.run(request).await;
    };
    let server = params.ok().and_then(|params| {
        let (_, name) = params.iter().next()?;
        ServerName::parse(name).ok()
    });
    let mut record = ChangeRecord {
        board: api.board.clone(),
        action,
        server,
        caller: caller.clone(),
        outcome: ChangeOutcome::Begun,
    };
    if let Err(failure) = api.board.begin_change(&record.change()).await {
        record.outcome = ChangeOutcome::Refused;
        return Problem::unrecorded(failure).into_response();
    }
    record.outcome = ChangeOutcome::Unknown;
    let response = next.run(request).await;
    record.outcome = outcome(response.status());
    response
}

/// The change that a request asks for, by its method and the last part of its path, which is the path of a change.
fn action(method: &Method, path: &str) -> Option<&'static str> {
    let action = match (method, path.rsplit('/').next()?) {
        (&Method::PUT, _) => "put",
        (&Method::DELETE, _) => "delete",
        (&Method::POST, "reconnect") => "reconnect",
        (&Method::POST, "enable") => "enable",
        (&Method::POST, "disable") => "disable",
        (&Method::POST, "refresh") => "refresh",
        (&Method::POST, "reload") => "reload",
        _ => return None,
    };
    Some(action)
}

fn outcome(status: StatusCode) -> ChangeOutcome {
    if status.is_success() {
        ChangeOutcome::Done
    } else if status.is_client_error() {
        ChangeOutcome::Refused
    } else {
        ChangeOutcome::Failed
    }
}

/// A request for a change, recorded when it is dropped.
struct ChangeRecord {
    board: Pegboard,
    action: &'static str,
    server: Option<ServerName>,
    caller: Caller,
    outcome: ChangeOutcome,
}

impl ChangeRecord {
    fn change(&self) -> AdminChange {
        let mut change = AdminChange::new(self.action, self.outcome);
        if let Some(server) = &self.server {
            change = change.server(server.clone());
        }
        if let Some(principal) = self.caller.principal() {
            change = change.principal(principal.clone());
        }
        if let Some(view) = self.caller.view() {
            change = change.view(view);
        }
        change
    }
}

impl Drop for ChangeRecord {
    fn drop(&mut self) {
        self.board.record_change(self.change());
    }
}
