//! [`AccessRecord`]: what the access log says of one request of HTTP, and the [`AccessLog`] that receives it after the response.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, StatusCode, header::USER_AGENT, request::Parts};
use pegboard::{Principal, Timestamp};
use pegboard_protocol::header;
use tokio::time::Instant;

use crate::protocol::{RequestInfo, RequestNotes, session_text};

/// The longest path and the longest name of a client's program in a record, in bytes.
const MAX_PATH: usize = 256;
const MAX_AGENT: usize = 128;

/// The status of a request whose client has gone before there was a response, as web servers write it.
const CLIENT_GONE: u16 = 499;

/// Receives a record of each request of HTTP after its response was sent. It runs within the request: it must be fast, and must not block.
pub trait AccessLog: fmt::Debug + Send + Sync + 'static {
    /// Takes a record.
    fn record(&self, record: AccessRecord);

    /// How many records were lost so far.
    fn lost(&self) -> u64 {
        0
    }
}

/// One request of HTTP. Texts of the client are shortened, and may have any characters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessRecord {
    /// When the response had ended.
    pub at: Timestamp,
    /// Its id, which is also in the response: `X-Request-Id` of the client, or one of this process.
    pub request_id: String,
    /// The trace that it belongs to, if it does.
    pub trace_id: Option<String>,
    /// The name of its token, or who its access token is for.
    pub principal: Option<Principal>,
    /// The method of HTTP.
    pub http_method: String,
    /// The path, without the query.
    pub path: String,
    /// The method of its message of MCP.
    pub method: Option<String>,
    /// The tool that it calls.
    pub tool: Option<String>,
    /// The status of the response; 499 if the client had gone before.
    pub status: u16,
    /// The kind of failure that a result tells of, or the code of an error of JSON-RPC.
    pub failure: Option<String>,
    /// The bytes of the body of the request.
    pub received: u64,
    /// The bytes of the body of the response.
    pub sent: u64,
    /// Whether the client had gone before the end of the response.
    pub is_cut: bool,
    /// The time from its arrival to the end of the response, which for a stream is the end of the stream.
    pub took: Duration,
    /// The address at the other end of the connection, or the process at the other end of a local socket.
    pub peer: Option<Peer>,
    /// The program of the client, as it says.
    pub agent: Option<String>,
    /// A digest of its session. The id itself lets its holder into the session.
    pub session: Option<String>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Peer {
    /// An address of the network.
    Address(SocketAddr),
    /// A process of this machine at the local socket; 0 if the system does not tell it.
    Process(u32),
}

impl Default for AccessRecord {
    /// A request of which nothing is known.
    fn default() -> Self {
        Self {
            at: Timestamp::UNIX_EPOCH,
            request_id: String::new(),
            trace_id: None,
            principal: None,
            http_method: String::new(),
            path: String::new(),
            method: None,
            tool: None,
            status: 0,
            failure: None,
            received: 0,
            sent: 0,
            is_cut: false,
            took: Duration::ZERO,
            peer: None,
            agent: None,
            session: None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Process(process) => write!(f, "pid:{process}"),
        }
    }
}

/// A request that is being answered. It is recorded when this is dropped, which happens when its response was sent.
pub(crate) struct AccessEntry {
    log: Arc<dyn AccessLog>,
    notes: Arc<RequestNotes>,
    /// What was read of the body.
    received: Arc<AtomicU64>,
    begun: Instant,
    /// The length of the response, if it is known before it is sent.
    length: Option<u64>,
    is_whole: bool,
    /// `None` once it is recorded.
    record: Option<AccessRecord>,
}

impl AccessEntry {
    /// Begins the entry of a request. `info` gets the notes that the entry reads at its end.
    pub(crate) fn begin(
        log: &Arc<dyn AccessLog>,
        info: &mut RequestInfo,
        parts: &Parts,
        peer: Option<Peer>,
    ) -> Box<Self> {
        let notes = info.notes.get_or_insert_default().clone();
        let header = |name: &str| Some(parts.headers.get(name)?.as_bytes());
        let agent = header(USER_AGENT.as_str()).map(String::from_utf8_lossy);
        Box::new(Self {
            log: log.clone(),
            notes,
            received: Arc::default(),
            begun: Instant::now(),
            length: None,
            is_whole: false,
            record: Some(AccessRecord {
                request_id: info.tag.to_string(),
                trace_id: info.tag.span().map(|(trace, _)| trace.to_string()),
                http_method: parts.method.as_str().to_owned(),
                path: shorten(parts.uri.path(), MAX_PATH),
                status: CLIENT_GONE,
                peer,
                agent: agent.map(|agent| shorten(&agent, MAX_AGENT)),
                session: header(header::SESSION_ID).map(session_text),
                ..AccessRecord::default()
            }),
        })
    }

    /// Notes whose request it is.
    pub(crate) fn set_principal(&mut self, principal: Option<&Principal>) {
        if let Some(record) = &mut self.record {
            record.principal = principal.cloned();
        }
    }

    /// Counts what is read of the body.
    pub(crate) fn received(&self) -> &Arc<AtomicU64> {
        &self.received
    }

    /// Notes what the head of the response says. `length` is that of its body, if it is known.
    pub(super) fn set_response(&mut self, status: StatusCode, session: Option<&HeaderValue>, length: Option<u64>) {
        self.length = length;
        if let Some(record) = &mut self.record {
            record.status = status.as_u16();
            if record.session.is_none() {
                record.session = session.map(|id| session_text(id.as_bytes()));
            }
        }
    }

    /// Counts what is sent.
    pub(super) fn count_sent(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.sent += bytes as u64;
        }
    }

    /// Notes that a stream has ended by itself.
    pub(super) fn note_end(&mut self) {
        self.is_whole = true;
    }
}

impl Drop for AccessEntry {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        (record.at, record.took) = (Timestamp::now(), self.begun.elapsed());
        record.received = self.received.load(Ordering::Relaxed);
        record.is_cut = !self.is_whole && self.length.is_none_or(|length| record.sent < length);
        if let Some(message) = self.notes.message.get() {
            record.method = Some(message.method.to_string());
            record.tool = message.tool.as_ref().map(ToString::to_string);
            if let Some((trace, _)) = message.span {
                record.trace_id = Some(trace.to_string());
            }
        }
        record.failure = self.notes.failure.get().map(ToString::to_string);
        self.log.record(record);
    }
}

impl fmt::Debug for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessEntry").finish_non_exhaustive()
    }
}

fn shorten(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}
