//! The stream of one server's events. It is bounded: a slow reader misses the oldest events and gets [`ServerEvent::Missed`].

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;

use super::log_level::LogLevel;
use pegboard_base::{caller::Principal, sync::BroadcastStream};

/// An event from a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerEvent {
    /// A subscribed resource may have changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
    },
    /// A log message.
    Log(LogMessage),
    /// The user has finished a URL elicitation.
    ElicitationComplete {
        /// The id of the elicitation.
        id: String,
    },
    /// The server says that one of its lists has changed. The listings of toolsets follow once Pegboard has read it again.
    ListChanged {
        /// Which list.
        list: ListKind,
    },
    /// The server reports the state of a task. A view gets only the reports about tasks that were returned to it by
    /// `Toolset::forward_call`.
    TaskStatus {
        /// The id of the task.
        id: String,
        /// The params of the notification.
        params: Value,
    },
    /// A notification that Pegboard does not know, such as one of an extension.
    Other {
        /// Its method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Events were dropped because they came faster than they were read.
    Missed {
        /// How many.
        count: u64,
    },
}

impl ServerEvent {
    /// The name of the event in JSON, for labels: `resource_updated`, `log` and so on.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ResourceUpdated { .. } => "resource_updated",
            Self::Log(_) => "log",
            Self::ElicitationComplete { .. } => "elicitation_complete",
            Self::ListChanged { .. } => "list_changed",
            Self::TaskStatus { .. } => "task_status",
            Self::Other { .. } => "other",
            Self::Missed { .. } => "missed",
        }
    }
}

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ListKind {
    /// Its tools.
    Tools,
    /// Its resources and resource templates.
    Resources,
    /// Its prompts.
    Prompts,
}

/// A log message of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogMessage {
    /// Its severity.
    pub level: LogLevel,
    /// The component of the server that logged it.
    pub logger: Option<String>,
    /// The logged value: a string or any other JSON.
    pub data: Value,
    /// The id of the call that it belongs to, if the server sent it on the response stream of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// A stream of one server's events, from the time of subscription on. It survives restarts of the server.
///
/// A view with a principal gets log messages and unknown notifications only if they belong to its own calls, or if no other principal has used the
/// connection.
pub struct ServerEvents {
    stream: BroadcastStream<PublishedEvent>,
    /// Selects the tasks whose reports are part of the stream, by id. Without it there are none.
    has_task: Option<Arc<TaskSelector>>,
    /// The principal of the subscriber, which does not get the events of others.
    principal: Option<Principal>,
}

/// Returns whether the task with this id is selected.
type TaskSelector = dyn Fn(&str) -> bool + Send + Sync;

impl fmt::Debug for ServerEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEvents").finish_non_exhaustive()
    }
}

/// An event in the broadcast channel.
#[derive(Clone)]
pub(super) struct PublishedEvent {
    pub(super) event: Arc<ServerEvent>,
    /// The URI of the updated resource as the server sent it; the event shows it masked.
    pub(super) raw_uri: Option<Arc<str>>,
    pub(super) audience: Audience,
}

/// Who may read an event. Subscribers without a principal read all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Audience {
    /// Every subscriber.
    All,
    /// The principal whose call it belongs to, or who alone has used the connection.
    Principal(Principal),
    /// It may belong to any of several principals.
    Unknown,
}

impl From<ServerEvent> for PublishedEvent {
    fn from(event: ServerEvent) -> Self {
        Self {
            event: Arc::new(event),
            raw_uri: None,
            audience: Audience::All,
        }
    }
}

impl ServerEvents {
    pub(super) fn new(receiver: broadcast::Receiver<PublishedEvent>) -> Self {
        Self {
            stream: BroadcastStream::new(receiver),
            has_task: None,
            principal: None,
        }
    }

    /// Leaves out the events that may belong to other principals. Without a principal, all are read.
    #[doc(hidden)]
    pub fn with_principal(mut self, principal: Option<Principal>) -> Self {
        self.principal = principal;
        self
    }

    fn may_read(&self, published: &PublishedEvent) -> bool {
        match (&self.principal, &published.audience) {
            (None, _) | (_, Audience::All) => true,
            (Some(ours), Audience::Principal(theirs)) => ours == theirs,
            (Some(_), Audience::Unknown) => false,
        }
    }

    /// Adds the reports about the tasks that `has_task` selects by id.
    #[doc(hidden)]
    pub fn with_tasks(mut self, has_task: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.has_task = Some(Arc::new(has_task));
        self
    }

    /// Waits for the next event. Returns `None` once the server is removed. This method is cancel safe.
    pub async fn next(&mut self) -> Option<Arc<ServerEvent>> {
        self.next_published().await.map(|published| published.event)
    }

    pub(super) async fn next_published(&mut self) -> Option<PublishedEvent> {
        poll_fn(|context| self.poll_published(context)).await
    }

    fn poll_published(&mut self, context: &mut Context<'_>) -> Poll<Option<PublishedEvent>> {
        loop {
            let Some(item) = ready!(self.stream.poll(context)) else {
                return Poll::Ready(None);
            };
            let published: PublishedEvent = item.unwrap_or_else(|count| ServerEvent::Missed { count }.into());
            let is_seen = match &*published.event {
                ServerEvent::TaskStatus { id, .. } => self.has_task.as_ref().is_some_and(|has_task| has_task(id)),
                _ => true,
            };
            if is_seen && self.may_read(&published) {
                return Poll::Ready(Some(published));
            }
        }
    }
}

impl Stream for ServerEvents {
    type Item = Arc<ServerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_published(context)
            .map(|published| published.map(|published| published.event))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn what_may_belong_to_another_principal_is_left_out() {
        let sender = broadcast::Sender::new(4);
        let events = |principal: Option<&str>| {
            let principal = principal.map(Principal::new);
            ServerEvents::new(sender.subscribe()).with_principal(principal)
        };
        let streams = [events(Some("ada")), events(Some("bob")), events(None)];
        let of_ada = Audience::Principal(Principal::new("ada"));
        for audience in [Audience::All, of_ada, Audience::Unknown] {
            let event = ServerEvent::ElicitationComplete { id: "a".into() };
            let _ = sender.send(PublishedEvent {
                audience,
                ..event.into()
            });
        }
        drop(sender);
        let mut counts = Vec::new();
        for stream in streams {
            counts.push(stream.count().await);
        }
        assert_eq!(counts, [2, 1, 3]);
    }

    #[tokio::test]
    async fn a_slow_reader_gets_the_number_of_missed_events_first() {
        let event = |id: &str| ServerEvent::ElicitationComplete { id: id.to_owned() };
        let sender = broadcast::Sender::new(2);
        let events = ServerEvents::new(sender.subscribe());
        for id in ["a", "b", "c"] {
            let _ = sender.send(event(id).into());
        }
        drop(sender);
        let stream: Vec<_> = events.map(|event| (*event).clone()).collect().await;
        assert_eq!(stream, [ServerEvent::Missed { count: 1 }, event("b"), event("c")]);
    }
}
