//! One wire to one server: whole messages out, whole messages in, and the truth about what became of each.
//!
//! A wire does not know what the messages mean. It hands what it hears to an [`Inbox`], in order and without a queue between.

mod byte_budget;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_client;
mod oversized;
mod pipe;
#[cfg(feature = "http")]
mod plain_http_client;
#[cfg(any(feature = "http", feature = "websocket"))]
mod remote;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "http")]
mod sse_parser;
mod stdio;
#[cfg(any(feature = "http", feature = "websocket"))]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
};

use crate::{
    catalog::ToolKind,
    config::{Limits, ServerConfig, Transport},
    hint::Hint,
    mask::{Counts, ServerMasker},
    name::ServerName,
    outcome,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

pub(crate) use byte_budget::{Budget, NoRoom};
#[cfg(feature = "http")]
pub(crate) use plain_http_client::{plain_client, prepare};
pub(crate) use stdio::SpawnError;

/// A future in a box, for traits that are used as objects.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens a wire. It returns as soon as messages can be sent: a stdio server has been spawned, a socket is connected; for HTTP nothing
/// has been asked of the server yet.
pub(crate) async fn dial(target: &Target, limits: &Limits, inbox: Arc<dyn Inbox>) -> Result<Box<dyn Wire>, DialError> {
    let transport = match target {
        Target::Configured(transport) => &**transport,
        Target::InProcess(dialer) | Target::StandIn(dialer) => {
            let (read, write) = dialer.dial();
            return Ok(Box::new(pipe::Attached::new(read, write, limits, inbox)));
        }
    };
    Ok(match transport {
        Transport::Stdio(command) => Box::new(stdio::Stdio::spawn(command, limits, inbox).await?),
        #[cfg(feature = "http")]
        Transport::Http(endpoint) | Transport::Auto(endpoint) => {
            Box::new(http::Http::new(endpoint, limits, inbox).await?)
        }
        #[cfg(feature = "sse")]
        Transport::Sse(endpoint) => Box::new(sse::Sse::connect(endpoint, limits, inbox).await?),
        #[cfg(feature = "websocket")]
        Transport::WebSocket(endpoint) => {
            // Boxed, because every start would carry room for its handshakes.
            Box::new(Box::pin(websocket::WebSocket::connect(endpoint, limits, inbox)).await?)
        }
        #[cfg_attr(
            all(feature = "sse", feature = "websocket"),
            expect(unreachable_patterns, reason = "every transport is built in")
        )]
        other => return Err(DialError::NotBuilt(other.kind())),
    })
}

/// Where a server is.
#[derive(Clone)]
pub(crate) enum Target {
    /// Where the config says.
    Configured(Box<Transport>),
    /// In this process.
    InProcess(Arc<dyn Dialer>),
    /// In this process, in place of where the config says.
    StandIn(Arc<dyn Dialer>),
}

/// Chooses what a configured server is reached through instead of its transport.
pub(crate) type StandIns = dyn Fn(&ServerName, &ServerConfig) -> Arc<dyn Dialer> + Send + Sync;

impl Target {
    /// Whose tools the server's are.
    pub(crate) fn tool_kind(&self) -> ToolKind {
        match self {
            Self::Configured(_) => ToolKind::Mcp,
            Self::InProcess(dialer) | Self::StandIn(dialer) => dialer.tool_kind(),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(transport) => transport.fmt(f),
            Self::InProcess(_) => f.write_str("InProcess"),
            Self::StandIn(_) => f.write_str("StandIn"),
        }
    }
}

/// Reaches a server that lives in this process. Each connection is a pair of byte streams that carry one JSON message per line.
pub trait Dialer: Send + Sync + 'static {
    /// Opens a new connection: what the server writes, and where it reads.
    fn dial(&self) -> (ByteSource, ByteSink);

    /// Whose tools it leads to: those of an MCP server, unless it says that they are this program's own.
    fn tool_kind(&self) -> ToolKind {
        ToolKind::Mcp
    }
}

/// What a server in this process writes.
pub type ByteSource = Box<dyn AsyncRead + Send + Unpin>;
/// Where a server in this process reads.
pub type ByteSink = Box<dyn AsyncWrite + Send + Unpin>;

impl<F> Dialer for F
where
    F: Fn() -> (ByteSource, ByteSink) + Send + Sync + 'static,
{
    fn dial(&self) -> (ByteSource, ByteSink) {
        self()
    }
}

/// One open wire.
pub(crate) trait Wire: Send + Sync {
    /// Takes a message in program order and returns at once. What becomes of it is told by its [`Delivery`] and the inbox.
    fn send(&self, message: Outgoing);

