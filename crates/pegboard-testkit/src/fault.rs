//! Faults and their triggers. `docs/reliability.md` lists the cases that use them.

use std::path::PathBuf;

use pegboard_protocol::method::{self, notification};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fault and its trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The fault.
    pub fault: Fault,
    /// Its trigger.
    #[serde(default)]
    pub when: When,
}

/// The trigger of a fault: the requests that it applies to. The default is every request with one of the fault's usual methods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// Only this method; HTTP's `GET` and `DELETE` count as methods too, `*` is every request.
    pub method: Option<String>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Skips this many matching requests first.
    pub skip: u32,
    /// Applies to this many matching requests, then no more.
    pub take: Option<u32>,
}

impl When {
    /// Requests with this method.
    pub fn method(method: impl Into<String>) -> Self {
        Self {
            method: Some(method.into()),
            ..Self::default()
        }
    }

    /// Calls of this tool.
    pub fn tool(tool: impl Into<String>) -> Self {
        Self {
            tool: Some(tool.into()),
            ..Self::method(method::TOOLS_CALL)
        }
    }

    /// Every request.
    #[must_use]
    pub fn always() -> Self {
        Self::method("*")
    }

    /// Only the n-th matching request, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u32) -> Self {
        self.skip = n.saturating_sub(1);
        self.take = Some(1);
        self
    }

    /// Only the first n matching requests.
    #[must_use]
    pub fn first(mut self, n: u32) -> Self {
        self.take = Some(n);
        self
    }

    /// Only the matching requests after the first n.
    #[must_use]
    pub fn after(mut self, n: u32) -> Self {
        self.skip = n;
        self
    }

    pub(crate) fn covers(&self, fault: &Fault, method: &str, tool: Option<&str>) -> bool {
        let method_fits = match self.method.as_deref() {
            Some("*") => true,
            Some(wanted) => wanted == method,
            None => fault
                .usual_methods()
                .iter()
                .any(|usual| *usual == method || *usual == "*"),
        };
        method_fits && self.tool.as_deref().is_none_or(|wanted| Some(wanted) == tool)
    }

    /// Returns `true` if the matching request with this number, counted from 0, is affected.
    pub(crate) fn counts(&self, hit: u32) -> bool {
        hit >= self.skip && self.take.is_none_or(|take| hit < self.skip.saturating_add(take))
    }
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the line of each fault explains its fields")]
pub enum Fault {
    // Start and end of a process.
    /// Sleeps before it reads anything.
    SlowStart { ms: u64 },
    /// Exits before it reads anything, with this code and this text on stderr.
    ExitsAtStart { code: i32, stderr: String },
    /// Writes a prompt without a newline and waits for input that never comes.
    Prompts { text: String },
    /// Writes lines of 32 bytes that are not JSON before anything else.
    NoiseAtStart { lines: u64 },
    /// Starts children that outlive it, and writes their process ids to a file.
    SpawnsChildren { how: Child, count: u32, pid_file: PathBuf },
    /// Starts a child in its own session and exits with code 0; with `keeps_stdout` the child holds stdout.
    ForksAndExits { pid_file: PathBuf, keeps_stdout: bool },
    /// Writes this many bytes to stderr at the start, or before the responses that its trigger selects.
    FloodsStderr { bytes: u64 },
    /// Ignores SIGTERM.
    IgnoresTerm,
    /// Keeps running when its input ends.
    IgnoresEof,
    /// Keeps running when its parent is gone, for at most five minutes.
    OutlivesParent,

    // Handshake.
    /// Reads the handshake and never responds.
    SilentHandshake,
    /// Exits on the first handshake request, with this code and this text on stderr.
    ExitsAtHandshake { code: i32, stderr: String },
    /// Dies this long after the handshake, while idle.
    DiesIdle { after_ms: u64 },

