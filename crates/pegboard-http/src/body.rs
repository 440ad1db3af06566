//! The body of a request, which may have a gate that it passes when it is sent.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Decides at the last moment whether a body is sent.
pub trait Gate: Send + Sync {
    /// Called before the first byte of the body is sent. Returns `false` if it must not be sent.
    fn open(&self) -> bool;
}

/// The body of a request.
///
/// Its gate opens when the connection takes the body, and not before: a request may wait for a connection or be lost with one, and a server that
/// has seen at most its headers has not run it.
pub struct Body {
    bytes: Bytes,
    gate: Option<Arc<dyn Gate>>,
}

/// The gate was closed, so the body was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message was given up")]
pub struct NotSent;

impl Body {
    /// A body behind a gate. `bytes` must not be empty.
    pub fn gated(bytes: Bytes, gate: Arc<dyn Gate>) -> Self {
        Self {
            bytes,
            gate: Some(gate),
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self {
            bytes: bytes.into(),
            gate: None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = NotSent;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, NotSent>>> {
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready(if bytes.is_empty() {
            None
        } else if self.gate.as_ref().is_none_or(|gate| gate.open()) {
            Some(Ok(Frame::data(bytes)))
        } else {
            Some(Err(NotSent))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use http_body::Body as _;

    use super::*;

    #[derive(Default)]
    struct Counted {
        asked: AtomicU32,
        is_closed: AtomicBool,
    }

    impl Gate for Counted {
        fn open(&self) -> bool {
            self.asked.fetch_add(1, Ordering::Relaxed);
            !self.is_closed.load(Ordering::Relaxed)
        }
    }

    fn poll(body: &mut Body) -> Option<Result<Bytes, NotSent>> {
        let mut context = Context::from_waker(std::task::Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(frame) => frame.map(|frame| frame.map(|frame| frame.into_data().unwrap())),
            Poll::Pending => panic!("it has nothing to wait for"),
        }
    }

    #[test]
    fn the_gate_opens_when_the_body_is_taken() {
        let gate = Arc::new(Counted::default());
        let mut body = Body::gated("hello".into(), gate.clone());
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
        assert_eq!(gate.asked.load(Ordering::Relaxed), 0);
        assert_eq!(poll(&mut body), Some(Ok("hello".into())));
        assert_eq!((poll(&mut body), body.is_end_stream()), (None, true));
        assert_eq!(gate.asked.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn nothing_is_sent_through_a_closed_gate() {
        let gate = Arc::new(Counted::default());
        gate.is_closed.store(true, Ordering::Relaxed);
        let mut body = Body::gated("hello".into(), gate);
        assert_eq!(poll(&mut body), Some(Err(NotSent)));
        assert_eq!(poll(&mut body), None);
    }
}
