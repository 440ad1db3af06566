//! Reads request bodies: JSON, with a limit on length and time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::demo::message::MAX_MESSAGE;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

pub(in crate::demo::wire) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Response> {
    if !is_json(headers) {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json\n",
        )
            .into_response());
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(body, MAX_MESSAGE)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // The other possible failure is a client that disconnected, which reads no response.
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 4 MiB\n").into_response()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long\n").into_response()),
    }
}

/// Requires the JSON content type. A web page cannot send it cross-origin without a CORS preflight, which is refused here.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/json")
}