    /// Gives up waiting for an answer. `true` when the wire itself lets the server know, by closing that request's stream.
    fn abandon(&self, _id: u64) -> bool {
        false
    }

    /// The handshake is done; a wire that needs a stream of its own for the server's messages opens it now. The future ends when
    /// that stream is open, or will not be.
    fn established(&self, _envelope: &Envelope) -> Boxed<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends the wire and everything behind it. Its waits are bounded by the server's limits.
    fn close(&self) -> Boxed<'_, ()>;

    /// The process behind it.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// What a server that says nothing else has written: its error output, or a line without an end.
    fn last_words(&self) -> Option<String> {
        None
    }
}

/// The error with which a server says that the user must visit a page first.
pub(crate) const VISIT_FIRST: i64 = -32042;

/// Where a wire hands what it hears.
pub(crate) trait Inbox: Send + Sync + 'static {
    /// One whole message. Returns the id of our request that it answers.
    fn message(&self, message: Bytes) -> Option<u64>;

    /// One whole message from the response to our request `id`, which may answer no other request. Returns whether it answers `id`.
    fn message_for(&self, id: u64, message: Bytes) -> bool {
        self.message(message) == Some(id)
    }

    /// A message that was longer than allowed; `head` and `tail` are its first and last bytes.
    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize);

    /// A message for which there was no room beside those of other servers; `head` and `tail` are its first and last bytes.
    fn no_room(&self, head: &[u8], tail: &[u8], no_room: NoRoom) {
        self.too_long(head, tail, no_room.limit);
    }

    /// The budget for the messages of all connections.
    fn budget(&self) -> Budget {
        Budget::default()
    }

    /// Whether an answer to `id` is still wanted.
    fn waits_for(&self, id: u64) -> bool;

    /// The request `id` will have no answer.
    fn failed(&self, id: u64, failure: WireFailure);

    /// The wire is gone, and with it every answer that has not come.
    fn ended(&self, end: WireEnd);

    /// What the server wrote beside its messages, fit to be written down.
    fn shown(&self, text: &str) -> String {
        text.to_owned()
    }

    /// The name of the server, for logs.
    fn server(&self) -> &str {
        ""
    }
}

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message without a final newline.
    pub(crate) body: Vec<u8>,
    /// Our id for it when it is a request.
    pub(crate) id: Option<u64>,
    /// How far it has come.
    pub(crate) delivery: Arc<Delivery>,
    /// What HTTP says about it in headers.
    pub(crate) envelope: Envelope,
    /// Told once a message that has no answer was taken by the server, or not.
    pub(crate) taken: Option<oneshot::Sender<Result<(), WireFailure>>>,
}

/// What HTTP says about a message in headers. Other wires do not look at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Envelope {
    /// The protocol version, once agreed on.
    pub(crate) version: Option<Arc<str>>,
    /// Set in the era without handshake: the method, and the name of what it is about.
    pub(crate) modern: Option<ModernEnvelope>,
}

#[derive(Debug, Clone)]
pub(crate) struct ModernEnvelope {
    pub(crate) method: &'static str,
    pub(crate) name: Option<String>,
    /// Arguments repeated as `Mcp-Param-…`.
    pub(crate) params: Vec<(String, String)>,
}

/// How far a message has come. The writer and the one who gives up agree on it without a lock.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    stage: AtomicU8,
    /// When its receiver last showed a sign of life, on a clock of whoever waits for the answer.
    alive_at: AtomicU64,
}

impl Delivery {
    const QUEUED: u8 = 0;
    const WRITING: u8 = 1;
    const SENT: u8 = 2;
    const ABANDONED: u8 = 3;

    /// A message whose receiver is alive at this time.
    pub(crate) fn alive_at(time: u64) -> Self {
        Self {
            stage: AtomicU8::new(Self::QUEUED),
            alive_at: AtomicU64::new(time),
        }
    }

    /// Its receiver shows a sign of life.
    pub(crate) fn note_life(&self, time: u64) {
        self.alive_at.store(time, Ordering::Relaxed);
    }

    /// When its receiver last showed a sign of life.
    pub(crate) fn last_life(&self) -> u64 {
        self.alive_at.load(Ordering::Relaxed)
    }

    /// The writer takes it; `false` when it was given up before.
    pub(crate) fn begin(&self) -> bool {
        self.step(Self::QUEUED, Self::WRITING)
    }

