//! [`ReplayStream`]: an event stream of a legacy session that outlives its connection. What was sent last is kept, and a client that
//! comes back with `Last-Event-ID` gets what it missed.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use pegboard_base::sync::Mutex;
use pegboard_protocol::code;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::TaskTracker;

use super::{event_body::EventSource, event_frame::EventId};
use crate::protocol::{EarlyEnd, Outgoing, RunStep, Running};

/// The limit on the events that one stream keeps.
const MAX_EVENTS: usize = 256;

/// The limit on their bytes. The newest event is kept even if it is longer, because it may be the response.
const MAX_BYTES: usize = 1024 * 1024;

/// The limit on the bytes that all streams keep.
const MAX_ALL_BYTES: usize = 64 * 1024 * 1024;

/// What all streams of a gateway share, and how long they are kept.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    pub(super) all: Arc<KeptBytes>,
    pub(super) tasks: TaskTracker,
    /// How long a call goes on after its stream broke, and how long the events of a finished one are kept.
    pub(super) linger: Duration,
}

/// The bytes that all streams of a gateway keep.
#[derive(Debug, Default)]
pub(super) struct KeptBytes(AtomicUsize);

/// The events of one request, of one batch, or of no request.
#[derive(Debug)]
pub(super) struct ReplayStream {
    number: u64,
    state: Mutex<ReplayState>,
    all: Arc<KeptBytes>,
    tasks: TaskTracker,
    /// How long a call goes on after its stream broke.
    linger: Duration,
}

/// Where the messages of a stream come from.
#[derive(Debug)]
pub(super) enum MessageSource {
    Calls(Vec<Running>),
    Outbox(mpsc::Receiver<Outgoing>),
    Ended,
}

#[derive(Debug)]
struct ReplayState {
    source: MessageSource,
    kept: VecDeque<KeptEvent>,
    kept_bytes: usize,
    /// The place of the last event.
    last: u64,
    /// The number of the last reader. Only it gets events.
    reader: u64,
    waker: Option<Waker>,
    /// When the last reader left.
    left: Option<Instant>,
}

#[derive(Debug)]
struct KeptEvent {
    place: u64,
    message: Outgoing,
    /// The id of the request that the message answers.
    answered: Option<Box<str>>,
    all: Arc<KeptBytes>,
}

impl ReplayStream {
    pub(super) fn new(number: u64, source: MessageSource, kept: &Keeping) -> Arc<Self> {
        let state = ReplayState {
            source,
            kept: VecDeque::new(),
            kept_bytes: 0,
            last: 0,
            reader: 0,
            waker: None,
            left: None,
        };
        Arc::new(Self {
            number,
            state: Mutex::new(state),
            all: kept.all.clone(),
            tasks: kept.tasks.clone(),
            linger: kept.linger,
        })
    }

    /// The number of the stream within its session.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the stream after this place, or what comes from now on. An earlier reader gets no more: each event is sent once.
    ///
    /// `is_primed` says that the client has an id to come back with before it gets an event.
    pub(super) fn read(self: &Arc<Self>, after: Option<u64>, is_primed: bool) -> EventReader {
        let mut state = self.state.lock();
        state.reader += 1;
        state.left = None;
        let reader = EventReader {
            number: state.reader,
            after: after.unwrap_or(state.last).min(state.last),
            can_resume: false,
            is_primed,
            stream: self.clone(),
        };
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        reader
    }

    /// Puts a message before all others.
    pub(super) fn push(&self, message: Outgoing) {
        let mut state = self.state.lock();
        self.keep(&mut state, message, None);
    }

    /// Ends the stream, which cancels its calls. Nobody is told.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        let source = std::mem::replace(&mut state.source, MessageSource::Ended);
        let waker = state.waker.take();
        drop(state);
        // Outside the lock, because it runs code of the service.
        drop(source);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the calls of the stream early. The errors that say so are its last events.
    fn end_calls(&self, end: EarlyEnd) {
        let state = self.state.lock();
        if let MessageSource::Calls(calls) = &state.source {
            calls.iter().for_each(|call| call.end(end));
        }
    }

