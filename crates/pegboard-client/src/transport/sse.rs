//! The HTTP+SSE transport of protocol version 2024-11-05: one event stream carries incoming messages and names the URL that outgoing messages
//! are posted to.

use pegboard_base::BoxFuture;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use pegboard_http::{Response, Target};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    byte_budget::{self, FREE_BYTES, NoRoom, Quota, ReadPermit},
    connection_credentials::ConnectionCredentials,
    delivery::{Delivery, Sent},
    dial_error::DialError,
    http_client::{self, HttpClient, InSession, MediaType, mcp_headers},
    outgoing::{Envelope, Outgoing},
    request_failure::{ConnectFault, FailureKind, WireFailure},
    sse_parser::{Event, Parser},
    trim_text,
    wire::{Inbox, Wire},
    wire_end::{EndReason, WireEnd},
};
use pegboard_config::{Endpoint, Limits};

/// A wire over HTTP+SSE.
pub(super) struct Sse {
    shared: Arc<SseShared>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Tasks that send messages without a response. They are flushed on close.
    notifications: TaskTracker,
}

/// The state that the wire shares with its tasks.
struct SseShared {
    client: HttpClient,
    inbox: Arc<dyn Inbox>,
    /// Bounds the bytes of requests.
    outgoing: Quota,
    /// The URL to post messages to, once the stream has named it.
    address: watch::Sender<Option<Result<Arc<Target>, WireFailure>>>,
    /// The negotiated protocol version, for our responses to the server's requests.
    version: OnceLock<Arc<str>>,
}

impl Sse {
    /// Opens the stream and waits until it has named the URL to post messages to.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        limits: &Limits,
        credentials: Option<ConnectionCredentials>,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, DialError> {
        let client = HttpClient::new(endpoint, limits, credentials).await?;
        let opening = async {
            let response = client.get_stream(client.endpoint(), HeaderMap::new()).await?;
            if !response.status().is_success() {
                return Err(http_client::status_failure(response, InSession::No).await);
            }
            match MediaType::from_response(&response) {
                MediaType::Events => {}
                other => return Err(http_client::unexpected_type(other, "an event stream", response).await),
            }
            let (address, mut named) = watch::channel(None);
            let wire = Self {
                shared: Arc::new(SseShared {
                    client,
                    outgoing: inbox.budget().quota(limits.max_message),
                    inbox,
                    address,
                    version: OnceLock::new(),
                }),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
                notifications: TaskTracker::new(),
            };
            wire.tasks
                .spawn(wire.shared.clone().listen(response, wire.stop.clone()));
            // The wire holds the sender, so this cannot fail.
            let _ = named.wait_for(Option::is_some).await;
            let refused = match &*named.borrow() {
                Some(Err(failure)) => Some(failure.clone()),
                _ => None,
            };
            refused.map_or(Ok(wire), Err)
        };
        let opened = tokio::time::timeout(limits.connect_timeout, opening).await;
        let late = |_| {
            let text = "the event stream did not name an address for messages in time";
            WireFailure::new(FailureKind::Connect(ConnectFault::Timeout), Sent::No, text)
        };
        Ok(opened.map_err(late)??)
    }
}