    /// The last byte has left us.
    pub(crate) fn done(&self) {
        self.stage.store(Self::SENT, Ordering::Release);
    }

    /// The last byte has not left us, so no server can have read the message.
    pub(crate) fn undo(&self) {
        self.step(Self::WRITING, Self::QUEUED);
    }

    /// Gives it up; `true` when no byte of it will be written.
    pub(crate) fn abandon(&self) -> bool {
        self.step(Self::QUEUED, Self::ABANDONED)
    }

    /// What is known about it when its answer does not come.
    pub(crate) fn sent(&self) -> Sent {
        match self.stage.load(Ordering::Acquire) {
            Self::QUEUED | Self::ABANDONED => Sent::No,
            _ => Sent::Maybe,
        }
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.stage
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Whether a request can have been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// No complete request left us.
    No,
    /// The server proved that it did not run it.
    Rejected,
    /// It left us, and nobody knows.
    Maybe,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireFailure {
    pub(crate) kind: FailureKind,
    pub(crate) sent: Sent,
    pub(crate) message: String,
}

impl WireFailure {
    pub(crate) fn new(kind: FailureKind, sent: Sent, message: impl Into<String>) -> Self {
        Self {
            kind,
            sent,
            message: message.into(),
        }
    }
}

impl WireFailure {
    /// Masks the words of the server that are in it.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        masker.hide(&mut self.message);
        if let FailureKind::Rpc(error) = &mut self.kind {
            error.hide(masker);
        }
    }
}

impl RpcError {
    /// Whether it has more bytes of text than `limit`.
    pub(crate) fn is_longer_than(&self, limit: usize) -> bool {
        let is_long = |data| outcome::is_longer_than(data, limit);
        self.message.len() > limit || self.data.as_ref().is_some_and(is_long)
    }

    /// Masks the words of the server that are in it.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        // Once is enough, and it may be megabytes long.
        if self.masked.is_some() {
            return;
        }
        let masker = masker.current();
        let counts = self.masked.insert(Box::default());
        masker.mask(&mut self.message, counts);
        // Pages to visit are masked when they are shown: their addresses are of no use otherwise.
        if let Some(data) = &mut self.data
            && self.code != VISIT_FIRST
        {
            masker.mask_value(data, counts);
        }
    }
}

impl DialError {
    /// Masks the words of the server that are in it.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        match self {
            Self::Tls(text) | Self::Setting(text) => masker.hide(text),
            Self::Failed(failure) => failure.hide(masker),
            Self::Spawn(_) | Self::NotBuilt(_) => {}
        }
    }
}

impl fmt::Display for WireFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WireFailure {}

/// What kind of thing went wrong with a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FailureKind {
    /// No connection.
    Connect(ConnectFault),
    /// The connection ended before the answer.
    Cut,
    /// The answer is larger than allowed.
    TooLarge,
    /// There is no room for the answer beside the messages of other servers.
    NoRoom,
    /// The answer is not what the protocol says.
    Protocol,
    /// The server wants to know who we are.
    NeedsAuth,
    /// The server does not know our session any more.
    SessionGone,
    /// The server answered with an error of the protocol, outside of a normal answer.
    Rpc(RpcError),
    /// Another HTTP status.
    Status { code: u16, retry_after: Option<Duration> },
    /// More messages wait to be written than we keep.
    Busy,
}

/// An error as JSON-RPC writes it.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) data: Option<serde_json::Value>,
    /// What was hidden in it, once the words of the server in it are masked.
    #[serde(skip)]
    pub(crate) masked: Option<Box<Counts>>,
}

/// What kept us from connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectFault {
    Refused,
    Dns,
    Timeout,
    Tls,
    Redirect,
    Other,
}

/// How a wire ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireEnd {
    pub(crate) reason: EndReason,
    /// The end of the process's error output.
    pub(crate) stderr: Option<String>,
}

impl WireEnd {
    pub(crate) fn new(reason: EndReason) -> Self {
        Self { reason, stderr: None }
    }

    /// Masks the words of the server that are in it.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        masker.hide_in(&mut self.stderr);
        match &mut self.reason {
            EndReason::Exited(text)
            | EndReason::Broken(text)
            | EndReason::Protocol(text)
            | EndReason::Replaced(text) => masker.hide(text),
            EndReason::Closed | EndReason::Eof | EndReason::Stalled(_) | EndReason::TooLarge(_) => {}
        }
    }
}

