//! An open wire with a desk at our end: requests go out, answers come back to those who asked, and giving up is told to the server.

mod in_flight;

pub(super) use in_flight::InFlight;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::{
    host,
    json_rpc::{self, Meta, Params},
    pending_requests::{PendingRequests, Place, Unanswered},
    request_log_level::Level,
    trace,
};
use crate::{
    deadline::Deadline,
    hint::Hint,
    mask::ServerMasker,
    transport::{
        Delivery, DialError, EndReason, Envelope, FailureKind, ModernEnvelope, Outgoing, RpcError, Sent, Wire, WireEnd,
        WireFailure,
    },
};

/// The only protocol version that has JSON-RPC batches.
const WITH_BATCHES: &str = "2025-03-26";

/// How long a server may take to accept a message that has no answer.
const NOTICE: Duration = Duration::from_secs(10);

/// An open wire, our desk at its end, and the task that answers the server's own requests.
pub(crate) struct RpcConnection {
    pending: Arc<PendingRequests>,
    wire: Arc<dyn Wire>,
    /// What every message of this session says about us.
    framing: Framing,
    log_level: Level,
    /// Where the end of the wire is waited for when the line is dropped without having been closed.
    tasks: TaskTracker,
    is_closed: AtomicBool,
    _answering: AbortOnDropHandle<()>,
}

/// How messages are dressed once the era is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Framing {
    pub(super) version: Option<Arc<str>>,
    /// Set in the era without handshake: the fields of `_meta` that every request carries.
    pub(super) modern_meta: Option<Arc<str>>,
}

/// A request to a server.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) params: Params,
    /// What it is about, where HTTP wants that in a header.
    pub(crate) name: Option<&'a str>,
    /// Arguments that HTTP repeats in headers.
    pub(crate) mirrored: &'a [(String, String)],
    /// Fields of `_meta` besides the protocol's own, as JSON without braces.
    pub(crate) meta: &'a str,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'static str, params: Params) -> Self {
        Self {
            method,
            params,
            name: None,
            mirrored: &[],
            meta: "",
        }
    }

    pub(crate) fn about(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Without a sign of life.
    pub(crate) idle: Duration,
    /// Altogether.
    pub(crate) total: Deadline,
}

impl Patience {
    /// Until `deadline`, whatever the server does meanwhile.
    pub(crate) fn until(deadline: Deadline) -> Self {
        Self {
            idle: Duration::from_secs(24 * 3600),
            total: deadline,
        }
    }
}