    /// Drops the events of a stream that has ended and whose last reader left long ago. A client that comes back all the same is told that its
    /// request was answered, and that the response is gone.
    pub(super) fn forget_if_stale(&self, linger: Duration) {
        let mut state = self.state.lock();
        let is_ended = matches!(state.source, MessageSource::Ended);
        if is_ended && state.left.is_some_and(|left| left.elapsed() >= linger) {
            state.forget_until(u64::MAX);
        }
    }

    /// Returns `true` if the stream has ended.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state.lock().source, MessageSource::Ended)
    }

    /// Gives the next event its place and keeps it within the limits. What is kept takes no room of the server that it came from; without
    /// room for it, it is kept only until it is taken.
    fn keep(&self, state: &mut ReplayState, mut message: Outgoing, answered: Option<Box<str>>) {
        state.last += 1;
        let (place, length) = (state.last, message.len());
        if self.all.has_room_for(length) {
            message.detach();
        }
        state.kept_bytes += length;
        state
            .kept
            .push_back(KeptEvent::new(place, message, answered, &self.all));
        while state.kept.len() > MAX_EVENTS || (state.kept_bytes > MAX_BYTES && state.kept.len() > 1) {
            let Some(oldest) = state.kept.pop_front() else { break };
            state.kept_bytes -= oldest.message.len();
        }
    }

    fn poll(&self, reader: &mut EventReader, cx: &mut Context<'_>) -> Poll<Option<(EventId, Outgoing)>> {
        let mut state = self.state.lock();
        if state.reader != reader.number {
            return Poll::Ready(None);
        }
        if reader.after == state.last {
            match state.source.poll(cx) {
                Poll::Ready(Some((message, answered))) => {
                    self.keep(&mut state, message, answered);
                    if matches!(&state.source, MessageSource::Calls(calls) if calls.is_empty()) {
                        state.source = MessageSource::Ended;
                    }
                }
                Poll::Ready(None) => {
                    state.source = MessageSource::Ended;
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    state.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
        let index = state.kept.partition_point(|kept| kept.place <= reader.after);
        let Some(next) = state.kept.get(index) else {
            // Only if all that was kept has been dropped.
            reader.after = state.last;
            return Poll::Ready(None);
        };
        reader.after = next.place;
        let id = EventId {
            stream: self.number,
            place: next.place,
        };
        let message = next.message.clone();
        // While a reader follows, other streams may use the room that is short.
        if self.all.is_full() {
            state.forget_until(id.place);
        }
        Poll::Ready(Some((id, message)))
    }

    /// Notes that a reader is gone. A call whose client can come back goes on for a while; any other is cancelled.
    fn note_departure(self: &Arc<Self>, reader: u64, can_resume: bool) {
        let mut state = self.state.lock();
        if state.reader != reader {
            return;
        }
        state.left = Some(Instant::now());
        state.waker = None;
        if !matches!(state.source, MessageSource::Calls(_)) {
            return;
        }
        if !can_resume || tokio::runtime::Handle::try_current().is_err() {
            drop(state);
            return self.end();
        }
        // The number is given here, so that a client that comes back meanwhile has a later one.
        state.reader += 1;
        let linger_time = self.linger;
        let collector = EventReader {
            number: state.reader,
            after: state.last,
            // No other one follows it: at the end of the runtime that would never end.
            can_resume: false,
            is_primed: true,
            stream: self.clone(),
        };
        drop(state);
        self.tasks.spawn(linger(self.clone(), collector, linger_time));
    }
}

/// Collects the events of calls whose client is away, until they end or a client comes back.
async fn linger(stream: Arc<ReplayStream>, mut collector: EventReader, time: Duration) {
    let collected = async {
        while std::future::poll_fn(|cx| stream.poll(&mut collector, cx))
            .await
            .is_some()
        {
            if stream.all.is_full() {
                return Err(());
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(time, collected).await;
    if !matches!(outcome, Ok(Ok(()))) {
        // The client does not come back. If it does all the same, it finds the errors that say so.
        stream.end_calls(EarlyEnd::StreamLost);
        while std::future::poll_fn(|cx| stream.poll(&mut collector, cx))
            .await
            .is_some()
        {}
    }
    // This is no client that left.
    collector.number = 0;
}

impl ReplayState {
    /// Drops the events up to a place. Of a response, the error is left that says that it is gone.
    fn forget_until(&mut self, place: u64) {
        let mut kept_bytes = 0;
        self.kept.retain_mut(|kept| {
            let is_left = kept.place > place || kept.shrink();
            if is_left {
                kept_bytes += kept.message.len();
            }
            is_left
        });
        self.kept_bytes = kept_bytes;
    }
}

impl MessageSource {
    /// The next message, with the id of the request that it answers; `None` when all calls have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Outgoing, Option<Box<str>>)>> {
        match self {
            Self::Ended => Poll::Ready(None),
            Self::Outbox(outbox) => outbox
                .poll_recv(cx)
                .map(|message| message.map(|message| (message, None))),
            Self::Calls(calls) => {
                let mut index = 0;
                while let Some(call) = calls.get_mut(index) {
                    match call.poll_next(cx) {
                        Poll::Pending => index += 1,
                        Poll::Ready(RunStep::Message(message)) => return Poll::Ready(Some((message, None))),
                        Poll::Ready(RunStep::Done(response)) => {
                            let call = calls.swap_remove(index);
                            if let Some(response) = response {
                                return Poll::Ready(Some((response, Some(call.id().into()))));
                            }
                        }
                    }
                }
                if calls.is_empty() {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                }
            }
        }
    }
}

impl KeptBytes {
    fn has_room_for(&self, length: usize) -> bool {
        self.0.load(Ordering::Relaxed).saturating_add(length) <= MAX_ALL_BYTES
    }

    fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_ALL_BYTES
    }
}

impl KeptEvent {
    fn new(place: u64, message: Outgoing, answered: Option<Box<str>>, all: &Arc<KeptBytes>) -> Self {
        all.0.fetch_add(message.len(), Ordering::Relaxed);
        Self {
            place,
            message,
            answered,
            all: all.clone(),
        }
    }

    /// Replaces a response by the error that says that it is gone. Returns `false` for other messages, which are dropped whole.
    fn shrink(&mut self) -> bool {
        let Some(id) = &self.answered else { return false };
        // An early end is short, and says more.
        if self.message.error_code() != Some(code::STOPPING) {
            let gone = Outgoing::error(Some(id), &EarlyEnd::ResponseDropped.error(true));
            self.all.0.fetch_add(gone.len(), Ordering::Relaxed);
            self.all.0.fetch_sub(self.message.len(), Ordering::Relaxed);
            self.message = gone;
        }
        true
    }
}

impl Drop for KeptEvent {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.message.len(), Ordering::Relaxed);
    }
}

/// Reads the events of a stream for one connection.
#[derive(Debug)]
pub(super) struct EventReader {
    stream: Arc<ReplayStream>,
    number: u64,
    /// The place of the last event that was read.
    after: u64,
    is_primed: bool,
    /// Whether the client has got an id to come back with.
    can_resume: bool,
}

impl EventSource for EventReader {
    /// The stream of a call goes on: the call decides when it ends.
    fn outlives_token(&mut self) -> bool {
        !matches!(self.stream.state.lock().source, MessageSource::Outbox(_))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Option<EventId>, Outgoing)>> {
        // The priming event is taken before the first event is asked for.
        self.can_resume |= self.is_primed;
        let stream = self.stream.clone();
        let event = stream.poll(self, cx);
        self.can_resume |= matches!(event, Poll::Ready(Some(_)));
        event.map(|event| event.map(|(id, message)| (Some(id), message)))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.stream.note_departure(self.number, self.can_resume);
    }
}

#[cfg(test)]
mod tests;