impl Wire for Sse {
    fn send(&self, message: Outgoing) {
        let (shared, stop) = (self.shared.clone(), self.stop.clone());
        let tasks = match message.id {
            Some(_) => &self.tasks,
            None => &self.notifications,
        };
        tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = http_client::with_accept_timeout(message.id, shared.post(message)) => {}
            }
        });
    }

    fn on_established(&self, envelope: &Envelope) -> BoxFuture<'static, ()> {
        if let Some(version) = &envelope.version {
            self.shared.version.get_or_init(|| version.clone());
        }
        Box::pin(std::future::ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            http_client::flush(&self.notifications).await;
            self.stop.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl SseShared {
    async fn post(&self, message: Outgoing) {
        let address = match &*self.address.borrow() {
            Some(Ok(address)) => Ok(address.clone()),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(WireFailure::new(
                FailureKind::ConnectionLost,
                Sent::No,
                "the event stream is not open",
            )),
        };
        let result = match address {
            Ok(address) => {
                self.post_to(&address, message.body, &message.delivery, message.envelope)
                    .await
            }
            Err(failure) => Err(failure),
        };
        let is_gone = matches!(&result, Err(failure) if failure.kind == FailureKind::SessionGone);
        if let (Some(id), Err(failure)) = (message.id, &result) {
            self.inbox.report_failure(id, failure.clone());
        }
        if let Some(taken) = message.taken {
            let _ = taken.send(result);
        }
        if is_gone {
            let text = "the server does not know our session any more";
            self.inbox
                .report_end(WireEnd::new(EndReason::Replaced(text.to_owned())));
        }
    }

    async fn post_to(
        &self,
        address: &Arc<Target>,
        body: Vec<u8>,
        delivery: &Arc<Delivery>,
        mut envelope: Envelope,
    ) -> Result<(), WireFailure> {
        let permit = self
            .outgoing
            .try_acquire(if body.len() > FREE_BYTES { body.len() } else { 0 });
        let _permit = permit.map_err(|no_room| WireFailure::new(FailureKind::Busy, Sent::No, no_room.to_string()))?;
        envelope.version = envelope.version.or_else(|| self.version.get().cloned());
        let headers = mcp_headers(&envelope, None);
        let response = self.client.post(address, headers, body, delivery).await?;
        if response.status().is_success() {
            response.finish();
            Ok(())
        } else {
            Err(http_client::status_failure(response, self.client.in_session()).await)
        }
    }

    /// Reads the stream until it ends or the wire is closed, and reports why.
    async fn listen(self: Arc<Self>, response: Response, stop: CancellationToken) {
        let reason = tokio::select! {
            biased;
            () = stop.cancelled() => EndReason::Closed,
            reason = self.read(response) => reason,
        };
        let text = format!("the event stream ended before it named an address: {reason}");
        self.address.send_if_modified(|address| {
            let is_new = address.is_none();
            address.get_or_insert_with(|| Err(WireFailure::new(FailureKind::Protocol, Sent::No, text)));
            is_new
        });
        self.inbox.report_end(WireEnd::new(reason));
    }

    async fn read(&self, mut response: Response) -> EndReason {
        let limit = self.client.limit();
        let mut parser = Parser::lenient(limit);
        let mut permit = ReadPermit::new(self.inbox.budget().quota(limit));
        // Set while an event that got no permit is skipped.
        let mut refused = None;
        loop {
            match tokio::time::timeout(byte_budget::CHECK_INTERVAL, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    let handle = |event| self.handle_event(event, &mut permit, refused.take());
                    if parser.feed(&chunk, handle).is_err() {
                        return EndReason::Protocol(format!("an event has no end after {limit} bytes"));
                    }
                }
                Ok(Ok(None)) => return EndReason::Eof,
                Ok(Err(error)) => return EndReason::Broken(http_client::request_failure(&error).message),
                // Falls through to `reserve`, which checks how long the event has held its permit.
                Err(_) => {}
            }
            if let Err(no_room) = permit.reserve(parser.held_bytes(), limit).await {
                permit.release();
                parser.skip();
                refused = Some(no_room);
            }
        }
    }

    fn handle_event(&self, event: Event, permit: &mut ReadPermit, refused: Option<NoRoom>) {
        if let Some(end) = &event.end {
            permit.release();
            return match refused {
                Some(no_room) => self.inbox.no_room(&event.data, end, no_room),
                None => self.inbox.too_long(&event.data, end, self.client.limit()),
            };
        }
        match event.name.as_str() {
            "endpoint" => {
                let named = self.check_address(&String::from_utf8_lossy(&event.data));
                self.address.send_replace(Some(named));
            }
            "" | "message" => {
                let data = trim_text::trim_start(permit.complete(event.data.into()));
                if !data.is_empty() {
                    self.inbox.message(data);
                }
            }
            _ => {}
        }
    }

    /// Resolves the URL to post messages to. It must have the origin of the stream, because our credentials are sent there.
    fn check_address(&self, text: &str) -> Result<Arc<Target>, WireFailure> {
        let refused = |text: String| WireFailure::new(FailureKind::Protocol, Sent::No, text);
        let here = self.client.endpoint().url();
        let address = here
            .join(text.trim())
            .map_err(|error| refused(format!("the address for messages is no URL: {error}")))?;
        if address.origin() != here.origin() {
            let other = address.origin().ascii_serialization();
            return Err(refused(format!(
                "the address for messages lies elsewhere, at {other}; nothing is sent there"
            )));
        }
        let target = Target::new(address).map_err(|error| refused(error.to_string()))?;
        Ok(Arc::new(target))
    }
}
