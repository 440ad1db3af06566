//! What a server and the whole board look like from outside: plain values to print or serialise, without behaviour.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::name::ServerName;

/// The board at one moment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BoardStatus {
    /// One entry per live server, by name: one for each view that has the server for itself, and at least one for each configured server.
    pub servers: Vec<ServerStatus>,
    /// The queues that calls of several servers wait in, by name.
    pub queues: Vec<QueueStatus>,
    /// Whether every enabled server is well.
    pub healthy: bool,
    /// Whether every required server is ready.
    pub ready: bool,
    /// What an operator should know.
    pub warnings: Vec<Warning>,
}

/// One server at one moment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: ServerName,
    /// The view that owns it, where each view has a server of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Whether it is off the board and only ends its calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Where its life stands.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// `stdio`, `http`, `sse` or `websocket`.
    pub transport: &'static str,
    /// The protocol era it speaks, once known.
    pub era: Option<Era>,
    /// The protocol version it speaks, once known.
    pub protocol_version: Option<String>,
    /// What it says it is.
    pub server_info: Option<ServerInfo>,
    /// What it is for, in the words of the config.
    pub description: Option<String>,
    /// Who shares its connection: `shared`, `session` or `pool`.
    pub scope: &'static str,
    /// The capabilities that it declares, once known.
    pub capabilities: Option<Map<String, Value>>,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    /// How many tools it offers.
    pub tools: usize,
    /// How many resources it offers.
    pub resources: usize,
    /// How many prompts it offers.
    pub prompts: usize,
    /// Its process, for a stdio server that runs.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u32,
    /// Calls under way.
    pub in_flight: usize,
    /// Calls waiting for their turn.
    pub queued: usize,
    /// Whether calls are let through: `closed` when they are, `open` or `half_open` when it has answered nobody lately.
    pub breaker: &'static str,
    /// Whether the board needs it to be ready.
    pub required: bool,
    /// How long the start took that made it ready, from the attempt to the first listing of tools.
    pub ready_after_ms: Option<f64>,
    /// Calls so far, of all servers that the board has had under this name.
    pub calls: CallCounts,
    /// What went wrong last: the outage while it is down, else the later of its last outage and its last failed call.
    pub last_error: Option<LastError>,
    /// When its health was last checked: by a probe, or by starting it. A successful call is no check.
    pub checked_at: Option<Timestamp>,
    /// Why that check failed; `None` if the server was well.
    pub check_error: Option<String>,
    /// Its connections, when it has a pool of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolStatus>,
}

/// The connections of one server at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// How many there may be.
    pub size: usize,
    /// How many are ready.
    pub ready: usize,
    /// How many have calls under way.
    pub busy: usize,
    /// The processes behind them.
    pub pids: Vec<u32>,
}

/// A queue at one moment.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Its name.
    pub name: String,
    /// The most calls under way at once.
    pub capacity: usize,
    /// Calls under way.
    pub in_use: usize,
    /// Calls that wait.
    pub depth: usize,
    /// Calls that were let in so far.
    pub entered: u64,
    /// Those of them that had to wait.
    pub waited: u64,
    /// Calls that were not let in: too many waited, or their time was up.
    pub refused: u64,
    /// How long the call that was let in last had waited.
    pub last_wait_ms: f64,
    /// How long all calls that were let in had waited.
    pub total_wait_ms: f64,
}

/// Where a server's life stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Switched off by its config.
    Disabled,
    /// Not started yet; the first use starts it.
    Idle,
    /// Being started.
    Connecting,
    /// Ready for calls.
    Ready,
    /// Not to be reached.
    Down,
    /// Ends again and again.
    CrashLooping,
    /// Waits for somebody to sign in.
    NeedsAuth,
    /// Its config cannot be used.
    Misconfigured,
    /// Closed with its board.
    Closed,
}

impl State {
    /// The word for it in text and JSON.
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
            Self::Closed => "closed",
        }
    }
}

/// A protocol era: without a handshake (2026-07-28 and later), or with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Era {
    /// Without a handshake.
    Modern,
    /// With a handshake.
    Legacy,
}

impl Era {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }
}

/// What a server says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its program's name.
    pub name: String,
    /// Its program's version.
    pub version: String,
}

/// Calls so far.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[non_exhaustive]
pub struct CallCounts {
    /// All calls.
    pub total: u64,
    /// Those that did not end well.
    pub failed: u64,
    /// How long they took: the mean over all calls, not a moving average.
    pub avg_ms: f64,
}

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LastError {
    /// What failed, with its causes.
    pub message: String,
    /// What a person can do about it.
    pub hint: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The end of the server's error output.
    pub stderr: Option<String>,
}

/// Something an operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// The same for the same category and server.
    pub id: String,
    /// What it is about.
    pub category: &'static str,
    /// One line.
    pub message: String,
    /// More of it.
    pub details: String,
    /// The server it is about.
    pub server: ServerName,
    /// Since when.
    pub created_at: Timestamp,
}
