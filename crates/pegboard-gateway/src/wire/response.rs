//! Builds HTTP responses: messages as JSON, event streams, and errors as `application/problem+json`.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use http_body::Body as _;
use pegboard_protocol::{code, header};
use serde_json::json;

use super::{access_log::AccessEntry, event_body::EventBody, response_body::ResponseBody};
use crate::protocol::Outgoing;

/// A response of this crate.
pub(crate) type HttpResponse = Response<ResponseBody>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const NO: HeaderValue = HeaderValue::from_static("no");

/// Tells nginx not to buffer an event stream.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// After how many seconds a client should try again if the error does not say.
const RETRY_LATER: u32 = 1;

/// Keeps an entry of the access log in its response until that was sent.
pub(crate) fn keep_entry(response: &mut HttpResponse, mut entry: Box<AccessEntry>) {
    let session = response.headers().get(header::SESSION_ID);
    entry.set_response(response.status(), session, response.body().size_hint().exact());
    response.body_mut().held_mut().access = Some(entry);
}

/// A response that has only a status.
pub(crate) fn empty(status: StatusCode) -> HttpResponse {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

/// An error of HTTP itself about a request that was admitted before and may have run.
pub(super) fn lost_problem(status: StatusCode, detail: &str) -> HttpResponse {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail,
        "may_have_executed": true});
    with_body(status, PROBLEM, ResponseBody::full(body.to_string()))
}

/// An error of HTTP itself. Nothing of the request has run: some of these invite the client to send it again.
pub(crate) fn problem(status: StatusCode, detail: &str) -> HttpResponse {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
    let mut response = with_body(status, PROBLEM, ResponseBody::full(body.to_string()));
    if is_refusal(status) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(RETRY_LATER));
    }
    response
}

/// The response to a method that the path does not have.
pub(crate) fn method_not_allowed(allow: &'static str, detail: &str) -> HttpResponse {
    let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, detail);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// A message with the status that its error calls for.
pub(crate) fn message(message: &Outgoing, is_modern: bool) -> HttpResponse {
    let status = match message.error_code() {
        // A server's own error may have the code of overload, but does not say when to come back. A request that may have run is not to be
        // sent again, and programs do that on their own after such a status.
        Some(code::BUSY | code::STOPPING) if message.retry_after().is_none() => StatusCode::OK,
        Some(code) => status_of(code, is_modern),
        None => StatusCode::OK,
    };
    error_message(status, message)
}

/// A JSON-RPC error with this status.
pub(crate) fn error_message(status: StatusCode, message: &Outgoing) -> HttpResponse {
    let mut response = with_body(status, JSON, ResponseBody::message(message));
    let seconds = match message.retry_after() {
        Some(seconds) => Some(seconds.get()),
        None => is_refusal(status).then_some(RETRY_LATER),
    };
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Several messages in one JSON array.
pub(crate) fn json_bytes(bytes: Bytes) -> HttpResponse {
    with_body(StatusCode::OK, JSON, ResponseBody::full(bytes))
}

/// An event stream.
pub(crate) fn events(events: EventBody) -> HttpResponse {
    let mut response = with_body(StatusCode::OK, EVENTS, ResponseBody::events(events));
    response.headers_mut().insert(CACHE_CONTROL, NO_CACHE);
    response.headers_mut().insert(ACCEL_BUFFERING, NO);
    response
}

fn with_body(status: StatusCode, kind: HeaderValue, body: ResponseBody) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns `true` if the same request may succeed later.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// The status of a response with an error. A legacy client gets 200, because its errors are those of JSON-RPC, and the Python SDK ends
/// its session at any other status. A modern one gets what its version says; a call that a limit refuses, or that has no room, is one too
/// many.
pub(crate) fn status_of(code: i64, is_modern: bool) -> StatusCode {
    match code {
        _ if !is_modern => StatusCode::OK,
        code::BUSY => StatusCode::TOO_MANY_REQUESTS,
        code::STOPPING => StatusCode::SERVICE_UNAVAILABLE,
        code::FORBIDDEN => StatusCode::FORBIDDEN,
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::HEADER_MISMATCH
        | code::MISSING_CAPABILITY
        | code::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
