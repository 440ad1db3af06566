//! What servers tell without being asked, in a stream that never grows: whoever is slow misses the oldest and is told so.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast;

use super::desired_state::LogLevel;
use crate::sync::BroadcastStream;

/// What a server told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerEvent {
    /// A resource that somebody subscribed to may have changed.
    ResourceUpdated {
        /// Its address.
        uri: String,
    },
    /// A message of its log.
    Log(LogMessage),
    /// What a user was sent to a page for is done.
    ElicitationComplete {
        /// The id that the request had.
        id: String,
    },
    /// So many events came faster than they were taken, and are lost.
    Missed {
        /// How many.
        count: u64,
    },
}

/// One message of a server's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogMessage {
    /// How grave it is.
    pub level: LogLevel,
    /// The part of the server that it comes from.
    pub logger: Option<String>,
    /// What is said: a text, or anything else.
    pub data: Value,
}

/// The events of one server, from the moment this was made. It lasts over restarts of the server.
#[derive(Debug)]
pub struct ServerEvents {
    stream: BroadcastStream<Told>,
}

/// An event as it is passed on.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) event: Arc<ServerEvent>,
    /// The address of the resource that it is about, as the server writes it: the event may show another one.
    pub(super) address: Option<Arc<str>>,
}

impl From<ServerEvent> for Told {
    fn from(event: ServerEvent) -> Self {
        Self {
            event: Arc::new(event),
            address: None,
        }
    }
}

impl ServerEvents {
    pub(super) fn new(receiver: broadcast::Receiver<Told>) -> Self {
        Self {
            stream: BroadcastStream::new(receiver),
        }
    }

    /// The next event; nothing when the server is gone for good. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Arc<ServerEvent>> {
        self.told().await.map(|told| told.event)
    }

    pub(super) async fn told(&mut self) -> Option<Told> {
        poll_fn(|context| self.poll_told(context)).await
    }

    fn poll_told(&mut self, context: &mut Context<'_>) -> Poll<Option<Told>> {
        let stream = self.stream.poll(context);
        stream.map(|stream| stream.map(|told| told.unwrap_or_else(|count| ServerEvent::Missed { count }.into())))
    }
}

impl Stream for ServerEvents {
    type Item = Arc<ServerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_told(context).map(|told| told.map(|told| told.event))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn what_a_server_tells_is_a_stream() {
        let told = |id: &str| ServerEvent::ElicitationComplete { id: id.to_owned() };
        let sender = broadcast::Sender::new(2);
        let events = ServerEvents::new(sender.subscribe());
        for id in ["a", "b", "c"] {
            let _ = sender.send(told(id).into());
        }
        drop(sender);
        let stream: Vec<_> = events.map(|event| (*event).clone()).collect().await;
        assert_eq!(stream, [ServerEvent::Missed { count: 1 }, told("b"), told("c")]);
    }
}