impl RpcConnection {
    pub(super) fn new(
        pending: Arc<PendingRequests>,
        wire: Arc<dyn Wire>,
        answering: host::Answering,
        tasks: &TaskTracker,
    ) -> Self {
        let task = tokio::spawn(answering.run(wire.clone()));
        Self {
            pending,
            wire,
            framing: Framing::default(),
            log_level: Level::default(),
            tasks: tasks.clone(),
            is_closed: AtomicBool::new(false),
            _answering: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn pending(&self) -> &Arc<PendingRequests> {
        &self.pending
    }

    pub(super) fn wire(&self) -> &Arc<dyn Wire> {
        &self.wire
    }

    pub(super) fn set_manner(&mut self, framing: Framing) {
        self.pending.expect_requests(framing.modern_meta.is_none());
        self.pending
            .expect_batches(framing.version.as_deref() == Some(WITH_BATCHES));
        self.framing = framing;
    }

    /// Sends a request and waits for its result. Dropping the future gives the request up and tells the server.
    pub(super) async fn request(&self, request: Request<'_>, patience: Patience) -> Result<Bytes, Fault> {
        Ok(self.ask(&request, |_| ())?.answer(patience).await?.proven()?)
    }

    /// Sends a request. `placed` gets its id before the server can know of it. Dropping what this returns before the answer has come gives
    /// the request up and tells the server.
    pub(super) fn ask(&self, request: &Request<'_>, placed: impl FnOnce(u64)) -> Result<InFlight<'_>, Fault> {
        let place = self.pending.place()?;
        if request.method == "subscriptions/listen" {
            self.pending.expect_stream(place.id);
        }
        placed(place.id);
        let pending = InFlight {
            connection: self,
            is_cancellable: request.method != "initialize",
            is_open: true,
            started: Instant::now(),
            place,
        };
        self.post(&pending.place, request);
        Ok(pending)
    }

    /// Sends a request whose answer nobody waits for.
    pub(super) fn fire(&self, request: &Request<'_>) {
        let Ok(place) = self.pending.place() else { return };
        self.post(&place, request);
        self.pending.leave(place.id);
    }

    fn post(&self, place: &Place, request: &Request<'_>) {
        let level = self.log_level.get();
        let meta = Meta {
            common: self.framing.modern_meta.as_deref().unwrap_or_default(),
            log_level: level.as_deref().unwrap_or_default(),
            extra: request.meta,
            progress_token: (request.method == "tools/call").then_some(place.id),
        };
        let body = json_rpc::request(place.id, request.method, &request.params, meta);
        self.trace(&body);
        self.wire.send(Outgoing {
            body,
            id: Some(place.id),
            delivery: place.delivery.clone(),
            envelope: self.envelope(request),
            taken: None,
        });
    }

    fn trace(&self, message: &[u8]) {
        if trace::is_wanted() {
            trace::sent(self.pending.server(), self.pending.masker(), message);
        }
    }

    /// The level from which on the server sends its log with the answers, where every request says so.
    pub(super) fn log_level(&self) -> &Level {
        &self.log_level
    }

    /// Sends a message that has no answer and waits until the server has taken it.
    pub(super) async fn notify(&self, method: &'static str, params: Params) -> Result<(), Fault> {
        let (taken, accepted) = oneshot::channel();
        self.send_notice(method, &params, Some(taken));
        match tokio::time::timeout(NOTICE, accepted).await {
            Ok(Ok(result)) => result.map_err(|failure| Unanswered::Wire(failure).into()),
            Ok(Err(_)) => Ok(()),
            Err(_) => Err(Fault {
                kind: FaultKind::TimedOut {
                    late_after: NOTICE,
                    idle: false,
                    last_words: None,
                },
                sent: Sent::Maybe,
            }),
        }
    }

    fn send_notice(
        &self,
        method: &'static str,
        params: &Params,
        taken: Option<oneshot::Sender<Result<(), WireFailure>>>,
    ) {
        let meta = Meta {
            common: self.framing.modern_meta.as_deref().unwrap_or_default(),
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
        Envelope {
            version: self.framing.version.clone(),
            modern: self.framing.modern_meta.as_ref().map(|_| ModernEnvelope {
                method: request.method,
                name: request.name.map(str::to_owned),
                params: request.mirrored.to_vec(),
            }),
        }
    }

    /// Ends the wire and waits until everything behind it is gone.
    pub(super) async fn close(&self) {
        self.wire.close().await;
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Drop for RpcConnection {
    /// A start that is given up must not leave a process that nobody waits for.
    fn drop(&mut self) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        // Without a runtime nothing can be waited for; the wire's own drop ends what is behind it.
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

/// Why a request failed, and whether it can have been carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) sent: Sent,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FaultKind {
    /// The server answered with an error.
    Error(RpcError),
    /// The request or its answer was lost on the way.
    Wire(WireFailure),
    /// The whole wire ended.
    Ended(WireEnd),
    /// No wire could be opened.
    Dial(DialError),
    /// A limit passed: without a sign of life, or altogether.
    TimedOut {
        late_after: Duration,
        idle: bool,
        /// What the server wrote instead.
        last_words: Option<String>,
    },
    /// The answer is not what the protocol says.
    Unreadable(String),
    /// The server speaks none of our protocol versions.
    NoVersion(String),
}

/// Errors with which a server proves that it did not run the request.
const REJECTING: &[i64] = &[-32700, -32600, -32601, -32020, -32021, -32022];

impl Fault {
    /// An answer that came, and that we cannot use.
    pub(super) fn unreadable(text: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Unreadable(text.into()),
            sent: Sent::Maybe,
        }
    }

    /// The words of the server in it masked.
    pub(super) fn hidden(mut self, masker: &ServerMasker) -> Self {
        match &mut self.kind {
            FaultKind::Error(error) => error.hide(masker),
            FaultKind::Wire(failure) => failure.hide(masker),
            FaultKind::Ended(end) => end.hide(masker),
            FaultKind::Dial(error) => error.hide(masker),
            FaultKind::TimedOut { last_words, .. } => masker.hide_in(last_words),
            FaultKind::Unreadable(text) | FaultKind::NoVersion(text) => masker.hide(text),
        }
        self
    }

    /// The error code when the server answered with an error.
    pub(crate) fn code(&self) -> Option<i64> {
        match &self.kind {
            FaultKind::Error(error) => Some(error.code),
            _ => None,
        }
    }

    pub(crate) fn is_unknown_method(&self) -> bool {
        self.code() == Some(-32601)
    }

    /// Whether it is a fault of the way to the server, as opposed to an answer of it; a web page in place of an answer is one. The end of a
    /// whole session is not: the supervisor sees to that.
    pub(crate) fn is_transport(&self) -> bool {
        match &self.kind {
            FaultKind::Wire(failure) => match failure.kind {
                FailureKind::Connect(_) | FailureKind::ConnectionLost | FailureKind::Protocol => true,
                FailureKind::Status { code, .. } => code >= 500,
                _ => false,
            },
            FaultKind::TimedOut { .. } => true,
            FaultKind::Ended(_)
            | FaultKind::Dial(_)
            | FaultKind::Error(_)
            | FaultKind::Unreadable(_)
            | FaultKind::NoVersion(_) => false,
        }
    }

    pub(crate) fn needs_auth(&self) -> bool {
        matches!(&self.kind, FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) if failure.kind == FailureKind::NeedsAuth)
    }
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Error(error) => Self {
                sent: if REJECTING.contains(&error.code) {
                    Sent::Rejected
                } else {
                    Sent::Maybe
                },
                kind: FaultKind::Error(error),
            },
            Unanswered::Unreadable(why) => Self::unreadable(why),
            Unanswered::Wire(failure) => Self {
                sent: failure.sent,
                kind: FaultKind::Wire(failure),
            },
            Unanswered::Ended { end, sent } => Self {
                sent,
                kind: FaultKind::Ended(end),
            },
        }
    }
}

impl From<DialError> for Fault {
    fn from(error: DialError) -> Self {
        Self {
            kind: FaultKind::Dial(error),
            sent: Sent::No,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::Error(error) => write!(f, "the server answered with error {}: {}", error.code, error.message),
            FaultKind::Wire(failure) => write!(f, "{failure}"),
            FaultKind::Ended(end) => {
                write!(f, "{}", end.reason)?;
                match &end.stderr {
                    Some(stderr) => write!(f, "; its last words were:\n{stderr}"),
                    None => Ok(()),
                }
            }
            FaultKind::Dial(error) => write!(f, "{error}"),
            FaultKind::TimedOut { late_after, idle, .. } => {
                let what = if *idle {
                    "no sign of life for"
                } else {
                    "no answer within"
                };
                write!(f, "{what} {}", seconds(*late_after))
            }
            FaultKind::Unreadable(text) => write!(f, "the answer cannot be used: {text}"),
            FaultKind::NoVersion(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl Hint for Fault {
    fn hint(&self) -> Option<String> {
        match &self.kind {
            FaultKind::Wire(failure) => failure.hint(),
            FaultKind::Dial(error) => error.hint(),
            FaultKind::Ended(end) => match &end.reason {
                EndReason::Exited(how) if how.contains("signal") => {
                    Some("somebody or the system killed it; it is started again by itself".to_owned())
                }
                EndReason::Exited(_) if end.stderr.is_none() => {
                    Some("the program ended without a word; run its command by hand to see why".to_owned())
                }
                EndReason::Exited(_) => Some("the server's own words above say why it ended".to_owned()),
                EndReason::Protocol(_) => {
                    Some("check that the command starts an MCP server and prints nothing else".to_owned())
                }
                EndReason::TooLarge(_) => Some("raise `max_message` of the server, or ask for less".to_owned()),
                EndReason::Stalled(_) => {
                    Some("the server hangs; raise `write_timeout` if it may be busy for so long".to_owned())
                }
                EndReason::Eof | EndReason::Broken(_) => {
                    Some("the server left; its own log may say why, and the next call reaches it anew".to_owned())
                }
                EndReason::Closed | EndReason::Replaced(_) => None,
            },
            FaultKind::TimedOut { idle: true, .. } => Some(
                "raise `call_timeout` of the server if it may be silent for so long, or let it report progress"
                    .to_owned(),
            ),
            FaultKind::TimedOut { .. } => {
                Some("allow the call more time, or raise `call_total_timeout` of the server".to_owned())
            }
            FaultKind::Unreadable(_) => {
                Some("the server breaks the protocol; look for a newer version of it".to_owned())
            }
            FaultKind::NoVersion(_) => {
                Some("update the server or pegboard, so that both speak the same protocol version".to_owned())
            }
            FaultKind::Error(_) => None,
        }
    }
}

/// A duration as people say it.
fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", (duration.as_secs_f64() * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