/// Why a wire ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum EndReason {
    #[error("it was closed")]
    Closed,
    #[error("the server closed its output")]
    Eof,
    #[error("the server's process ended: {0}")]
    Exited(String),
    #[error("the connection failed: {0}")]
    Broken(String),
    #[error("the server did not read its input for {} s", .0.as_secs())]
    Stalled(Duration),
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// A message that is larger than the limit, on a wire that cannot skip it.
    #[cfg_attr(
        all(feature = "http", not(feature = "websocket")),
        expect(dead_code, reason = "only a WebSocket cannot skip a message")
    )]
    #[error("the server sent a message larger than {0} bytes, the limit that `max_message` sets")]
    TooLarge(usize),
    /// We gave the session up for a new one, though the wire still held.
    #[error("{0}")]
    Replaced(String),
}

impl EndReason {
    /// Whether a server that ended like this during the handshake may accept the other era. A program that was not found (shells and their
    /// like end with these codes) or prints text instead of messages does neither.
    pub(crate) fn may_be_of_the_era(&self) -> bool {
        match self {
            Self::Exited(how) => how != "exit code 126" && how != "exit code 127",
            Self::Protocol(_) => false,
            _ => true,
        }
    }
}

/// Why a wire could not be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("{0}")]
    Tls(String),
    #[error("{0}")]
    Setting(String),
    /// The name of a transport, which is that of its feature.
    #[error("this program was built without servers over `{0}`")]
    NotBuilt(&'static str),
    #[error(transparent)]
    Failed(#[from] WireFailure),
}

impl Hint for DialError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Spawn(error) => error.hint(),
            Self::Failed(failure) => failure.hint(),
            Self::Tls(_) => Some("check the files named in the server's `tls` settings".to_owned()),
            Self::NotBuilt(feature) => Some(format!(
                "build it with the feature `{feature}` of the crate `pegboard`, or take the server out"
            )),
            Self::Setting(_) => None,
        }
    }
}

impl Hint for WireFailure {
    fn hint(&self) -> Option<String> {
        let hint = match &self.kind {
            FailureKind::Connect(ConnectFault::Refused) => {
                "nothing listens at that address; start the server or correct `url`"
            }
            FailureKind::Connect(ConnectFault::Dns) => "the host name is not known; check `url` and the network",
            FailureKind::Connect(ConnectFault::Timeout) => {
                "the host does not answer; check `url`, the network and any proxy"
            }
            FailureKind::Connect(ConnectFault::Tls) => {
                "the secure connection failed for the reason above; certificates are set in `tls.ca`, `tls.cert` and `tls.key`"
            }
            FailureKind::Connect(ConnectFault::Redirect) => {
                "the server points elsewhere, and credentials are not sent on; put the final address into `url`"
            }
            FailureKind::NeedsAuth => "give the server's credentials in `auth` or `headers`",
            FailureKind::Status { code: 404 | 405, .. } => {
                "check the path of `url`; many servers listen at `/mcp` or `/sse`"
            }
            FailureKind::Status {
                code: 429,
                retry_after: Some(wait),
            } => {
                return Some(format!(
                    "the server wants fewer requests; ask again in {} s",
                    wait.as_secs()
                ));
            }
            FailureKind::Status { code: 429, .. } => "the server wants fewer requests; ask again later",
            FailureKind::Status { code: 500.., .. } => {
                "the server, or a proxy in front of it, is in trouble; its log says more"
            }
            FailureKind::TooLarge => "raise `max_message` of the server, or ask for less",
            FailureKind::NoRoom => "ask for less, or for less at once, or raise `max_buffered` of the board",
            FailureKind::Protocol => "the address answers, but not as an MCP server; check `url`",
            FailureKind::Connect(ConnectFault::Other)
            | FailureKind::Cut
            | FailureKind::SessionGone
            | FailureKind::Rpc(_)
            | FailureKind::Status { .. }
            | FailureKind::Busy => return None,
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_given_up_in_the_queue_is_never_written() {
        let delivery = Delivery::default();
        assert!(delivery.abandon());
        assert!(!delivery.begin());
        assert_eq!(delivery.sent(), Sent::No);
    }

    #[test]
    fn a_message_is_unsent_until_its_last_byte_may_have_left() {
        let delivery = Delivery::default();
        assert_eq!(delivery.sent(), Sent::No);
        assert!(delivery.begin());
        assert_eq!(delivery.sent(), Sent::Maybe);
        assert!(!delivery.abandon());
        delivery.undo();
        assert_eq!(delivery.sent(), Sent::No);
        assert!(delivery.begin());
        delivery.done();
        delivery.undo();
        assert_eq!(delivery.sent(), Sent::Maybe);
    }
}
