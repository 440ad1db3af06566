//! Status snapshots of a server and of the whole board: plain values to print or serialise.

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use pegboard_base::{
    caller::Principal,
    diagnosis::{Code, Diagnosis},
    label::label,
    name::ServerName,
};
#[doc(inline)]
pub use pegboard_client::{
    session::{Era, ServerDeclaration, ServerInfo},
    shim::SandboxStatus,
};

/// A snapshot of the board.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BoardStatus {
    /// One entry per live server, ordered by name. A configured server has at least one, and a session-scoped one has one for each view. The
    /// servers that only one principal uses have an entry while they are in use.
    pub servers: Vec<ServerStatus>,
    /// The queues that several servers share, by name.
    pub queues: Vec<QueueStatus>,
    /// Whether every enabled server is healthy and calls are not refused for lack of a required audit log.
    pub healthy: bool,
    /// Whether every required server is ready.
    pub ready: bool,
    /// Conditions that an operator should know about.
    pub warnings: Vec<Warning>,
}

/// The id of the warning that calls are refused because of the audit log.
pub(crate) const AUDIT_REQUIRED: &str = "audit:required";

impl BoardStatus {
    /// Returns `true` if every call is refused, because the audit log is required and cannot be written.
    pub fn refuses_calls(&self) -> bool {
        self.warnings.iter().any(|warning| warning.id == AUDIT_REQUIRED)
    }
}

/// A snapshot of one server.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// The view that owns it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// The principal whose views alone use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Whether it was removed from the board and only completes its calls in flight.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Its lifecycle state.
    pub state: State,
    /// When it entered that state. While it is disabled, idle or closed, this is the current time.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub since: Timestamp,
    /// `stdio`, `http`, `sse`, `websocket` or `in_process`.
    pub transport: &'static str,
    /// The protocol era it speaks, once known.
    pub era: Option<Era>,
    /// The protocol version it speaks, once known.
    pub protocol_version: Option<String>,
    /// Its self-description from the handshake.
    pub server_info: Option<ServerInfo>,
    /// Its description in the config.
    pub description: Option<String>,
    /// How its connections are shared: `shared`, `session` or `pool`.
    pub scope: &'static str,
    /// The capabilities that it declares, once known.
    pub capabilities: Option<Map<String, Value>>,
    /// The usage instructions that it declares.
    pub instructions: Option<String>,
    /// How current `tools`, `resources` and `prompts` are.
    pub tool_cache: ToolCacheState,
    /// How many tools it offers to callers, as its config lets them see; while it is not ready, how many it had when it was last listed.
    pub tools: usize,
    /// How many of its tools its config hides, by `allow` and `deny` for example; `tools` does not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden: usize,
    /// How many of its tools are held until a person accepts their definitions; `tools` does not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub held: usize,
    /// How many resources it offers.
    pub resources: usize,
    /// How many prompts it offers.
    pub prompts: usize,
    /// The process id of a running stdio server.
    pub pid: Option<u32>,
    /// The sandbox of a stdio server, if its config requests one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxStatus>,
    /// How often it was restarted; zero while it is disabled, idle or closed.
    pub restarts: u32,
    /// Calls in flight.
    pub in_flight: usize,
    /// Queued calls.
    pub queued: usize,
    /// The state of its circuit breaker: `closed` (calls pass), `open` or `half_open`.
    pub breaker: &'static str,
    /// Whether the board needs it to be ready.
    pub required: bool,
    /// Whether its config says `start = "explicit"` and neither the program nor an operator has connected it: its tools are offered to nobody.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits_connect: bool,
    /// How long the last start took, including the first listing of tools, while it is ready.
    pub ready_after_ms: Option<f64>,
    /// Calls so far: of this server if a view owns it, otherwise of all servers that the board has had under this name.
    pub calls: CallCounts,
    /// What went wrong last: the outage while it is down; while it is ready, the later of its last outage and its last failed call.
    pub last_error: Option<LastError>,
    /// When its health was last checked: by a probe, or by starting it. A successful call is no check.
    #[cfg_attr(feature = "schemars", schemars(with = "Option<String>"))]
    pub checked_at: Option<Timestamp>,
    /// Why that check failed; `None` if the server was healthy.
    pub check_error: Option<String>,
    /// Its connections, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolStatus>,
}

