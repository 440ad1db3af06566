//! The routes of an authorization server.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};

use super::{authorize, inspect, issuer::Issuer, metadata, register, reply, token};

pub(super) fn router(issuer: &Arc<Issuer>) -> Router {
    Router::new().fallback(serve).with_state(Arc::clone(issuer))
}

async fn serve(State(issuer): State<Arc<Issuer>>, request: Request) -> Response {
    let Some(request) = reply::read(request).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    issuer.requests.push(request.clone());
    if let Some(place) = metadata::place_of(&issuer, &request.path) {
        return metadata::serve(&issuer, place).await;
    }
    let endpoint = request
        .path
        .strip_prefix(issuer.settings.path.as_str())
        .unwrap_or_default();
    match (request.method.as_str(), endpoint) {
        ("GET", "/authorize") => authorize::serve(&issuer, &request),
        ("POST", "/token") => token::serve(&issuer, &request).await,
        ("POST", "/register") if issuer.settings.registration => register::serve(&issuer, &request),
        ("POST", "/revoke") => inspect::revoke(&issuer, &request),
        ("POST", "/introspect") => inspect::introspect(&issuer, &request),
        ("GET", "/jwks") => inspect::keys(&issuer),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
