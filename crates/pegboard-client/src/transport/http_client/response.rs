//! Reads HTTP responses: bodies within the limits, media types, and error statuses.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use pegboard_http::Response;

use super::request_error::after_response;
use crate::transport::{
    byte_budget::{self, NoRoom, Quota, ReadPermit},
    delivery::Sent,
    request_failure::{FailureKind, WireFailure},
    server_error::ServerError,
    trim_text::preview,
};

/// How much of the body of an error response is read, and how long that may take.
const MAX_ERROR_BODY: usize = 64 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Rejects a compressed body. None is requested, because a small one could decompress to more than the limit.
pub(in crate::transport) fn reject_compressed(response: &Response) -> Result<(), WireFailure> {
    let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    match encodings.find(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(encoding) => {
            let encoding = preview(&String::from_utf8_lossy(encoding.as_bytes()));
            let text = format!("the answer is compressed ({encoding}), which was not asked for");
            Err(WireFailure::protocol(text))
        }
    }
}

/// The failure of a response that got no permit of the byte budget.
pub(in crate::transport) fn no_room(no_room: NoRoom) -> WireFailure {
    WireFailure::new(FailureKind::NoRoom, Sent::Maybe, no_room.to_string())
}

/// Reads a body of at most `limit` bytes. A long one needs a permit of the byte budget.
pub(in crate::transport) async fn read_body(
    mut response: Response,
    limit: usize,
    quota: Quota,
) -> Result<Bytes, WireFailure> {
    let too_large = || {
        WireFailure::new(
            FailureKind::TooLarge,
            Sent::Maybe,
            format!("the answer is larger than {limit} bytes"),
        )
    };
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    // It is within the limit, so the conversion does not fail.
    let length = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    let max = length.unwrap_or(limit);
    let mut permit = ReadPermit::new(quota);
    permit.reserve(length.unwrap_or(0), max).await.map_err(no_room)?;
    let mut whole = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut response, &permit, whole.len()).await? {
        if whole.is_empty() {
            if length == Some(chunk.len()) {
                return Ok(permit.complete(chunk));
            }
            whole.reserve(length.unwrap_or(chunk.len()));
        }
        if whole.len() + chunk.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&chunk);
        permit.reserve(whole.len(), max).await.map_err(no_room)?;
    }
    Ok(permit.complete(whole.freeze()))
}

/// Reads the next chunk of a body of which `held` bytes are in memory. Fails once the body has held its permit for too long while others
/// wait.
pub(in crate::transport) async fn next_chunk(
    response: &mut Response,
    permit: &ReadPermit,
    held: usize,
) -> Result<Option<Bytes>, WireFailure> {
    loop {
        match tokio::time::timeout(byte_budget::CHECK_INTERVAL, response.chunk()).await {
            Ok(chunk) => return chunk.map_err(|error| after_response(&error)),
            Err(_) => permit.check(held).map_err(no_room)?,
        }
    }
}

/// The media type of a response body.
pub(in crate::transport) enum MediaType {
    Json,
    Events,
    None,
    Other(String),
}

impl MediaType {
    pub(in crate::transport) fn from_response(response: &Response) -> Self {
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => Self::Json,
            "text/event-stream" => Self::Events,
            _ if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => Self::None,
            "" => Self::Other("of no stated type".to_owned()),
            _ => Self::Other(preview(&essence)),
        }
    }
}

/// The failure of a response with an unexpected media type. Its message shows the beginning of the body.
pub(in crate::transport) async fn unexpected_type(
    media_type: MediaType,
    wanted: &str,
    response: Response,
) -> WireFailure {
    let media_type = match media_type {
        MediaType::Json => "JSON".to_owned(),
        MediaType::Events => "an event stream".to_owned(),
        MediaType::None => "empty".to_owned(),
        MediaType::Other(media_type) => media_type,
    };
    let shown = preview(&error_body(response).await);
    let text = format!("the answer is {media_type}, not {wanted}: {shown}");
    WireFailure::protocol(text)
}

/// The failure of a response whose status is no success.
pub(in crate::transport) async fn status_failure(response: Response, session: InSession<'_>) -> WireFailure {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    let body = error_body(response).await;
    let mut text = format!("the server answered HTTP {status}");
    if !body.trim().is_empty() {
        text = format!("{text}: {}", preview(&body));
    }
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error: ServerError,
    }
    let sent = if proves_not_run(status) {
        Sent::Rejected
    } else {
        Sent::Maybe
    };
    if session.is_gone(status, &body) {
        return WireFailure::new(FailureKind::SessionGone, Sent::Rejected, text);
    }
    let kind = match status {
        StatusCode::UNAUTHORIZED => FailureKind::NeedsAuth,
        StatusCode::FORBIDDEN => FailureKind::Forbidden,
        _ => match serde_json::from_str::<ErrorBody>(&body) {
            Ok(body) if status.is_client_error() => FailureKind::Rpc(Box::new(body.error)),
            _ => FailureKind::Status {
                code: status.as_u16(),
                retry_after,
            },
        },
    };
    WireFailure::new(kind, sent, text)
}

/// Whether a request carried a session id, and which statuses besides 404 mean that this server no longer knows the session.
#[derive(Debug, Clone, Copy)]
pub(in crate::transport) enum InSession<'a> {
    No,
    Yes(&'a [u16]),
}

impl InSession<'_> {
    /// Whether a response means that the session is gone. Statuses other than 404 have other meanings too, so the body must mention the session.
    fn is_gone(self, status: StatusCode, body: &str) -> bool {
        match self {
            Self::No => false,
            Self::Yes(_) if status == StatusCode::NOT_FOUND => true,
            Self::Yes(others) => others.contains(&status.as_u16()) && body.to_ascii_lowercase().contains("session"),
        }
    }
}

/// Whether a status proves that the server did not run the request.
fn proves_not_run(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403..=406 | 411 | 413..=415 | 421 | 426 | 429 | 431)
}

/// Reads the beginning of the body of an error response. Read errors are ignored: the body only explains another error.
async fn error_body(mut response: Response) -> String {
    let mut whole = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            whole.extend_from_slice(&chunk);
            if whole.len() > MAX_ERROR_BODY {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    String::from_utf8_lossy(&whole).into_owned()
}
