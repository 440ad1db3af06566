//! Sends a request on to the replica that it belongs to, and its response back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, Method, Response, Uri,
    header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING, VARY},
};
use pegboard_http::{Body, Error, Gate};
use tokio::time::timeout;

use super::{
    envelope::{self, BUSY, OTHER_REPLICA, PROOF, REFUSED, REPEATED},
    registry::{Replica, Replicas},
};

/// Written by the replica that the client is connected to.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long a stream may have nothing to say. A gateway writes a comment every 15 s.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// The longest response that is read before its head is sent on.
const MAX_WHOLE: u64 = 1 << 20;

/// The head of a request as its client sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedHead<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

/// An owner sends nothing, not even the comments that keep a stream open.
#[derive(Debug, thiserror::Error)]
#[error("the replica that this stream comes from is silent")]
struct Silent;

/// Why a replica has not answered a request.
#[derive(Debug)]
pub(crate) enum NotForwarded {
    /// It has ended: nothing of the request has run.
    Gone,
    /// It cannot be reached now: nothing of the request has run.
    Unreachable(String),
    /// The request may have run.
    Lost(String),
}

/// Notes that a request has left.
#[derive(Debug, Default)]
struct Left(AtomicBool);

impl Gate for Left {
    fn open(&self) -> bool {
        self.0.store(true, Ordering::Release);
        true
    }
}

impl Replicas {
    /// Sends a request to its owner and waits for the head of the response. Dropping the future or the body of the response cancels it there.
    pub(crate) async fn forward(
        &self,
        to: &Replica,
        head: ForwardedHead<'_>,
        body: &[u8],
    ) -> Result<Response<axum::body::Body>, NotForwarded> {
        let sealer = &self.0.sealer;
        let (sealed, nonce) = envelope::seal(sealer, to.id, (head.method, head.uri, head.headers), body)
            .ok_or_else(|| NotForwarded::Unreachable("it cannot be sealed".to_owned()))?;
        let left = Arc::new(Left::default());
        let sent = Body::gated(sealed, left.clone());
        let sending = to.client.send(Method::POST, &to.target, HeaderMap::new(), sent);
        // A process that is stopped takes connections and answers nothing.
        let answered = tokio::select! {
            answered = sending => answered,
            () = self.silent(to.id) => {
                self.note_gone(to.id);
                return Err(self.given_up(left.0.load(Ordering::Acquire)));
            }
        };
        let response = match answered {
            Ok(response) => response,
            Err(error) => return Err(self.failed(to, &error, left.0.load(Ordering::Acquire))),
        };
        if !envelope::is_proof(sealer, response.headers().get(PROOF), nonce) {
            // Something between the replicas may answer for one that has taken the request.
            self.count_lost();
            return Err(NotForwarded::Lost(
                "what answers at its address is no replica".to_owned(),
            ));
        }
        match response.headers().get(REFUSED) {
            None => {}
            Some(why) if why == OTHER_REPLICA => {
                tracing::info!(
                    "another replica has the address of one that has ended, or they are set to the same one"
                );
                self.note_gone(to.id);
                return Err(NotForwarded::Gone);
            }
            Some(why) if why == REPEATED => {
                self.count_lost();
                return Err(NotForwarded::Lost("it has received the request twice".to_owned()));
            }
            Some(why) if why == BUSY => return Err(NotForwarded::Unreachable("it is busy".to_owned())),
            Some(_) => {
                let why = "it takes requests of the last minute only; set the clocks of the replicas";
                return Err(NotForwarded::Unreachable(why.to_owned()));
            }
        }
        let response = into_response(response).await.map_err(|error| {
            self.count_lost();
            NotForwarded::Lost(error.to_string())
        })?;
        self.count_forwarded();
        Ok(response)
    }

    /// What becomes of a request whose owner shows no sign of life any more.
    fn given_up(&self, has_left: bool) -> NotForwarded {
        match has_left {
            true => {
                self.count_lost();
                NotForwarded::Lost("it shows no sign of life".to_owned())
            }
            false => NotForwarded::Gone,
        }
    }

    fn failed(&self, to: &Replica, error: &Error, has_left: bool) -> NotForwarded {
        if has_left {
            self.count_lost();
            return NotForwarded::Lost(error.to_string());
        }
        if is_refused(error) {
            self.note_gone(to.id);
            return NotForwarded::Gone;
        }
        // It may live all the same: a name that is not found, too many open files, a network that is away.
        NotForwarded::Unreachable(error.to_string())
    }

    fn count_forwarded(&self) {
        self.0.counters.forwarded.fetch_add(1, Ordering::Relaxed);
    }

    fn count_lost(&self) {
        self.0.counters.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_received(&self) {
        self.0.counters.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_adopted(&self) {
        self.0.counters.adopted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether nothing listens at an address of a machine that is there.
fn is_refused(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if let Some(error) = source.downcast_ref::<std::io::Error>() {
            return error.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        cause = source.source();
    }
    false
}

/// The response of an owner as its client gets it: a short one whole, so that one that breaks off is told as lost, and a stream as it comes.
async fn into_response(mut response: pegboard_http::Response) -> Result<Response<axum::body::Body>, axum::BoxError> {
    let mut forwarded = Response::new(());
    *forwarded.status_mut() = response.status();
    let headers = forwarded.headers_mut();
    headers.clone_from(response.headers());
    // These are of the connection between the replicas, or written anew for the client.
    for own in [
        PROOF,
        CONNECTION,
        TRANSFER_ENCODING,
        CONTENT_LENGTH,
        DATE,
        REQUEST_ID,
        VARY,
    ] {
        headers.remove(own);
    }
    if response.content_length().is_some_and(|length| length <= MAX_WHOLE) {
        let mut whole = BytesMut::new();
        while let Some(chunk) = timeout(MAX_SILENCE, response.chunk()).await.map_err(|_| Silent)?? {
            whole.extend_from_slice(&chunk);
        }
        return Ok(forwarded.map(|()| axum::body::Body::from(whole.freeze())));
    }
    let chunks = stream::try_unfold(response, async |mut response| {
        let chunk = timeout(MAX_SILENCE, response.chunk()).await.map_err(|_| Silent)?;
        Ok::<_, axum::BoxError>(chunk?.map(|chunk: Bytes| (chunk, response)))
    });
    Ok(forwarded.map(|()| axum::body::Body::from_stream(chunks)))
}