impl ServerStatus {
    /// Returns whether it has failed and has not been ready since. It may be tried once more just now.
    #[doc(hidden)]
    pub fn is_troubled(&self) -> bool {
        match self.state {
            State::Ready | State::Idle | State::Disabled => false,
            State::Connecting => self.last_error.is_some(),
            _ => true,
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A snapshot of the connections of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PoolStatus {
    /// How many there may be.
    pub size: usize,
    /// How many are ready.
    pub ready: usize,
    /// How many have calls in flight.
    pub busy: usize,
    /// The process ids of their servers.
    pub pids: Vec<u32>,
}

/// A snapshot of a queue.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct QueueStatus {
    /// Its name.
    pub name: String,
    /// The most calls in flight at once.
    pub capacity: usize,
    /// Calls in flight.
    pub in_use: usize,
    /// Queued calls.
    pub depth: usize,
    /// Calls that were admitted so far.
    pub entered: u64,
    /// How many of them had to wait.
    pub waited: u64,
    /// Calls that were rejected, because the queue was full or their deadline passed.
    pub refused: u64,
    /// How long the last admitted call had waited.
    pub last_wait_ms: f64,
    /// How long all admitted calls had waited together.
    pub total_wait_ms: f64,
}

/// The lifecycle state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Disabled by its config or by an operator.
    Disabled,
    /// Not started yet, or stopped because it was idle. The next call starts it, unless its config says `start = "explicit"`.
    Idle,
    /// Being started.
    Connecting,
    /// Ready for calls.
    Ready,
    /// Unreachable.
    Down,
    /// Exits repeatedly.
    CrashLooping,
    /// Requires authentication.
    NeedsAuth,
    /// Its config cannot be used.
    Misconfigured,
    /// Its project file is not approved yet.
    PendingTrust,
    /// Closed with its board.
    Closed,
}

impl State {
    /// Every state, in declaration order.
    const ALL: [Self; 10] = [
        Self::Disabled,
        Self::Idle,
        Self::Connecting,
        Self::Ready,
        Self::Down,
        Self::CrashLooping,
        Self::NeedsAuth,
        Self::Misconfigured,
        Self::PendingTrust,
        Self::Closed,
    ];

    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Down => "down",
            Self::CrashLooping => "crash_looping",
            Self::NeedsAuth => "needs_auth",
            Self::Misconfigured => "misconfigured",
            Self::PendingTrust => "pending_trust",
            Self::Closed => "closed",
        }
    }
}

label!(State, "server state");

/// How current the known tools of a server are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCacheState {
    /// None are known.
    Empty,
    /// None are known yet: the server is being started.
    Populating,
    /// They are those of the current session.
    Ready,
    /// They were listed by an earlier session, or the server says that its listing has expired.
    Stale,
}

impl ToolCacheState {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Populating => "populating",
            Self::Ready => "ready",
            Self::Stale => "stale",
        }
    }
}

label!(ToolCacheState, "tool cache state", [Empty, Populating, Ready, Stale]);

/// Calls so far.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallCounts {
    /// All calls.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
    /// The mean duration of all calls, not a moving average.
    pub avg_ms: f64,
}

/// The last error of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LastError {
    /// What failed, with its causes.
    pub message: String,
    /// What an operator can do about it.
    pub hint: Option<String>,
    /// When.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub at: Timestamp,
    /// The end of the server's stderr.
    pub stderr: Option<String>,
    /// The stable word for what is wrong, such as `connection-refused`; `None` if a tool reported an error.
    pub code: Option<Code>,
    /// The [`Kind`](crate::Kind) of the call that failed, such as `tool_error`. Absent for an outage of the server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<&'static str>,
    /// What is wrong, as data. Decide by its code, not by the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
}

impl LastError {
    /// The message without what a tool said in reply to one client: that may repeat the arguments of the call. That of an outage is whole.
    pub(crate) fn message_for_all(&self) -> String {
        match self.call {
            Some(kind) => format!("a call failed: {kind}"),
            None => self.message.clone(),
        }
    }

    /// The error as everyone who sees the server may read it: of a failed call its kind and time, of an outage everything.
    fn for_all(self) -> Self {
        match self.call {
            Some(_) => Self {
                message: self.message_for_all(),
                hint: None,
                stderr: None,
                diagnosis: None,
                ..self
            },
            None => self,
        }
    }
}

impl BoardStatus {
    /// The status without the texts of failed calls, for clients that did not make these calls.
    #[doc(hidden)]
    #[must_use]
    pub fn without_call_texts(mut self) -> Self {
        for row in &mut self.servers {
            row.last_error = row.last_error.take().map(LastError::for_all);
        }
        self
    }
}

/// A condition that an operator should know about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Warning {
    /// A stable id for one category and server.
    pub id: String,
    /// The category.
    pub category: &'static str,
    /// A one-line message.
    pub message: String,
    /// Details.
    pub details: String,
    /// The server it is about; `None` if it is about the whole board.
    pub server: Option<ServerName>,
    /// Since when.
    #[cfg_attr(feature = "schemars", schemars(with = "String"))]
    pub created_at: Timestamp,
}
