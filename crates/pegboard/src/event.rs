//! The events of a board: every call from its beginning to its end, without its content, and every change of a server's state.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    name::ServerName,
    outcome::{Kind, Reply, millis},
    status::State,
    sync::BroadcastStream,
};

/// How many events a slow listener may be behind before it loses the oldest.
const BEHIND: usize = 1024;

/// Something that happened on a board. All events of one call have its id.
///
/// Every call rings [`Event::CallCreated`] and [`Event::CallCompleted`] once each, also one that is refused or whose future is dropped. A
/// listener that subscribes while a call is under way may see its end only.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A call was made.
    CallCreated {
        /// The call.
        id: String,
        /// `server.tool`, or the name as asked for while its tool is not known.
        name: String,
        /// The server. `None` for a call whose tool is not known, or not known yet: its server may have to be started first.
        server: Option<ServerName>,
        /// The tool as its server calls it.
        tool: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// A server told how far a call has come.
    CallProgress {
        /// The call.
        id: String,
        /// How far.
        progress: f64,
        /// Out of how much, when that is known.
        total: Option<f64>,
        /// The server's words.
        message: Option<String>,
    },
    /// A call ended. One whose future was dropped ended as [`Kind::Cancelled`], and so did a task whose handle was dropped before its reply
    /// was fetched.
    CallCompleted {
        /// The call.
        id: String,
        /// `server.tool`, or the name as asked for when there is no such tool.
        name: String,
        /// The server.
        server: Option<ServerName>,
        /// The tool as its server calls it.
        tool: Option<String>,
        /// How it ended.
        kind: Kind,
        /// Whether the model sees it as an error.
        is_error: bool,
        /// How long it took.
        latency_ms: f64,
        /// How many bytes the answer's payload had.
        original_bytes: usize,
        /// When.
        at: Timestamp,
    },
    /// The state of a server changed, or a server that is down failed to start once more.
    ServerChanged {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views share.
        view: Option<String>,
        /// The state before.
        from: State,
        /// The state now. That of a server with a pool of connections is that of the best of them.
        state: State,
        /// Why it cannot be used, or why it is started again. Secrets are masked.
        reason: Option<String>,
        /// How long the start took, from the attempt to the first listing of tools. Set when the server is ready.
        ready_after_ms: Option<f64>,
        /// When.
        at: Timestamp,
    },
    /// A server offers other tools, resources or prompts than before.
    CatalogChanged {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views share.
        view: Option<String>,
        /// How many items are new.
        added: usize,
        /// How many are gone.
        removed: usize,
        /// How many are described differently.
        changed: usize,
        /// When.
        at: Timestamp,
    },
    /// A server did not answer a health probe in time. Its connection is replaced, which [`Event::ServerChanged`] tells.
    ProbeFailed {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views share.
        view: Option<String>,
        /// What was wrong. Secrets are masked.
        reason: String,
        /// When.
        at: Timestamp,
    },
    /// The listener was too slow and so many events are lost to it.
    Missed {
        /// How many.
        events: u64,
    },
}

impl Event {
    pub(crate) fn completed(reply: &Reply) -> Self {
        Self::CallCompleted {
            id: reply.id.clone(),
            name: reply.name.clone(),
            server: reply.server.clone(),
            tool: reply.tool.clone(),
            kind: reply.outcome.kind(),
            is_error: reply.is_error(),
            latency_ms: millis(reply.latency),
            original_bytes: reply.original_bytes,
            at: Timestamp::now(),
        }
    }

    /// The end of a call whose future was dropped.
    pub(crate) fn cancelled(call: CallEnd, took: Duration) -> Self {
        Self::CallCompleted {
            id: call.id,
            name: call.name,
            server: call.server,
            tool: call.tool,
            kind: Kind::Cancelled,
            is_error: true,
            latency_ms: millis(took),
            original_bytes: 0,
            at: Timestamp::now(),
        }
    }
}

/// What is known of a call that ends without a reply.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) server: Option<ServerName>,
    pub(crate) tool: Option<String>,
}

/// The events of a board from now on, in order. A listener that is too slow is told how many it missed.
#[derive(Debug)]
pub struct Events {
    stream: BroadcastStream<Event>,
    /// How many events all listeners of the board have missed.
    lost: Arc<AtomicU64>,
    _listener: Listener,
}

impl Events {
    /// The next event; `None` when the board is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let stream = self.stream.poll(context);
        let missed = |events| {
            self.lost.fetch_add(events, Ordering::Relaxed);
            Event::Missed { events }
        };
        stream.map(|stream| stream.map(|event| event.unwrap_or_else(missed)))
    }
}

/// Where events are told. Without listeners it costs nothing.
#[derive(Debug, Clone)]
pub(crate) struct EventSender {
    events: broadcast::Sender<Event>,
    /// How many listen. The channel knows too, but only under its lock, and every call asks.
    listeners: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

/// Somebody who listens, for as long as it is there.
#[derive(Debug)]
struct Listener(Arc<AtomicUsize>);

impl Listener {
    fn new(listeners: &Arc<AtomicUsize>) -> Self {
        listeners.fetch_add(1, Ordering::Relaxed);
        Self(listeners.clone())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EventSender {
    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    /// Tells an event, which is made only when somebody listens.
    pub(crate) fn send(&self, event: impl FnOnce() -> Event) {
        if self.is_heard() {
            let _ = self.events.send(event());
        }
    }

    /// How many events slow listeners have missed.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn listen(&self) -> Events {
        let events = self.events.subscribe();
        Events {
            stream: BroadcastStream::new(events),
            lost: self.lost.clone(),
            _listener: Listener::new(&self.listeners),
        }
    }
}

impl Default for EventSender {
    fn default() -> Self {
        Self {
            events: broadcast::channel(BEHIND).0,
            listeners: Arc::default(),
            lost: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(progress: f64) -> Event {
        Event::CallProgress {
            id: "1".into(),
            progress,
            total: None,
            message: None,
        }
    }

    #[tokio::test]
    async fn a_slow_listener_is_told_what_it_missed_and_goes_on() {
        let sender = EventSender::default();
        let mut events = sender.listen();
        for n in 0..BEHIND + 5 {
            sender.send(|| step(f64::from(u32::try_from(n).unwrap())));
        }
        assert_eq!(events.next().await, Some(Event::Missed { events: 5 }));
        assert_eq!(sender.lost(), 5);
        assert_eq!(events.next().await, Some(step(5.0)));
    }

    #[tokio::test]
    async fn the_events_are_a_stream_and_a_wait_that_is_given_up_loses_none() {
        use futures_util::{FutureExt, StreamExt};

        let sender = EventSender::default();
        let mut events = sender.listen();
        assert!(events.next().now_or_never().is_none());
        sender.send(|| step(1.0));
        sender.send(|| step(2.0));
        drop(sender);
        assert_eq!(StreamExt::collect::<Vec<_>>(events).await, [step(1.0), step(2.0)]);
    }

    #[tokio::test]
    async fn without_a_listener_no_event_is_even_made() {
        let sender = EventSender::default();
        sender.send(|| unreachable!("nobody listens"));
        let mut events = sender.listen();
        drop(sender);
        assert_eq!(events.next().await, None);
    }

    #[test]
    fn an_event_is_written_with_its_kind_and_the_calls_id() {
        assert_eq!(
            serde_json::to_value(step(0.5)).unwrap(),
            serde_json::json!({"event": "call_progress", "id": "1", "progress": 0.5, "total": null, "message": null})
        );
    }
}
