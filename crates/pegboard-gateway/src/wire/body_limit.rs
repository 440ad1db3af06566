//! [`BodyLimit`]: reads the bodies of requests, with limits on the length of one, on the length of all together, and on time. Messages of
//! WebSockets count too. One principal gets no more than half of the room for all.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use http_body::Body;
use pegboard::Principal;

use super::response::{HttpResponse, problem};
use crate::door::{PrincipalQuota, QuotaPermit};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Longer bodies reserve their length, in units of this size.
const UNIT: usize = 64 * 1024;

/// How much of a declared length is allocated before it arrives. Beyond that a buffer doubles.
const AHEAD: usize = 4 * UNIT;

/// What a sealed request has besides its body: a head of at most 64 KiB, in base64.
const SEALED_HEAD: usize = 128 * 1024;

/// The limit on all long bodies together: 256 MiB.
const ALL_UNITS: usize = 256 * 1024 * 1024 / UNIT;

/// Reads the bodies of requests.
#[derive(Clone, Debug)]
pub(crate) struct BodyLimit {
    one: usize,
    all: Arc<PrincipalQuota>,
    /// For requests that other replicas have sealed, and what anybody sends to the listener for them.
    sealed: Arc<PrincipalQuota>,
}

/// The bytes of a long message. What they reserve of the limit on all messages is free again when the last slice of them is dropped.
struct Reserved {
    bytes: Bytes,
    #[expect(dead_code, reason = "held as long as the bytes")]
    place: QuotaPermit,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyLimit {
    /// Limits the length of one body to `one` bytes.
    pub(crate) fn new(one: usize) -> Self {
        Self {
            one,
            // Half of it, the share of one principal, has room for one body at least.
            all: PrincipalQuota::new(ALL_UNITS.max(2 * one.div_ceil(UNIT))),
            sealed: PrincipalQuota::new((ALL_UNITS / 4).max(2 * (one + SEALED_HEAD).div_ceil(UNIT))),
        }
    }

    /// Reads a JSON body.
    pub(super) async fn read<B>(
        &self,
        principal: Option<&Principal>,
        headers: &HeaderMap,
        body: B,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes>,
    {
        if !is_json(headers) {
            return Err(BodyError::NotJson);
        }
        let hint = body.size_hint();
        if hint.lower() > self.one as u64 {
            return Err(BodyError::TooLong(self.one));
        }
        let mut body = std::pin::pin!(body);
        let read = async {
            let first = next(body.as_mut()).await?.unwrap_or_default();
            // Most bodies come in one part, which is not copied.
            if body.is_end_stream() {
                return self.hold(principal, first);
            }
            self.rest(principal, &first, hint.lower(), body.as_mut()).await
        };
        match tokio::time::timeout(BODY_TIME, read).await {
            Ok(outcome) => outcome,
            Err(_) => Err(BodyError::Late),
        }
    }

    /// Reads a request that another replica has sealed: a body, and a head that may be as long as that of a client.
    pub(super) async fn read_sealed<B>(&self, body: B) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes>,
    {
        let limit = Self {
            one: self.one + SEALED_HEAD,
            all: self.sealed.clone(),
            sealed: self.sealed.clone(),
        };
        let mut body = std::pin::pin!(body);
        let nothing = Bytes::new();
        let read = limit.rest(None, &nothing, 0, body.as_mut());
        tokio::time::timeout(BODY_TIME, read)
            .await
            .unwrap_or(Err(BodyError::Late))
    }

    /// Checks the type and the length of a JSON body.
    pub(super) fn check(&self, headers: &HeaderMap, length: usize) -> Result<(), BodyError> {
        match is_json(headers) {
            false => Err(BodyError::NotJson),
            true if length > self.one => Err(BodyError::TooLong(self.one)),
            true => Ok(()),
        }
    }

    /// Reserves the length of a message that was read already, for as long as it is held.
    pub(super) fn hold(&self, principal: Option<&Principal>, bytes: Bytes) -> Result<Bytes, BodyError> {
        let mut reserved = None;
        self.reserve(&mut reserved, principal, bytes.len())?;
        Ok(attach_permit(bytes, reserved))
    }

    async fn rest<B>(
        &self,
        principal: Option<&Principal>,
        first: &Bytes,
        length: u64,
        mut body: std::pin::Pin<&mut B>,
    ) -> Result<Bytes, BodyError>
    where
        B: Body<Data = Bytes>,
    {
        let mut reserved = None;
        // Checked against the limit before.
        let length = usize::try_from(length).unwrap_or(self.one);
        // What is only declared reserves nothing, so that slow clients do not keep others out.
        self.reserve(&mut reserved, principal, first.len())?;
        let mut whole = BytesMut::with_capacity(length.min(AHEAD).max(first.len()));
        whole.extend_from_slice(first);
        while let Some(part) = next(body.as_mut()).await? {
            if whole.len() + part.len() > self.one {
                return Err(BodyError::TooLong(self.one));
            }
            self.reserve(&mut reserved, principal, whole.len() + part.len())?;
            whole.extend_from_slice(&part);
        }
        Ok(attach_permit(whole.freeze(), reserved))
    }

    /// Reserves `length` bytes in all, unless they are few.
    fn reserve(
        &self,
        reserved: &mut Option<QuotaPermit>,
        principal: Option<&Principal>,
        length: usize,
    ) -> Result<(), BodyError> {
        if length > self.one {
            return Err(BodyError::TooLong(self.one));
        }
        if length <= UNIT {
            return Ok(());
        }
        if reserved.is_none() {
            *reserved = self.all.try_acquire(principal);
        }
        let has_room = reserved
            .as_mut()
            .is_some_and(|place| place.try_grow_to(length.div_ceil(UNIT)));
        if has_room { Ok(()) } else { Err(BodyError::Busy) }
    }
}

fn attach_permit(bytes: Bytes, reserved: Option<QuotaPermit>) -> Bytes {
    match reserved {
        Some(place) => Bytes::from_owner(Reserved { bytes, place }),
        None => bytes,
    }
}

/// Why a body is refused.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the body must be application/json: set the Content-Type header")]
    NotJson,
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error("the body took too long")]
    Late,
    #[error("the body ended too early")]
    Broken,
    #[error("too many long requests are being handled; try again later")]
    Busy,
}

impl BodyError {
    /// The response that says so.
    pub(super) fn response(self) -> HttpResponse {
        let status = match self {
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        };
        problem(status, &self.to_string())
    }
}

/// The next part of the body; `None` at its end. Trailers are skipped.
async fn next<B: Body<Data = Bytes>>(mut body: std::pin::Pin<&mut B>) -> Result<Option<Bytes>, BodyError> {
    loop {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            // The client is gone or sent a malformed body.
            Some(Err(_)) => return Err(BodyError::Broken),
        }
    }
}

/// Requires the JSON content type. A web page cannot send it to another origin without a CORS preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests;