    // Any request; `tools/call` unless the trigger says otherwise.
    /// Never responds.
    NeverAnswers,
    /// Dies before it executes the call: nothing in the ledger.
    DiesBeforeExecuting { code: i32 },
    /// Executes the call, then dies without a response.
    DiesAfterExecuting { code: i32 },
    /// Executes the call, sends half of the response, then dies.
    DiesWhileAnswering { code: i32 },
    /// Closes its output and keeps running.
    ClosesOutput,
    /// Stops reading its input from this request on; the request itself gets no response.
    StopsReading,
    /// Responds this much later, even if the request was cancelled.
    LateAnswer { ms: u64 },
    /// Sends the response twice.
    AnswersTwice,
    /// Sends this many responses with unknown ids, then the right one.
    StrayAnswers { count: u32 },
    /// Responds with another numeric id.
    WrongId,
    /// Responds with the id as a string.
    StringId,
    /// Responds with the id as a float: `1.0`.
    FloatId,
    /// Responds without an id.
    MissingId,
    /// Responds with the id null.
    NullId,
    /// Sends half of the response, then ends the stream.
    CutThenEof,
    /// Sends an over-long message; `with_id` gives it the id of the call, `then_valid` adds the right response.
    Oversized {
        bytes: usize,
        with_id: bool,
        then_valid: bool,
    },
    /// Sends a line that never ends.
    EndlessLine,
    /// Responds with invalid UTF-8 inside a string.
    InvalidUtf8,
    /// Sends a NUL byte before the response.
    NulByte,
    /// Sends a byte order mark before the response.
    Bom,
    /// Ends its lines with CR LF.
    Crlf,
    /// Responds with an unescaped U+2028 inside a string.
    LineSeparator,
    /// Responds with a result nested this deep; 200,000 overflows most parsers.
    Nested { depth: usize },
    /// Responds with the key `result` twice.
    DuplicateKeys,
    /// Responds with the key `Result` in place of `result`.
    CaseVariantKeys,
    /// Responds with an unknown `resultType`.
    UnknownResultType,
    /// Responds `input_required` endlessly.
    InputForEver,
    /// Responds `input_required` with a request state of this size.
    HugeRequestState { bytes: usize },
    /// Sends this many progress notifications at once, then the response.
    ProgressFlood { count: u64 },
    /// Sends progress endlessly and never responds.
    ProgressForEver { every_ms: u64 },
    /// Sends requests for capabilities that the client did not declare, then the response.
    ServerRequests { method: String, count: u32 },
    /// Sends `notifications/tools/list_changed` this many times after the response.
    ListChanged { count: u64, every_ms: u64 },
    /// Writes lines of 32 bytes that are not JSON before the response.
    NoiseBeforeAnswer { lines: u64 },
    /// Responds with a JSON-RPC error.
    AnswersError {
        code: i64,
        message: String,
        data: Option<Value>,
    },

    /// Sends each of these texts as a message, with `$ID` replaced by the id of the request, `times` times over; then the
    /// right response, or nothing more without `then_answer`.
    Says {
        messages: Vec<String>,
        times: u32,
        then_answer: bool,
    },
    /// Responds with a string that contains a truncated UTF-8 sequence.
    HalfUtf8,

    // Lists; `tools/list` unless the trigger says otherwise.
    /// Every page has a next cursor, a new one each time.
    EndlessPages,
    /// Every page has the same next cursor.
    RepeatedCursor,
    /// Never sends the page with this number, counted from 1.
    HangingPage { page: u32 },
    /// Adds this many tools to the list.
    ManyTools { count: usize },
    /// Lists every tool twice.
    DuplicateTools,
    /// Adds a tool with a name of this length.
    LongToolName { length: usize },
    /// Adds a tool with spaces, a slash and an emoji in its name.
    OddToolName,
    /// Adds a tool whose input schema is not a valid schema.
    BrokenSchema,
    /// Adds a tool with an `x-mcp-header` that cannot be a header.
    BrokenMcpHeader,
    /// Adds a tool without an input schema.
    NoInputSchema,
    /// Adds a tool whose schema is made to exhaust a validator.
    SchemaBomb { kind: Bomb },
    /// Lists every tool with another description; use it with `When::after`.
    ToolsChange,

    // Network transports only.
    /// Responds with this HTTP status, these headers and this body.
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Responds with 200 and an HTML page.
    HtmlPage,
    /// Sends the right response with a wrong content type.
    WrongContentType { content_type: String },
    /// Redirects; to `/mcp` it is a loop.
    Redirect { status: u16, to: String },
    /// Sends the body one byte at a time.
    BodyDrip { every_ms: u64 },
    /// Resets the connection in the middle of a JSON body.
    ResetInBody,
    /// Resets the connection in the middle of an event stream.
    ResetInStream,
    /// Ends the event stream before the response; `resumable` gives it an event id to resume from.
    StreamEndsEarly { resumable: bool },
    /// Sends keep-alive comments and nothing else.
    OnlyKeepAlive { every_ms: u64 },
    /// Sends a body that never ends.
    EndlessBody,
    /// Ends the session of this request and responds with 404.
    SessionGone,
    /// Assigns this session id, which need not be valid; on a later request it changes the id.
    SessionId { id: String },
    /// Ends notification streams, GET or `subscriptions/listen`, after this long; `gracefully` with the response that ends a
    /// subscription, which is the only way on stdio.
    NoticeStreamEnds { after_ms: u64, gracefully: bool },

