//! The events of a board: the start and end of every call, without its content, and every change of a server's state.

use std::{
    collections::VecDeque,
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
use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

use crate::status::State;
use pegboard_base::{
    caller::Principal,
    name::ServerName,
    sync::{BroadcastStream, Mutex},
};
use pegboard_tools::outcome::{Kind, Reply, millis};

/// The capacity of the event channel. A subscriber that lags further behind misses the oldest events.
const CAPACITY: usize = 1024;
/// The most changes of servers that are kept for people who look later: a few for each of many servers.
const RECENT_CHANGES: usize = 2048;

/// Something that happened on a board. All events of one call have its id.
///
/// Every call publishes [`Event::CallCreated`] and [`Event::CallCompleted`] once each, even if it is refused or its future is dropped. A
/// subscriber that subscribes while a call is in flight may see only its end.
///
/// Events are written as JSON with their [`kind`](Event::kind) as `event`, and read back. Fields may be added to the JSON; a reader ignores
/// those it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A call was made.
    CallCreated {
        /// The call.
        id: String,
        /// `server.tool`, or the requested name while its tool is not known.
        name: String,
        /// The server. `None` for a call whose tool is not known, or not known yet: its server may have to be started first.
        server: Option<ServerName>,
        /// The tool as its server calls it.
        tool: Option<String>,
        /// The principal that the call was made for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// A server reported the progress of a call.
    CallProgress {
        /// The call.
        id: String,
        /// The progress so far.
        progress: f64,
        /// The total, if it is known.
        total: Option<f64>,
        /// The server's message.
        message: Option<String>,
        /// The principal that the call was made for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
    },
    /// A call ended. One whose future was dropped ended as [`Kind::Cancelled`], and so did a task whose handle was dropped before its reply
    /// was fetched.
    CallCompleted {
        /// The call.
        id: String,
        /// `server.tool`, or the requested name if there is no such tool.
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
        /// The size of the response's payload in bytes.
        original_bytes: usize,
        /// The principal that the call was made for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// The state of a server changed, or a server that is down failed to start once more.
    ServerChanged {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views, or all views of a principal, share.
        view: Option<String>,
        /// The principal whose views alone use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// The state before.
        from: State,
        /// The state now. For a server with a pool of connections, the state of the best one.
        state: State,
        /// Why it cannot be used, or why it is restarted. Secrets are masked.
        reason: Option<String>,
        /// How long the start took, from the attempt to the first listing of tools. Set when the server is ready.
        ready_after_ms: Option<f64>,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// The tools, resources or prompts of a server changed.
    CatalogChanged {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views, or all views of a principal, share.
        view: Option<String>,
        /// The principal whose views alone use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// How many items are new.
        added: usize,
        /// How many items were removed.
        removed: usize,
        /// How many items have changed.
        changed: usize,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// Definitions of a server are not as they were pinned, or look like attacks. [`Pegboard::pin_changes`](crate::Pegboard::pin_changes)
    /// has the details.
    DefinitionsFlagged {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views, or all views of a principal, share.
        view: Option<String>,
        /// The principal whose views alone use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// How many definitions differ from their pins, or have none on a known server.
        changed: usize,
        /// How many definitions look like attacks.
        suspicious: usize,
        /// How many of them are held until a person accepts them.
        held: usize,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// A server did not respond to a health probe in time. Its connection is replaced, and [`Event::ServerChanged`] follows.
    ProbeFailed {
        /// The server.
        server: ServerName,
        /// The view that uses it alone; `None` for a server that all views, or all views of a principal, share.
        view: Option<String>,
        /// The principal whose views alone use it.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<Principal>,
        /// The error. Secrets are masked.
        reason: String,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// The audit log cannot be written. Published once a minute while that lasts.
    AuditFailed {
        /// The file and the error.
        reason: String,
        /// When.
        #[cfg_attr(feature = "schemars", schemars(with = "String"))]
        at: Timestamp,
    },
    /// The subscriber lagged behind and missed events.
    Missed {
        /// How many.
        events: u64,
    },
}

impl Event {
    /// The name of the event in JSON, for labels: `call_completed`, `server_changed` and so on.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::CallCreated { .. } => "call_created",
            Self::CallProgress { .. } => "call_progress",
            Self::CallCompleted { .. } => "call_completed",
            Self::ServerChanged { .. } => "server_changed",
            Self::CatalogChanged { .. } => "catalog_changed",
            Self::DefinitionsFlagged { .. } => "definitions_flagged",
            Self::ProbeFailed { .. } => "probe_failed",
            Self::AuditFailed { .. } => "audit_failed",
            Self::Missed { .. } => "missed",
        }
    }

    pub(crate) fn from_reply(reply: &Reply, principal: Option<&Principal>) -> Self {
        Self::CallCompleted {
            id: reply.id.clone(),
            name: reply.name.clone(),
            server: reply.server.clone(),
            tool: reply.tool.clone(),
            kind: reply.outcome.kind(),
            is_error: reply.is_error(),
            latency_ms: millis(reply.latency),
            original_bytes: reply.original_bytes,
            principal: principal.cloned(),
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
            principal: call.principal,
            at: Timestamp::now(),
        }
    }
}

/// A call that ends without a reply.
#[derive(Debug)]
pub(crate) struct CallEnd {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) server: Option<ServerName>,
    pub(crate) tool: Option<String>,
    pub(crate) principal: Option<Principal>,
}

/// A stream of the events of a board, in order. A subscriber that lags behind gets [`Event::Missed`].
#[derive(Debug)]
pub struct Events {
    stream: BroadcastStream<Event>,
    /// How many events all subscribers of the board have missed.
    lost: Arc<AtomicU64>,
    _subscriber: Subscriber,
}

impl Events {
    /// Waits for the next event. Returns `None` when the board is gone. Cancel-safe: dropping the future loses no event.
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

/// Publishes events. Without subscribers it costs one atomic load.
#[derive(Debug, Clone)]
pub(crate) struct EventSender {
    events: broadcast::Sender<Event>,
    /// The number of subscribers. Every call reads it, and the channel's own count takes a lock.
    subscribers: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
    /// Notified of changes of servers, so that a program that needs no other events does not make calls record theirs.
    server_changes: watch::Sender<()>,
    /// The last changes of servers, the newest last.
    recent: Arc<Mutex<VecDeque<Event>>>,
}

/// Counts one subscriber until it is dropped.
#[derive(Debug)]
struct Subscriber(Arc<AtomicUsize>);

impl Subscriber {
    fn new(subscribers: &Arc<AtomicUsize>) -> Self {
        subscribers.fetch_add(1, Ordering::Relaxed);
        Self(subscribers.clone())
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EventSender {
    /// Whether there is a subscriber.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.subscribers.load(Ordering::Relaxed) > 0
    }

    /// Publishes an event. `event` is called only if there is a subscriber.
    pub(crate) fn send(&self, event: impl FnOnce() -> Event) {
        if self.has_subscribers() {
            let _ = self.events.send(event());
        }
    }

    /// Publishes an event about a server whose state or catalogue has changed.
    pub(crate) fn send_server_change(&self, event: impl FnOnce() -> Event) {
        let event = event();
        let mut recent = self.recent.lock();
        if recent.len() == RECENT_CHANGES {
            recent.pop_front();
        }
        recent.push_back(event.clone());
        drop(recent);
        self.send(|| event);
        self.server_changes.send_replace(());
    }

    /// The last changes of servers, the newest last.
    pub(crate) fn recent_server_changes(&self) -> Vec<Event> {
        self.recent.lock().iter().cloned().collect()
    }

    /// Notices changes of servers from now on.
    pub(crate) fn server_changes(&self) -> watch::Receiver<()> {
        self.server_changes.subscribe()
    }

    /// How many events slow subscribers have missed.
    pub(crate) fn lost_count(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Subscribes to all events from now on.
    pub(crate) fn subscribe(&self) -> Events {
        let events = self.events.subscribe();
        Events {
            stream: BroadcastStream::new(events),
            lost: self.lost.clone(),
            _subscriber: Subscriber::new(&self.subscribers),
        }
    }
}

impl Default for EventSender {
    fn default() -> Self {
        Self {
            events: broadcast::channel(CAPACITY).0,
            subscribers: Arc::default(),
            lost: Arc::default(),
            server_changes: watch::Sender::new(()),
            recent: Arc::default(),
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
            principal: None,
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_gets_the_number_of_missed_events_and_goes_on() {
        let sender = EventSender::default();
        let mut events = sender.subscribe();
        for n in 0..CAPACITY + 5 {
            sender.send(|| step(f64::from(u32::try_from(n).unwrap())));
        }
        assert_eq!(events.next().await, Some(Event::Missed { events: 5 }));
        assert_eq!(sender.lost_count(), 5);
        assert_eq!(events.next().await, Some(step(5.0)));
    }

    #[tokio::test]
    async fn the_events_are_a_stream_and_a_cancelled_wait_loses_none() {
        use futures_util::{FutureExt, StreamExt};

        let sender = EventSender::default();
        let mut events = sender.subscribe();
        assert!(events.next().now_or_never().is_none());
        sender.send(|| step(1.0));
        sender.send(|| step(2.0));
        drop(sender);
        assert_eq!(StreamExt::collect::<Vec<_>>(events).await, [step(1.0), step(2.0)]);
    }

    #[tokio::test]
    async fn without_a_subscriber_no_event_is_built() {
        let sender = EventSender::default();
        sender.send(|| unreachable!("there is no subscriber"));
        let mut events = sender.subscribe();
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
