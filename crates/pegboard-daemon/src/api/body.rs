//! Reads the JSON bodies of requests, within limits on their length and time.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use pegboard::Kind;
use pegboard_gateway::Caller;
use serde::de::DeserializeOwned;

use super::{problem::Problem, state::ApiState};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Only so many bodies that are longer, or do not say how long they are, are read at once.
const SHORT: u64 = 64 * 1024;

/// Reads a JSON body.
pub(super) async fn read(api: &ApiState, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    if !is_json(headers) {
        let detail = "the body must be application/json: set the Content-Type header";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    read_any(api, caller, headers, body).await
}

/// Reads a body that may be empty. If it is not, it must be JSON.
pub(super) async fn read_optional(
    api: &ApiState,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<Bytes>, Problem> {
    if !headers.contains_key(CONTENT_TYPE) {
        let bytes = read_any(api, caller, headers, body).await?;
        return match bytes.is_empty() {
            true => Ok(None),
            false => read(api, caller, headers, Body::empty()).await.map(Some),
        };
    }
    let bytes = read(api, caller, headers, body).await?;
    Ok((!bytes.is_empty()).then_some(bytes))
}

async fn read_any(api: &ApiState, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let limit = api.board.gateway_settings().serve.max_body;
    let too_long = || {
        let detail = format!("the body is longer than {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let _place = match length {
        Some(0..=SHORT) => None,
        _ => Some(api.long_bodies.try_acquire(caller.principal()).ok_or_else(|| {
            let detail = "too many long requests are being read; try again later";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })?),
    };
    match tokio::time::timeout(BODY_TIME, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(match is_too_long(&error) {
            true => too_long(),
            false => Problem::new(StatusCode::BAD_REQUEST, "the body ended too early"),
        }),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

/// Parses a body. The problem names the field that is wrong.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        body_problem(error.inner(), Some(path.as_str()).filter(|path| *path != "."))
    })?;
    deserializer.end().map_err(|error| body_problem(&error, None))?;
    Ok(parsed)
}

/// Parses an object. An array would also do for a type with fields, in their order, which is not promised.
pub(super) fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the body must be an object");
        return Err(problem.kind(Kind::InvalidArguments));
    }
    parse(bytes)
}

fn body_problem(error: &serde_json::Error, path: Option<&str>) -> Problem {
    if error.is_data() {
        let at = path.map_or_else(String::new, |path| format!("`{path}`: "));
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{at}{error}"));
        return problem.kind(Kind::InvalidArguments);
    }
    let detail = format!("the body is not JSON: {error}");
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

/// Requires the JSON content type. A web page cannot send it to another origin without a CORS preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Whether the limit on the length ended the read. The error of axum has it as its source.
fn is_too_long(error: &axum::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.to_string().contains("length limit") {
            return true;
        }
        source = error.source();
    }
    false
}
