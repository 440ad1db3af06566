//! [`CountedBody`]: the body of a request, whose bytes are counted if there is an access log.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body whose bytes are added to a count.
pub(crate) struct CountedBody<B> {
    body: B,
    count: Option<Arc<AtomicU64>>,
}

impl<B> CountedBody<B> {
    pub(crate) fn new(body: B, count: Option<Arc<AtomicU64>>) -> Self {
        Self { body, count }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Some(count), Poll::Ready(Some(Ok(frame)))) = (&self.count, &polled)
            && let Some(data) = frame.data_ref()
        {
            count.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
