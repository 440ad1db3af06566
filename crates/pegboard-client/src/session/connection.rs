//! [`RpcConnection`]: a JSON-RPC connection to a server. It sends requests and notifications, and cancels requests that are dropped.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pegboard_protocol::{
    Version,
    method::{self, notification},
};
use tokio::{sync::oneshot, time::Instant};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{
    dispatch::Dispatcher,
    fault::{Fault, FaultKind},
    host::{self, Offers},
    json_rpc::{self, Meta, Params},
    modern_meta::ModernMeta,
    patience::Patience,
    pending_requests::{ExceededLimit, ResponseReceiver},
    request::Request,
    request_log_level::RequestLogLevel,
    response::Response,
    trace,
};
use crate::transport::{Delivery, Envelope, ModernEnvelope, Outgoing, Sent, Wire, WireFailure};

/// How long a server may take to accept a notification.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(10);

/// A wire, the dispatcher of its inbound messages, and the task that responds to the server's requests.
pub(crate) struct RpcConnection {
    dispatcher: Arc<Dispatcher>,
    wire: Arc<dyn Wire>,
    framing: Framing,
    log_level: RequestLogLevel,
    /// Runs the close of the wire if the connection is dropped without having been closed.
    tasks: TaskTracker,
    is_closed: AtomicBool,
    _responding: AbortOnDropHandle<()>,
}

/// The parts of every message that depend on the era.
#[derive(Debug, Clone, Default)]
pub(super) struct Framing {
    pub(super) version: Option<Arc<str>>,
    /// Set only in the era without a handshake.
    pub(super) modern_meta: Option<Arc<ModernMeta>>,
}

impl Framing {
    /// The fields of `_meta` in every message, as JSON without braces, with the capabilities of the caller's host.
    fn meta(&self, offers: Option<Offers>) -> &str {
        self.modern_meta.as_deref().map_or("", |meta| meta.text(offers))
    }

    /// The fields of `_meta` for a request, and the capabilities in it if they are not part of these.
    fn meta_for<'a>(&'a self, request: &Request<'a>) -> (&'a str, &'a str) {
        match (self.modern_meta.as_deref(), request.capabilities) {
            (Some(meta), Some(capabilities)) => (meta.text_without_capabilities(), capabilities.get()),
            _ => (self.meta(request.offers), ""),
        }
    }

    fn envelope(&self, request: &Request<'_>) -> Envelope {
        Envelope {
            version: self.version.clone(),
            modern: self.modern_meta.as_ref().map(|_| ModernEnvelope {
                method: request.method.clone(),
                name: request.name.map(str::to_owned),
                params: request.mirrored.to_vec(),
            }),
        }
    }
}

impl RpcConnection {
    /// Spawns the task that responds to the server's requests.
    pub(super) fn new(
        dispatcher: Arc<Dispatcher>,
        wire: Arc<dyn Wire>,
        responding: host::ResponderTask,
        tasks: &TaskTracker,
    ) -> Self {
        let responding = tokio::spawn(responding.run(wire.clone()));
        Self {
            dispatcher,
            wire,
            framing: Framing::default(),
            log_level: RequestLogLevel::default(),
            tasks: tasks.clone(),
            is_closed: AtomicBool::new(false),
            _responding: AbortOnDropHandle::new(responding),
        }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    pub(super) fn wire(&self) -> &Arc<dyn Wire> {
        &self.wire
    }

    pub(super) fn set_framing(&mut self, framing: Framing) {
        self.dispatcher.rules().accept_requests(framing.modern_meta.is_none());
        let version = framing.version.as_deref().and_then(Version::parse);
        self.dispatcher
            .rules()
            .accept_batches(version.is_some_and(Version::has_batches));
        self.framing = framing;
    }

    /// Sends a request and waits for its result. Dropping the future cancels the request.
    pub(super) async fn request(&self, request: Request<'_>, patience: Patience) -> Result<Bytes, Fault> {
        self.send_request(&request, |_| ())?.response(patience).await?.result()
    }

    /// Sends a request of another era than the connection's, and waits for its result.
    pub(super) async fn request_in(
        &self,
        framing: &Framing,
        request: Request<'_>,
        patience: Patience,
    ) -> Result<Bytes, Fault> {
        self.send_framed(framing, &request, |_| ())?
            .response(patience)
            .await?
            .result()
    }

    /// Sends a request. `registered` gets its id before the server can know it. Dropping the returned value before the response has come
    /// cancels the request.
    pub(super) fn send_request(
        &self,
        request: &Request<'_>,
        registered: impl FnOnce(u64),
    ) -> Result<InFlight<'_>, Fault> {
        self.send_framed(&self.framing, request, registered)
    }

