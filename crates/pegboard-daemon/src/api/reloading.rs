//! `POST reload`: applies the config files as they are now.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::{
    access::Admin,
    documents::{ReloadedDocument, json},
    problem::Problem,
    state::ApiState,
};
use crate::reloads::ReloadError;

/// `POST reload`.
pub(super) async fn reload(State(api): State<Arc<ApiState>>, Admin(caller): Admin) -> Result<Response, Problem> {
    if caller.view().is_some() {
        return Err(Problem::forbidden(
            "the token is for one view only, and a reload changes the whole board",
        ));
    }
    let principal = caller.principal().map(tracing::field::display);
    tracing::info!(principal, "reload asked for over the API");
    api.reloads.request().await.map_err(|error| {
        let status = match &error {
            ReloadError::Failed(_) => StatusCode::CONFLICT,
            ReloadError::Slow => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let problem = Problem::new(status, error.to_string());
        match error {
            ReloadError::Failed(failed) => match failed.hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            },
            _ => problem,
        }
    })?;
    let last = api.reloads.last();
    let document = ReloadedDocument {
        applied_at: last.applied_at,
        applied: last.applied,
        failures: last.failures,
        servers: last.changes.as_ref().clone(),
        notes: last.notes.iter().map(Into::into).collect(),
    };
    Ok(json(StatusCode::OK, &document))
}
