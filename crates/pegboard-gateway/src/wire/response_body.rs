//! [`ResponseBody`]: the body of a response, without a box or a copy for the common case.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{event_body::EventBody, session::InUse};
use crate::protocol::Outgoing;

/// The body of a response: a message in parts, an event stream, or a body of another router.
pub(crate) struct ResponseBody {
    kind: Kind,
    held: Held,
    /// Ends a stream when it completes.
    end: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// What is kept until a response was sent or the client is gone.
#[derive(Default)]
pub(crate) struct Held {
    /// The place among the requests in flight.
    pub(crate) in_flight: Option<OwnedSemaphorePermit>,
    /// The session that an event stream belongs to.
    pub(super) session: Option<InUse>,
}

enum Kind {
    /// What is left of up to three parts, in reverse order.
    Parts([Bytes; 3]),
    Events(Box<EventBody>),
    Other(axum::body::Body),
}

impl ResponseBody {
    /// An empty body.
    pub(crate) fn empty() -> Self {
        Self::of(Kind::Parts(Default::default()))
    }

    /// A body of these bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Parts([Bytes::new(), Bytes::new(), bytes.into()]))
    }

    /// A JSON-RPC message.
    pub(crate) fn message(message: &Outgoing) -> Self {
        let [head, body, tail] = message.parts();
        Self::of(Kind::Parts([tail.clone(), body.clone(), head.clone()]))
    }

    /// An event stream.
    pub(crate) fn events(events: EventBody) -> Self {
        Self::of(Kind::Events(Box::new(events)))
    }

    /// The body of a response that another router made.
    pub(crate) fn other(body: axum::body::Body) -> Self {
        Self::of(Kind::Other(body))
    }

    /// What is kept until this body was sent.
    pub(crate) fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Ends the body early when `stop` is cancelled, unless all of it is there already.
    pub(crate) fn end_with(&mut self, stop: &CancellationToken) {
        // The head of a body of known length may have been sent, with that length.
        if self.size_hint().exact().is_none() {
            self.end = Some(Box::pin(stop.clone().cancelled_owned()));
        }
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            held: Held::default(),
            end: None,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(end) = &mut self.end
            && end.as_mut().poll(cx).is_ready()
        {
            *self = Self::empty();
        }
        match &mut self.kind {
            Kind::Parts(parts) => Poll::Ready(next_part(parts).map(|part| Ok(Frame::data(part)))),
            Kind::Events(events) => events.poll_frame(cx).map(|frame| frame.map(Ok)),
            Kind::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Parts(parts) => parts.iter().all(Bytes::is_empty),
            Kind::Events(_) => false,
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Parts(parts) => SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum()),
            Kind::Events(_) => SizeHint::default(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

/// Takes the first part that is not empty.
fn next_part(parts: &mut [Bytes; 3]) -> Option<Bytes> {
    parts.iter_mut().rev().find(|part| !part.is_empty()).map(std::mem::take)
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: ResponseBody) -> Bytes {
        axum::body::to_bytes(axum::body::Body::new(body), 1 << 10)
            .await
            .unwrap()
    }

    fn ended(body: axum::body::Body) -> ResponseBody {
        let stop = CancellationToken::new();
        let mut body = ResponseBody::other(body);
        body.end_with(&stop);
        stop.cancel();
        body
    }

    #[tokio::test]
    async fn a_body_of_known_length_is_sent_whole() {
        assert_eq!(read(ended(axum::body::Body::from("whole"))).await, "whole");
    }

    #[tokio::test]
    async fn a_stream_ends_early() {
        let never = futures_util::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        assert_eq!(read(ended(axum::body::Body::from_stream(never))).await, "");
    }
}
