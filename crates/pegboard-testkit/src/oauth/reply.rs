//! Reads requests to an authorization server, and makes its responses.

use std::collections::BTreeMap;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::record::AuthRequest;

/// The limit on the body of a request.
const BODY_LIMIT: usize = 1 << 20;

/// Reads a request whole. `None` if its body is too long.
pub(super) async fn read(request: Request) -> Option<AuthRequest> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_LIMIT).await.ok()?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let mut parameters: BTreeMap<String, String> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let is_form = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    if is_form {
        parameters.extend(url::form_urlencoded::parse(&body).into_owned());
    }
    Some(AuthRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query,
        headers: crate::wire::header_map(&parts.headers),
        body: String::from_utf8_lossy(&body).into_owned(),
        parameters,
    })
}

pub(super) fn json_response(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, body.to_string()).into_response()
}

pub(super) fn oauth_error(status: u16, error: &str, why: &str) -> Response {
    json_response(status, &json!({"error": error, "error_description": why}))
}

pub(super) fn html(status: u16) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let page = "<!doctype html><title>Sign in</title><p>Please enable JavaScript.";
    (status, [(header::CONTENT_TYPE, "text/html")], page).into_response()
}

pub(super) fn redirect(status: StatusCode, to: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}