    // The transport of 2024-11-05.
    /// Never sends the endpoint event.
    NoEndpoint,
    /// Sends an endpoint event with this URL, relative or absolute.
    Endpoint { url: String },
}

/// How a child is detached from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Child {
    /// In the parent's process group.
    SameGroup,
    /// In a session of its own.
    Setsid,
    /// Forked twice, so that init adopts it.
    DoubleFork,
}

/// A schema made to exhaust a validator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bomb {
    /// Nested 100 deep, which parsers still accept.
    Depth,
    /// A cycle of `$ref`s.
    RefCycle,
    /// A `$ref` to another host.
    RemoteRef,
    /// An enum with 100,000 values.
    HugeEnum,
    /// A pattern with catastrophic backtracking.
    Pattern,
}

const HANDSHAKE: &[&str] = &[method::INITIALIZE, method::SERVER_DISCOVER];
const LIST: &[&str] = &[method::TOOLS_LIST];
const CALL: &[&str] = &[method::TOOLS_CALL];
const NEVER: &[&str] = &[];

impl Fault {
    /// The methods that it applies to if the trigger names none.
    fn usual_methods(&self) -> &'static [&'static str] {
        match self {
            Self::SilentHandshake | Self::ExitsAtHandshake { .. } | Self::SessionId { .. } => HANDSHAKE,
            Self::DiesIdle { .. } => &[notification::INITIALIZED, method::SERVER_DISCOVER],
            Self::EndlessPages
            | Self::RepeatedCursor
            | Self::HangingPage { .. }
            | Self::ManyTools { .. }
            | Self::DuplicateTools
            | Self::LongToolName { .. }
            | Self::OddToolName
            | Self::BrokenSchema
            | Self::BrokenMcpHeader
            | Self::NoInputSchema
            | Self::SchemaBomb { .. }
            | Self::ToolsChange
            | Self::ListChanged { .. } => LIST,
            Self::NoticeStreamEnds { .. } => &["GET", method::SUBSCRIPTIONS_LISTEN],
            Self::NoEndpoint | Self::Endpoint { .. } => &["GET"],
            Self::Crlf | Self::Bom | Self::NoiseBeforeAnswer { .. } => &["*"],
            Self::HtmlPage | Self::Redirect { .. } => &[method::INITIALIZE, method::SERVER_DISCOVER, "GET"],
            fault if fault.is_of_the_process() => NEVER,
            _ => CALL,
        }
    }

    /// Returns `true` if the HTTP response ignores the message.
    pub(crate) fn refuses_the_request(&self) -> bool {
        matches!(
            self,
            Self::Status { .. } | Self::HtmlPage | Self::Redirect { .. } | Self::EndlessBody
        )
    }

    /// Returns `true` if it affects the process and not a single request.
    fn is_of_the_process(&self) -> bool {
        matches!(
            self,
            Self::SlowStart { .. }
                | Self::ExitsAtStart { .. }
                | Self::Prompts { .. }
                | Self::NoiseAtStart { .. }
                | Self::SpawnsChildren { .. }
                | Self::ForksAndExits { .. }
                | Self::FloodsStderr { .. }
                | Self::IgnoresTerm
                | Self::IgnoresEof
                | Self::OutlivesParent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_counts_from_one_and_stops_after_its_share() {
        let third = When::default().nth(3);
        assert_eq!(
            (0..5).map(|hit| third.counts(hit)).collect::<Vec<_>>(),
            [false, false, true, false, false]
        );
        let later = When::default().after(2);
        assert_eq!(
            (0..4).map(|hit| later.counts(hit)).collect::<Vec<_>>(),
            [false, false, true, true]
        );
    }

    #[test]
    fn a_fault_knows_the_requests_it_is_about() {
        let covers = |when: When, method, tool| when.covers(&Fault::NeverAnswers, method, tool);
        assert!(covers(When::default(), "tools/call", Some("a")));
        assert!(!covers(When::default(), "tools/list", None));
        assert!(covers(When::method("tools/list"), "tools/list", None));
        assert!(!covers(When::tool("b"), "tools/call", Some("a")));
        assert!(covers(When::always(), "ping", None));
    }
}
