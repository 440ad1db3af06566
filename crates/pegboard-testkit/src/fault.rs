//! What can go wrong, and on which request. The codes in brackets are the ids of the fault cases.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fault and its trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What goes wrong.
    pub fault: Fault,
    /// On which requests.
    #[serde(default)]
    pub when: When,
}

/// The requests a fault applies to. Nothing set means: every request of the kind the fault is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// Only this method; HTTP's `GET` and `DELETE` count as methods too, `*` is every request.
    pub method: Option<String>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Spares this many matching requests first.
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
            ..Self::method("tools/call")
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

    /// Whether the hit with this number, counted from 0, is one of those meant.
    pub(crate) fn counts(&self, hit: u32) -> bool {
        hit >= self.skip && self.take.is_none_or(|take| hit < self.skip.saturating_add(take))
    }
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the line of each fault explains its fields")]
pub enum Fault {
    // Start and end of a process.
    /// Sleeps before it reads anything (STD-13).
    SlowStart { ms: u64 },
    /// Exits before it reads anything, with this code and this on stderr (F002, F003).
    ExitsAtStart { code: i32, stderr: String },
    /// Writes a question without a newline and waits for an answer that never comes (F005).
    Prompts { text: String },
    /// Writes lines of 32 bytes that are no JSON before anything else (STD-3).
    NoiseAtStart { lines: u64 },
    /// Starts children that outlive it, and notes their process ids in a file (F008, F088).
    SpawnsChildren { how: Child, count: u32, pid_file: PathBuf },
    /// Starts a child in its own session and exits with code 0 (F007); with `keeps_stdout` the child holds stdout (F089).
    ForksAndExits { pid_file: PathBuf, keeps_stdout: bool },
    /// Writes this many bytes to stderr at the start, or before the answers its trigger names (STD-4).
    FloodsStderr { bytes: u64 },
    /// Ignores SIGTERM (F087).
    IgnoresTerm,
    /// Stays when its input ends (F087).
    IgnoresEof,
    /// Stays when its parent is gone, at most five minutes (F086).
    OutlivesParent,

    // Handshake.
    /// Reads the handshake and never answers it (F004).
    SilentHandshake,
    /// Exits on the first handshake request, with this code and this on stderr (F002).
    ExitsAtHandshake { code: i32, stderr: String },
    /// Dies this long after the handshake, while idle (F075).
    DiesIdle { after_ms: u64 },

    // Any request; `tools/call` unless the trigger says otherwise.
    /// Never answers (F041).
    NeverAnswers,
    /// Dies before it executes the call: nothing in the ledger (F038).
    DiesBeforeExecuting { code: i32 },
    /// Executes the call, then dies without an answer (F040, F059).
    DiesAfterExecuting { code: i32 },
    /// Executes the call, answers half of it, then dies (F045).
    DiesWhileAnswering { code: i32 },
    /// Closes its output and lives on (SAFETY section 1).
    ClosesOutput,
    /// Stops reading its input from this request on; the request itself is not answered.
    StopsReading,
    /// Answers this much later, also when the request was cancelled (F042).
    LateAnswer { ms: u64 },
    /// Answers twice (F043).
    AnswersTwice,
    /// Sends this many answers for ids nobody issued, then the right one (F044).
    StrayAnswers { count: u32 },
    /// Answers under another number instead (F026).
    WrongId,
    /// Answers under the id as a string (F026).
    StringId,
    /// Answers under the id as a float: `1.0` (F026).
    FloatId,
    /// Answers without an id (F026).
    MissingId,
    /// Answers with the id null (F026).
    NullId,
    /// Answers half of the JSON, then ends the stream (F045).
    CutThenEof,
    /// Sends an over-long message; `with_id` gives it the id of the call, `then_valid` adds the right answer (F046).
    Oversized {
        bytes: usize,
        with_id: bool,
        then_valid: bool,
    },
    /// Sends a line that never ends (F047).
    EndlessLine,
    /// Answers with a byte that is not UTF-8 inside a string (F048).
    InvalidUtf8,
    /// Answers with a NUL byte before the message (F048).
    NulByte,
    /// Answers with a byte order mark before the message (F048).
    Bom,
    /// Ends its lines with CR LF (F048).
    Crlf,
    /// Answers with a raw U+2028 inside a string (F048).
    LineSeparator,
    /// Answers a result nested this deep; 200,000 ends most parsers (F049).
    Nested { depth: usize },
    /// Answers with the key `result` twice (F050).
    DuplicateKeys,
    /// Answers with `Result` and `ID` beside nothing else (F050).
    CaseVariantKeys,
    /// Answers with a `resultType` no specification knows (F052).
    UnknownResultType,
    /// Answers `input_required` without end (F053).
    InputForEver,
    /// Answers `input_required` with a request state of this size (F053).
    HugeRequestState { bytes: usize },
    /// Sends this many progress notices at once, then the answer (F054).
    ProgressFlood { count: u64 },
    /// Sends progress for ever and never answers (F055).
    ProgressForEver { every_ms: u64 },
    /// Sends the client requests it never declared support for, then the answer (F056, F057).
    ServerRequests { method: String, count: u32 },
    /// Sends `notifications/tools/list_changed` this many times after the answer (F036).
    ListChanged { count: u64, every_ms: u64 },
    /// Writes lines of 32 bytes that are no JSON before the answer (STD-3).
    NoiseBeforeAnswer { lines: u64 },
    /// Answers a JSON-RPC error (F018, F071).
    AnswersError {
        code: i64,
        message: String,
        data: Option<Value>,
    },

