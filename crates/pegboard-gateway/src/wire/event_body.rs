//! [`EventBody`]: an event stream as the body of a response.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep};

use super::event_frame::{self, EventId, Frames};
use crate::protocol::Outgoing;

/// The interval of the comments that keep proxies from closing an idle event stream.
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);

/// Where the messages of an event stream come from. Dropping it says that the client is gone.
pub(super) trait EventSource: Send {
    /// Returns the next message, or `None` at the end.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Option<EventId>, Outgoing)>>;

    /// Whether the stream goes on when the token of its client is good no longer, until what it answers has ended.
    fn outlives_token(&mut self) -> bool;
}

/// An event stream.
pub(crate) struct EventBody {
    source: Option<Box<dyn EventSource>>,
    ready: Frames,
    keep_alive: Pin<Box<Sleep>>,
    /// Whether an event was sent since the last tick of `keep_alive`.
    is_fresh: bool,
}

impl EventBody {
    /// A stream of the events of `source`.
    pub(super) fn new(source: Box<dyn EventSource>) -> Self {
        Self {
            source: Some(source),
            ready: Frames::default(),
            keep_alive: Box::pin(sleep(KEEP_ALIVE_TIME)),
            is_fresh: false,
        }
    }

    /// Sends these bytes first.
    #[must_use]
    pub(super) fn first(mut self, bytes: Bytes) -> Self {
        self.ready = event_frame::one(bytes);
        self
    }

    /// As [`EventSource::outlives_token`].
    pub(super) fn outlives_token(&mut self) -> bool {
        self.source.as_mut().is_some_and(|source| source.outlives_token())
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        if let Some(frame) = self.take_ready() {
            return Poll::Ready(Some(Frame::data(frame)));
        }
        let Some(source) = &mut self.source else {
            return Poll::Ready(None);
        };
        match source.poll_event(cx) {
            Poll::Ready(Some((id, message))) => {
                self.ready = event_frame::message(id, message);
                self.is_fresh = true;
                Poll::Ready(self.take_ready().map(Frame::data))
            }
            Poll::Ready(None) => {
                self.source = None;
                Poll::Ready(None)
            }
            Poll::Pending => self.poll_keep_alive(cx),
        }
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        while self.keep_alive.as_mut().poll(cx).is_ready() {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE_TIME);
            if !std::mem::take(&mut self.is_fresh) {
                return Poll::Ready(Some(Frame::data(event_frame::KEEP_ALIVE)));
            }
        }
        Poll::Pending
    }

    fn take_ready(&mut self) -> Option<Bytes> {
        self.ready
            .iter_mut()
            .find(|frame| !frame.is_empty())
            .map(std::mem::take)
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").finish_non_exhaustive()
    }
}
