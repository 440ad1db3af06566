//! The body of a POST, which tells whether anything of it can have left us.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::transport::Delivery;

/// A message that is on its way when it is first asked for, and not before: a request may wait for a connection, or be lost together
/// with one, and a server that has seen at most its headers has not carried it out.
pub(super) struct Message {
    bytes: Bytes,
    /// `None` once an earlier request has carried the message away.
    delivery: Option<Arc<Delivery>>,
}

/// The message was given up before it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message was given up")]
pub(super) struct GivenUp;

impl Message {
    /// `bytes` is not empty.
    pub(super) fn new(bytes: Bytes, delivery: Arc<Delivery>) -> Self {
        Self {
            bytes,
            delivery: Some(delivery),
        }
    }

    /// A message that an earlier request carried to the server, which redirected it.
    pub(super) fn begun(bytes: Bytes) -> Self {
        Self { bytes, delivery: None }
    }
}

impl Body for Message {
    type Data = Bytes;
    type Error = GivenUp;

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
            Some(Err(GivenUp))
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
    use crate::transport::Sent;

    fn ask(message: &mut Message) -> Option<Result<Bytes, GivenUp>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(message).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|frame| frame.into_data().unwrap())),
            Poll::Pending => panic!("it has nothing to wait for"),
        }
    }

    #[test]
    fn a_message_is_unsent_until_it_is_asked_for() {
        let delivery = Arc::new(Delivery::default());
        let mut message = Message::new("hello".into(), delivery.clone());
        assert_eq!((message.size_hint().exact(), message.is_end_stream()), (Some(5), false));
        assert_eq!(delivery.sent(), Sent::No);
        assert_eq!(ask(&mut message), Some(Ok("hello".into())));
        assert_eq!(delivery.sent(), Sent::Maybe);
        assert!(!delivery.abandon());
        assert_eq!((ask(&mut message), message.is_end_stream()), (None, true));
    }

    #[test]
    fn a_message_that_was_given_up_is_not_handed_out_any_more() {
        let delivery = Arc::new(Delivery::default());
        let mut message = Message::new("hello".into(), delivery.clone());
        assert!(delivery.abandon());
        assert_eq!(ask(&mut message), Some(Err(GivenUp)));
        assert_eq!(ask(&mut message), None);
        assert_eq!(delivery.sent(), Sent::No);
    }
}
