//! [`Service`]: answers the requests of clients, whatever their era and transport.

use std::{sync::Arc, time::Duration};

use futures_util::{future::BoxFuture, stream::BoxStream};
use pegboard::telemetry::Telemetry;
use pegboard_protocol::RpcError;
use serde_json::{Map, Value};

use super::{
    client::Client,
    exchange::Exchange,
    log_level::LogLevel,
    message::{Notification, Request},
    raw_result::{CacheScope, RawResult},
};

/// The answer to a request.
pub type Answer = Result<RawResult, RpcError>;

/// Answers the requests of clients. The handshake, `ping`, `server/discover`, `logging/setLevel`, `subscriptions/listen`,
/// cancellation, and which era means what are handled before a request reaches it.
pub trait Service: Send + Sync + 'static {
    /// Describes the service for `initialize` and `server/discover`.
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>>;

    /// Answers a request. Dropping the future cancels the request.
    ///
    /// `resources/subscribe` and `resources/unsubscribe` of legacy clients come here too, so that the service can refuse a resource
    /// that it does not know. The updates of one that it accepts are those that [`Service::listen`] streams for its URI.
    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer>;

    /// Takes a notification of a client that the protocol itself does not know, such as `notifications/roots/list_changed`.
    fn on_notification(&self, client: &Arc<Client>, notification: Notification) {
        let _ = (client, notification);
    }

    /// Takes note of a request that was refused because the client's token lacks a scope. `why` is what the client is told.
    fn note_refusal(&self, client: &Arc<Client>, request: &Request, why: &str) {
        let _ = (client, request, why);
    }

    /// What receives the spans of requests, if anything does.
    fn telemetry(&self) -> Option<Arc<dyn Telemetry>> {
        None
    }

    /// Streams events that belong to no request. A legacy client gets them on its general stream, a modern one on the stream of
    /// `subscriptions/listen`. The stream ends when it is dropped.
    fn listen(&self, client: &Arc<Client>, filter: Filter) -> BoxStream<'static, Event> {
        let _ = (client, filter);
        Box::pin(futures_util::stream::pending())
    }
}

/// What a service says about itself.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The capabilities, as the era of the client declares them.
    pub capabilities: Map<String, Value>,
    /// Name, version, title and so on.
    pub server_info: Map<String, Value>,
    /// How a model should use it.
    pub instructions: Option<String>,
    /// Further fields of the result, such as `_meta`.
    pub more: Map<String, Value>,
    /// How long and for whom a modern client may cache this; `None` means not at all.
    pub cache: Option<(Duration, CacheScope)>,
}

/// Which events a client wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each list is asked for on its own")]
#[non_exhaustive]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Updates of these resources.
    pub uris: Vec<String>,
    /// Everything else that a server sends by itself: log messages from the client's level on, status of tasks, notifications of
    /// extensions. Only legacy clients get them outside of requests.
    pub others: bool,
}

/// An event that belongs to no request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// A resource has changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
    },
    /// A log message. Those below the client's level are dropped.
    Log {
        /// Its severity.
        level: LogLevel,
        /// The params of `notifications/message`.
        params: Map<String, Value>,
    },
    /// Any other notification.
    Other {
        /// Its method.
        method: String,
        /// Its params.
        params: Map<String, Value>,
    },
}
