//! The stream of one server's events. It is bounded: a slow reader misses the oldest events and gets [`ServerEvent::Missed`].

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;

use super::log_level::LogLevel;
use crate::sync::BroadcastStream;

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
            Self::Missed { .. } => "missed",
        }
    }
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
}

/// A stream of one server's events, from the time of subscription on. It survives restarts of the server.
#[derive(Debug)]
pub struct ServerEvents {
    stream: BroadcastStream<PublishedEvent>,
}

/// An event in the broadcast channel.
#[derive(Clone)]
pub(super) struct PublishedEvent {
    pub(super) event: Arc<ServerEvent>,
    /// The URI of the updated resource as the server sent it; the event shows it masked.
    pub(super) raw_uri: Option<Arc<str>>,
}

impl From<ServerEvent> for PublishedEvent {
    fn from(event: ServerEvent) -> Self {
        Self {
            event: Arc::new(event),
            raw_uri: None,
        }
    }
}

impl ServerEvents {
    pub(super) fn new(receiver: broadcast::Receiver<PublishedEvent>) -> Self {
        Self {
            stream: BroadcastStream::new(receiver),
        }
    }

    /// Waits for the next event. Returns `None` once the server is removed. This method is cancel safe.
    pub async fn next(&mut self) -> Option<Arc<ServerEvent>> {
        self.next_published().await.map(|published| published.event)
    }

    pub(super) async fn next_published(&mut self) -> Option<PublishedEvent> {
        poll_fn(|context| self.poll_published(context)).await
    }

    fn poll_published(&mut self, context: &mut Context<'_>) -> Poll<Option<PublishedEvent>> {
        let received = self.stream.poll(context);
        received.map(|item| item.map(|event| event.unwrap_or_else(|count| ServerEvent::Missed { count }.into())))
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