    /// Sends each of these texts as a message of its own, with `$ID` replaced by the id of the request, this many times
    /// over; then the right answer, or nothing more without `then_answer`.
    Says {
        messages: Vec<String>,
        times: u32,
        then_answer: bool,
    },
    /// Answers with a string that ends in the middle of a UTF-8 sequence.
    HalfUtf8,

    // Lists; `tools/list` unless the trigger says otherwise.
    /// Every page has a next cursor, a new one each time (F030).
    EndlessPages,
    /// Every page has the same next cursor (F031).
    RepeatedCursor,
    /// The page with this number never comes, counted from 1 (F032).
    HangingPage { page: u32 },
    /// Adds this many tools to the list (F033).
    ManyTools { count: usize },
    /// Lists every tool twice (F033).
    DuplicateTools,
    /// Adds a tool with a name of this length (F033).
    LongToolName { length: usize },
    /// Adds a tool with spaces, a slash and an emoji in its name (F033).
    OddToolName,
    /// Adds a tool whose input schema is not a schema (F034).
    BrokenSchema,
    /// Adds a tool with an `x-mcp-header` that cannot be a header (F034).
    BrokenMcpHeader,
    /// Adds a tool without an input schema (F034).
    NoInputSchema,
    /// Adds a tool whose schema is made to exhaust a validator (F035).
    SchemaBomb { kind: Bomb },
    /// Lists every tool with another description (F037); use it with `When::after`.
    ToolsChange,

    // Network forms only.
    /// Answers this HTTP status with these headers and this body (F020, F028, F067).
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Answers 200 with an HTML page (F017).
    HtmlPage,
    /// Answers right, under a wrong content type (F073).
    WrongContentType { content_type: String },
    /// Redirects; to `/mcp` it is a loop (F016).
    Redirect { status: u16, to: String },
    /// Sends the body one byte at a time (F062).
    BodyDrip { every_ms: u64 },
    /// Resets the connection in the middle of a JSON body (F063).
    ResetInBody,
    /// Resets the connection in the middle of an event stream (F063).
    ResetInStream,
    /// Ends the event stream before the answer; `resumable` gives it an event id to resume from (F064).
    StreamEndsEarly { resumable: bool },
    /// Sends keep-alive comments and nothing else (F065).
    OnlyKeepAlive { every_ms: u64 },
    /// Sends a body that never ends (NET-11).
    EndlessBody,
    /// Forgets the session of this request and answers 404 (F070).
    SessionGone,
    /// Gives this session id, whatever it looks like; on a later request it changes the id midway (F029).
    SessionId { id: String },
    /// Ends notification streams, GET or `subscriptions/listen`, after this long (F080, NET-5); `gracefully` with the
    /// answer that ends a subscription, which is the only way on stdio.
    NoticeStreamEnds { after_ms: u64, gracefully: bool },

    // The transport of 2024-11-05.
    /// The endpoint event never comes (F022).
    NoEndpoint,
    /// The endpoint event names this address, relative or absolute (F023, NET-6).
    Endpoint { url: String },
}

/// How a child leaves its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Child {
    /// In the parent's process group.
    SameGroup,
    /// In a session of its own.
    Setsid,
    /// Forked twice, so that it belongs to init.
    DoubleFork,
}

/// A schema made to exhaust a validator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bomb {
    /// Nested 100 deep, which parsers still let through.
    Depth,
    /// `$ref`s in a circle.
    RefCycle,
    /// A `$ref` to another host.
    RemoteRef,
    /// An enum with 100,000 values.
    HugeEnum,
    /// A pattern that backtracks without end.
    Pattern,
}

const HANDSHAKE: &[&str] = &["initialize", "server/discover"];
const LIST: &[&str] = &["tools/list"];
const CALL: &[&str] = &["tools/call"];
const NEVER: &[&str] = &[];

impl Fault {
    /// The methods it applies to when the trigger names none.
    fn usual_methods(&self) -> &'static [&'static str] {
        match self {
            Self::SilentHandshake | Self::ExitsAtHandshake { .. } | Self::SessionId { .. } => HANDSHAKE,
            Self::DiesIdle { .. } => &["notifications/initialized", "server/discover"],
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
            Self::NoticeStreamEnds { .. } => &["GET", "subscriptions/listen"],
            Self::NoEndpoint | Self::Endpoint { .. } => &["GET"],
            Self::Crlf | Self::Bom | Self::NoiseBeforeAnswer { .. } => &["*"],
            Self::HtmlPage | Self::Redirect { .. } => &["initialize", "server/discover", "GET"],
            fault if fault.is_of_the_process() => NEVER,
            _ => CALL,
        }
    }

    /// Whether an HTTP request with it is answered without a look at the message.
    pub(crate) fn refuses_the_request(&self) -> bool {
        matches!(
            self,
            Self::Status { .. } | Self::HtmlPage | Self::Redirect { .. } | Self::EndlessBody
        )
    }

    /// Whether it concerns the life of the process and not one request.
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
