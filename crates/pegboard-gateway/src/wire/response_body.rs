//! [`ResponseBody`]: the body of a response, without a box or a copy for the common case.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{access_log::AccessEntry, event_body::EventBody, session::InUse};
use crate::{door::Revocation, protocol::Outgoing};

/// The body of a response: a message in parts, an event stream, or a body of another router.
pub(crate) struct ResponseBody {
    kind: BodyKind,
    held: Held,
    /// Ends a stream with the token of its client.
    end: Option<Box<TokenEnd>>,
}

/// Marks the response to a call, as an extension of the response of [another router](crate::GatewayBuilder::fallback): it goes on when the token
/// of its client expires, because the call was admitted before. It must end by itself once [`Caller::withdrawn`](crate::Caller::withdrawn)
/// completes, and say then whether the call may have run.
#[derive(Clone, Copy, Debug)]
pub struct AnswersCall;

/// Waits for the end of a token.
struct TokenEnd {
    revoked: Revocation,
    notice: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether the body is that of a call.
    answers_call: bool,
    has_expired: bool,
}

impl TokenEnd {
    /// Returns `true` if the body ends now, unless it has something left to say. What goes on is polled again when more happens to the token.
    fn poll_over(&mut self, kind: &mut BodyKind, cx: &mut Context<'_>) -> bool {
        loop {
            if self.notice.as_mut().poll(cx).is_pending() {
                return false;
            }
            let goes_on = match kind {
                BodyKind::Parts(_) => true,
                BodyKind::Events(events) => events.outlives_token(),
                BodyKind::Other(_) => self.answers_call && !self.revoked.is_revoked(),
            };
            if !goes_on {
                return true;
            }
            if self.has_expired || self.revoked.is_revoked() {
                // What is left ends by itself.
                return false;
            }
            self.has_expired = true;
            self.notice = Box::pin(self.revoked.withdrawn_owned());
        }
    }
}

/// What is kept until a response was sent or the client is gone.
#[derive(Default)]
pub(crate) struct Held {
    /// The place among the requests in flight.
    pub(crate) in_flight: Option<OwnedSemaphorePermit>,
    /// The session that an event stream belongs to.
    pub(super) session: Option<InUse>,
    /// The entry in the access log.
    pub(super) access: Option<Box<AccessEntry>>,
}

enum BodyKind {
    /// What is left of up to three parts, in reverse order.
    Parts([Bytes; 3]),
    Events(Box<EventBody>),
    Other(axum::body::Body),
}

impl ResponseBody {
    /// An empty body.
    pub(crate) fn empty() -> Self {
        Self::new(BodyKind::Parts(Default::default()))
    }

    /// A body of these bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::new(BodyKind::Parts([Bytes::new(), Bytes::new(), bytes.into()]))
    }

    /// A JSON-RPC message.
    pub(crate) fn message(message: &Outgoing) -> Self {
        let [head, body, tail] = message.parts();
        Self::new(BodyKind::Parts([tail.clone(), body.clone(), head.clone()]))
    }

    /// An event stream.
    pub(crate) fn events(events: EventBody) -> Self {
        Self::new(BodyKind::Events(Box::new(events)))
    }

    /// The body of a response that another router made.
    pub(crate) fn other(body: axum::body::Body) -> Self {
        Self::new(BodyKind::Other(body))
    }

    /// What is kept until this body was sent.
    pub(crate) fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Ends the body early when the token of its client is good no longer, unless all of it is there already or it answers a call: such a body
    /// goes on when the token expires, and ends by itself when it is withdrawn.
    pub(crate) fn end_with(&mut self, revoked: &Revocation, answers_call: bool) {
        // The head of a body of known length may have been sent, with that length.
        if self.size_hint().exact().is_none() {
            self.end = Some(Box::new(TokenEnd {
                notice: Box::pin(revoked.cancelled_owned()),
                revoked: revoked.clone(),
                answers_call,
                has_expired: false,
            }));
        }
    }

    fn new(kind: BodyKind) -> Self {
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
        let this = &mut *self;
        let (is_over, answers_call) = match &mut this.end {
            Some(end) => (end.poll_over(&mut this.kind, cx), end.answers_call),
            None => (false, false),
        };
        let frame = match &mut this.kind {
            BodyKind::Parts(parts) => Poll::Ready(next_part(parts).map(|part| Ok(Frame::data(part)))),
            // Nothing of a stream on which a client only listens is sent any more.
            BodyKind::Events(_) if is_over => Poll::Ready(None),
            BodyKind::Events(events) => events.poll_frame(cx).map(|frame| frame.map(Ok)),
            BodyKind::Other(_) if is_over && !answers_call => Poll::Ready(None),
            BodyKind::Other(body) => Pin::new(body).poll_frame(cx),
        };
        if let Some(access) = &mut this.held.access {
            match &frame {
                Poll::Ready(Some(Ok(frame))) => access.count_sent(frame.data_ref().map_or(0, Bytes::len)),
                Poll::Ready(None) => access.note_end(),
                Poll::Ready(Some(Err(_))) | Poll::Pending => {}
            }
        }
        if is_over && (frame.is_pending() || matches!(frame, Poll::Ready(None))) {
            if let Some(access) = &mut this.held.access {
                access.note_end();
            }
            *this = Self::empty();
            return Poll::Ready(None);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            BodyKind::Parts(parts) => parts.iter().all(Bytes::is_empty),
            BodyKind::Events(_) => false,
            BodyKind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Parts(parts) => SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum()),
            BodyKind::Events(_) => SizeHint::default(),
            BodyKind::Other(body) => body.size_hint(),
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
        let token = Revocation::default();
        let mut body = ResponseBody::other(body);
        body.end_with(&token, false);
        token.expire();
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
