//! HTTP+SSE, the transport of 2024-11-05: one stream of events in, a POST to an address that the stream names for each message out.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use reqwest::Response;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use super::{
    Boxed, ConnectFault, Delivery, DialError, EndReason, Envelope, FailureKind, Inbox, NoRoom, Outgoing, Sent, Wire,
    WireEnd, WireFailure,
    byte_budget::{self, Account, FLOOR, Growing},
    http::headers,
    http_client::{self, HttpClient, InSession, Media},
    remote,
    sse_parser::{Event, Parser},
};
use crate::config::{Endpoint, Limits};

/// A server behind an event stream.
pub(super) struct Sse {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Messages that no answer is waited for. They are let go last.
    notices: TaskTracker,
}

struct Shared {
    web: HttpClient,
    inbox: Arc<dyn Inbox>,
    /// What requests may take of the board's budget.
    outgoing: Account,
    /// Where messages go, once the stream has said so.
    address: watch::Sender<Option<Result<Url, WireFailure>>>,
    /// The version that was agreed on, for answers to the server's own requests.
    version: OnceLock<Arc<str>>,
}

impl Sse {
    /// Opens the stream and waits until it has named the address for messages.
    pub(super) async fn connect(
        endpoint: &Endpoint,
        limits: &Limits,
        inbox: Arc<dyn Inbox>,
    ) -> Result<Self, DialError> {
        let web = HttpClient::new(endpoint, limits).await?;
        let opening = async {
            let response = web.get_stream(web.url(), HeaderMap::new()).await?;
            if !response.status().is_success() {
                return Err(http_client::refusal(response, InSession::No).await);
            }
            match Media::of(&response) {
                Media::Events => {}
                other => return Err(http_client::wrong_kind(other, "an event stream", response).await),
            }
            let (address, mut named) = watch::channel(None);
            let wire = Self {
                shared: Arc::new(Shared {
                    web,
                    outgoing: inbox.budget().account(limits.message_bytes),
                    inbox,
                    address,
                    version: OnceLock::new(),
                }),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
                notices: TaskTracker::new(),
            };
            wire.tasks
                .spawn(wire.shared.clone().listen(response, wire.stop.clone()));
            // The sender lives in the wire, so this cannot fail.
            let _ = named.wait_for(Option::is_some).await;
            let refused = match &*named.borrow() {
                Some(Err(failure)) => Some(failure.clone()),
                _ => None,
            };
            refused.map_or(Ok(wire), Err)
        };
        let opened = tokio::time::timeout(limits.connect, opening).await;
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
            None => &self.notices,
        };
        tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = http_client::in_time(message.id, shared.post(message)) => {}
            }
        });
    }

    fn established(&self, envelope: &Envelope) -> Boxed<'static, ()> {
        if let Some(version) = &envelope.version {
            self.shared.version.get_or_init(|| version.clone());
        }
        Box::pin(std::future::ready(()))
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            http_client::farewell(&self.notices).await;
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

impl Shared {
    async fn post(&self, message: Outgoing) {
        let address = match &*self.address.borrow() {
            Some(Ok(address)) => Ok(address.clone()),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(WireFailure::new(
                FailureKind::Cut,
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
            self.inbox.failed(id, failure.clone());
        }
        if let Some(taken) = message.taken {
            let _ = taken.send(result);
        }
        if is_gone {
            let text = "the server does not know our session any more";
            self.inbox.ended(WireEnd::new(EndReason::Replaced(text.to_owned())));
        }
    }

    async fn post_to(
        &self,
        address: &Url,
        body: Vec<u8>,
        delivery: &Arc<Delivery>,
        mut envelope: Envelope,
    ) -> Result<(), WireFailure> {
        let share = self.outgoing.share_now(if body.len() > FLOOR { body.len() } else { 0 });
        let _share = share.map_err(|no_room| WireFailure::new(FailureKind::Busy, Sent::No, no_room.to_string()))?;
        envelope.version = envelope.version.or_else(|| self.version.get().cloned());
        let headers = headers::of(&envelope, None);
        let response = self.web.post(address, headers, body, delivery).await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(http_client::refusal(response, self.web.in_session()).await)
        }
    }

    /// Reads the stream to its end.
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
        self.inbox.ended(WireEnd::new(reason));
    }

    async fn read(&self, mut response: Response) -> EndReason {
        let limit = self.web.limit();
        let mut parser = Parser::lenient(limit);
        let mut growing = Growing::new(self.inbox.budget().account(limit));
        // Set while an event is skipped for which there is no room.
        let mut refused = None;
        loop {
            match tokio::time::timeout(byte_budget::LOOK, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    let hear = |event| self.hear(event, &mut growing, refused.take());
                    if parser.feed(&chunk, hear).is_err() {
                        return EndReason::Protocol(format!("an event has no end after {limit} bytes"));
                    }
                }
                Ok(Ok(None)) => return EndReason::Eof,
                Ok(Err(error)) => return EndReason::Broken(http_client::after_response(error).message),
                // Time to see whether the event has had its share for too long.
                Err(_) => {}
            }
            if let Err(no_room) = growing.make_room(parser.held(), limit).await {
                growing.let_go();
                parser.skip();
                refused = Some(no_room);
            }
        }
    }

    fn hear(&self, event: Event, growing: &mut Growing, refused: Option<NoRoom>) {
        if let Some(end) = &event.end {
            growing.let_go();
            return match refused {
                Some(no_room) => self.inbox.no_room(&event.data, end, no_room),
                None => self.inbox.too_long(&event.data, end, self.web.limit()),
            };
        }
        match event.name.as_str() {
            "endpoint" => {
                let named = self.check_address(&String::from_utf8_lossy(&event.data));
                self.address.send_replace(Some(named));
            }
            "" | "message" => {
                let data = remote::trimmed(growing.complete(event.data.into()));
                if !data.is_empty() {
                    self.inbox.message(data);
                }
            }
            _ => {}
        }
    }

    /// The address as a URL, which must lie where the stream came from: our credentials go there.
    fn check_address(&self, text: &str) -> Result<Url, WireFailure> {
        let refused = |text: String| WireFailure::new(FailureKind::Protocol, Sent::No, text);
        let address = self
            .web
            .url()
            .join(text.trim())
            .map_err(|error| refused(format!("the address for messages is no URL: {error}")))?;
        if address.origin() == self.web.url().origin() {
            Ok(address)
        } else {
            let other = address.origin().ascii_serialization();
            Err(refused(format!(
                "the address for messages lies elsewhere, at {other}; nothing is sent there"
            )))
        }
    }
}