    fn send_framed(
        &self,
        framing: &Framing,
        request: &Request<'_>,
        registered: impl FnOnce(u64),
    ) -> Result<InFlight<'_>, Fault> {
        let receiver = self
            .dispatcher
            .pending_requests()
            .register_for(request.owner.cloned())?;
        if request.method == method::SUBSCRIPTIONS_LISTEN {
            self.dispatcher.pending_requests().mark_stream(receiver.id);
        }
        registered(receiver.id);
        let in_flight = InFlight {
            connection: self,
            is_cancellable: request.method != method::INITIALIZE,
            is_open: true,
            started: Instant::now(),
            receiver,
        };
        self.write_request(framing, &in_flight.receiver, request);
        Ok(in_flight)
    }

    /// Sends a request and ignores its response. Returns its id, or `None` if the connection has ended.
    pub(super) fn send_and_forget(&self, request: &Request<'_>) -> Option<u64> {
        let receiver = self.dispatcher.pending_requests().register_for(None).ok()?;
        self.write_request(&self.framing, &receiver, request);
        self.dispatcher.pending_requests().remove(receiver.id);
        Some(receiver.id)
    }

    fn write_request(&self, framing: &Framing, receiver: &ResponseReceiver, request: &Request<'_>) {
        let level = self.log_level.get();
        let (common, capabilities) = framing.meta_for(request);
        let meta = Meta {
            common,
            capabilities,
            log_level: level.as_deref().unwrap_or_default(),
            extra: request.meta,
            progress_token: request.takes_progress.then_some(receiver.id),
        };
        let body = json_rpc::request(receiver.id, &request.method, &request.params, meta);
        self.trace(&body);
        self.wire.send(Outgoing {
            body,
            id: Some(receiver.id),
            delivery: receiver.delivery.clone(),
            envelope: framing.envelope(request),
            taken: None,
        });
    }

    fn trace(&self, message: &[u8]) {
        if trace::is_enabled() {
            trace::log_sent(self.dispatcher.server_name(), self.dispatcher.masker(), message);
        }
    }

    /// The log level in the `_meta` of every request.
    pub(super) fn log_level(&self) -> &RequestLogLevel {
        &self.log_level
    }

    /// Sends a notification and waits until the server has accepted it.
    pub(super) async fn notify(&self, method: &'static str, params: Params) -> Result<(), Fault> {
        let (taken, accepted) = oneshot::channel();
        self.send_notification(method, &params, Some(taken));
        match tokio::time::timeout(NOTIFICATION_TIMEOUT, accepted).await {
            Ok(Ok(result)) => result.map_err(Fault::from),
            Ok(Err(_)) => Ok(()),
            Err(_) => Err(Fault {
                kind: FaultKind::TimedOut {
                    waited: NOTIFICATION_TIMEOUT,
                    idle: false,
                    last_words: None,
                },
                sent: Sent::Maybe,
            }),
        }
    }

    fn send_notification(
        &self,
        method: &'static str,
        params: &Params,
        taken: Option<oneshot::Sender<Result<(), WireFailure>>>,
    ) {
        let meta = Meta {
            common: self.framing.meta(None),
            capabilities: "",
            log_level: "",
            extra: "",
            progress_token: None,
        };
        let body = json_rpc::notification(method, params, meta);
        self.trace(&body);
        self.wire.send(Outgoing {
            body,
            id: None,
            delivery: Arc::new(Delivery::default()),
            envelope: self.envelope(&Request::new(method, Params::default())),
            taken,
        });
    }

    pub(super) fn envelope(&self, request: &Request<'_>) -> Envelope {
        self.framing.envelope(request)
    }

    /// Closes the wire, and waits until its tasks and processes have ended.
    pub(super) async fn close(&self) {
        self.wire.close().await;
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Drop for RpcConnection {
    /// Closes the wire in the background, so that a cancelled start leaves no orphaned process.
    fn drop(&mut self) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        // Without a runtime, dropping the wire ends its tasks and processes.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let wire = self.wire.clone();
            self.tasks.spawn_on(async move { wire.close().await }, &runtime);
        }
    }
}

impl fmt::Debug for RpcConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcConnection")
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}

/// A request in flight. Dropping it before the response has come cancels the request.
pub(super) struct InFlight<'a> {
    connection: &'a RpcConnection,
    receiver: ResponseReceiver,
    started: Instant,
    is_cancellable: bool,
    /// Whether the request still waits for its response.
    is_open: bool,
}

impl InFlight<'_> {
    /// Waits for the response, and leaves its result unparsed.
    pub(super) async fn response(&mut self, patience: Patience) -> Result<Response, Fault> {
        match self.receiver.receive(patience.idle, patience.total.instant()).await {
            Ok(response) => {
                self.is_open = false;
                response
            }
            Err(limit) => Err(self.timeout_fault(limit, patience)),
        }
    }

    fn timeout_fault(&mut self, limit: ExceededLimit, patience: Patience) -> Fault {
        let connection = self.connection;
        let kind = FaultKind::TimedOut {
            waited: match limit {
                ExceededLimit::Idle => patience.idle,
                ExceededLimit::Total => self.started.elapsed(),
            },
            idle: limit == ExceededLimit::Idle,
            last_words: connection
                .wire
                .recent_output()
                .map(|words| connection.dispatcher.masker().text(&words).into_owned()),
        };
        // Cancelled first: until then the writer may still begin the message, and `sent` would not be final.
        self.cancel();
        Fault {
            kind,
            sent: self.receiver.delivery.sent(),
        }
    }

    fn cancel(&mut self) {
        let (connection, id) = (self.connection, self.receiver.id);
        self.is_open = false;
        let owner = connection.dispatcher.pending_requests().remove(id);
        let never_sent = self.receiver.delivery.abandon();
        let is_notified = connection.wire.abandon(id);
        if !never_sent && !is_notified && self.is_cancellable {
            let params = Params::default()
                .with("requestId", &id)
                .with("reason", "the caller gave up");
            connection.send_notification(notification::CANCELLED, &params, None);
        }
        if let Some(owner) = owner.filter(|owner| owner.is_private() && owner.request() == id) {
            if never_sent {
                owner.set_unsent();
            } else if let Some(probe) = connection.send_and_forget(&Request::new(method::PING, Params::default())) {
                owner.cancelled_before(probe);
            }
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.cancel();
        }
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
