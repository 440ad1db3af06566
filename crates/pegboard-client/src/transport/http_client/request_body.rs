//! The body of a POST, which marks its message as sent once the HTTP client polls it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::transport::delivery::Delivery;

/// A message as the body of a POST. It counts as sent once the HTTP client polls it, and not before: a request may wait for a connection or
/// be lost with one, and a server that has seen at most its headers has not run it.
pub(super) struct MessageBody {
    bytes: Bytes,
    /// `None` if an earlier request has already sent the message.
    delivery: Option<Arc<Delivery>>,
}

/// The message was abandoned before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message was given up")]
pub(super) struct Abandoned;

impl MessageBody {
    /// Creates the body of a message that was not sent before. `bytes` must not be empty.
    pub(super) fn new(bytes: Bytes, delivery: Arc<Delivery>) -> Self {
        Self {
            bytes,
            delivery: Some(delivery),
        }
    }

    /// Creates the body of a message that an earlier request has already sent, and that the server redirected.
    pub(super) fn for_resend(bytes: Bytes) -> Self {
        Self { bytes, delivery: None }
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = Abandoned;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready(if bytes.is_empty() {
            None
        } else if self.delivery.as_ref().is_none_or(|delivery| delivery.begin()) {
            Some(Ok(Frame::data(bytes)))
        } else {
            Some(Err(Abandoned))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::delivery::Sent;

    fn poll(message: &mut MessageBody) -> Option<Result<Bytes, Abandoned>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(message).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|frame| frame.into_data().unwrap())),
            Poll::Pending => panic!("it has nothing to wait for"),
        }
    }

    #[test]
    fn a_message_is_unsent_until_it_is_polled() {
        let delivery = Arc::new(Delivery::default());
        let mut message = MessageBody::new("hello".into(), delivery.clone());
        assert_eq!((message.size_hint().exact(), message.is_end_stream()), (Some(5), false));
        assert_eq!(delivery.sent(), Sent::No);
        assert_eq!(poll(&mut message), Some(Ok("hello".into())));
        assert_eq!(delivery.sent(), Sent::Maybe);
        assert!(!delivery.abandon());
        assert_eq!((poll(&mut message), message.is_end_stream()), (None, true));
    }

    #[test]
    fn an_abandoned_message_is_not_sent() {
        let delivery = Arc::new(Delivery::default());
        let mut message = MessageBody::new("hello".into(), delivery.clone());
        assert!(delivery.abandon());
        assert_eq!(poll(&mut message), Some(Err(Abandoned)));
        assert_eq!(poll(&mut message), None);
        assert_eq!(delivery.sent(), Sent::No);
    }
}
