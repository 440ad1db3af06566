//! The builder of a tool call: the tool, its arguments and the options of the call.

mod delivery;
mod progress;
mod reply_to;
mod stored;
mod times;

pub use delivery::Delivery;
pub use progress::Progress;
pub use times::CallTimes;

use std::{
    fmt::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard_protocol::meta;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use pegboard_base::telemetry::Parent;

use crate::{
    args::Arguments,
    filter::Selection,
    outcome::{Outcome, Reply},
};
use pegboard_config::Reading;

/// Prefix of generated call ids.
const GENERATED: &str = "call-";

/// One tool call as the caller requests it.
///
/// It can be stored as JSON before it is made, all but the channel for progress and its [delivery](ToolCall::delivery); give it an [id](ToolCall::id) then, because generated ids
/// are unique in one process only. A reader ignores fields that it does not know, and needs no more than the name.
///
/// ```
/// # mod pegboard { pub use pegboard_base::name::ServerName; pub use pegboard_config as config; pub use pegboard_tools::*; }
/// use pegboard::ToolCall;
///
/// let call = ToolCall::new("time.now").id("step-7").arguments(serde_json::json!({"zone": "UTC"}));
/// let stored = serde_json::to_string(&call)?;
/// assert_eq!(stored, r#"{"id":"step-7","name":"time.now","arguments":{"zone":"UTC"}}"#);
/// let again: ToolCall = serde_json::from_str(&stored)?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The caller's id for it, repeated in the reply.
    pub id: String,
    /// The tool's name, in any naming style.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
    /// Arguments as text, as a model wrote them. They are parsed once the tool is known, before any hook sees the call.
    pub text: Option<String>,
    /// How the text is parsed; `None` uses the server's settings.
    pub reading: Option<Reading>,
    /// Notes on what had to be repaired to parse the text.
    #[doc(hidden)]
    pub notes: Vec<String>,
    /// Why the given arguments are unusable.
    #[doc(hidden)]
    pub invalid_arguments: Option<String>,
    /// The limit for the whole call, besides the server's own limits.
    pub timeout: Option<Duration>,
    /// The conversation that led to the call, for the summariser of the result.
    pub context: Option<String>,
    /// Receives progress. When the channel is full, updates are dropped.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The servers and tools that this call may use, in place of the view's selection.
    pub selection: Option<Arc<Selection>>,
    /// Entries of the request's `_meta`: trace context, a tenant id, anything the server understands. Keys reserved by the protocol are
    /// dropped.
    pub meta: Map<String, Value>,
    /// An idempotency key: a second call with the same key is not sent and returns the first one's reply. See [`ToolCall::key`].
    pub key: Option<String>,
    /// Runs the call as a task where the tool leaves the choice.
    pub as_task: bool,
    /// Learns whether the call may have run, for a program that may cancel it.
    #[doc(hidden)]
    pub delivery: Option<Arc<dyn Delivery>>,
    /// Where it writes how long its parts took.
    #[doc(hidden)]
    pub times: Option<Arc<CallTimes>>,
    /// What the program has decided about the trace of the call.
    #[doc(hidden)]
    pub parent: Parent,
    /// The number in the id while the id is the generated one.
    pub(super) generated_number: Option<u64>,
    /// The name that the model wrote, if a built-in tool such as `call_tool` forwards the call to another tool.
    #[doc(hidden)]
    pub asked: Option<String>,
}

impl ToolCall {
    /// Creates a call of `name` without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        let (number, id) = generate_id();
        Self {
            id,
            generated_number: Some(number),
            asked: None,
            name: name.into(),
            arguments: Arguments::default(),
            text: None,
            reading: None,
            notes: Vec::new(),
            invalid_arguments: None,
            timeout: None,
            context: None,
            progress: None,
            selection: None,
            meta: Map::new(),
            key: None,
            as_task: false,
            delivery: None,
            times: None,
            parent: Parent::Unknown,
        }
    }

    /// Sets the arguments: [`Arguments`], a map, or a JSON value. A value that is not an object fails the call: the reply says so and
    /// nothing is sent.
    ///
    /// ```
    /// # use pegboard_tools::ToolCall;
    /// let call = ToolCall::new("time.now").arguments(serde_json::json!({"zone": "UTC"}));
    /// assert_eq!(call.arguments.as_str(), r#"{"zone":"UTC"}"#);
    /// ```
    #[must_use]
    pub fn arguments<A>(mut self, arguments: A) -> Self
    where
        A: TryInto<Arguments>,
        A::Error: fmt::Display,
    {
        match arguments.try_into() {
            Ok(arguments) => (self.arguments, self.invalid_arguments) = (arguments, None),
            Err(problem) => self.invalid_arguments = Some(problem.to_string()),
        }
        self
    }

    /// Sets the arguments to a value that serialises to a JSON object, such as a struct of the program. Another value fails the call: the reply says
    /// so and nothing is sent.
    ///
    /// ```
    /// # use pegboard_tools::ToolCall;
    /// #[derive(serde::Serialize)]
    /// struct Issue<'a> {
    ///     title: &'a str,
    /// }
    ///
    /// let call = ToolCall::new("github.create_issue").args(Issue { title: "It is late" });
    /// assert_eq!(call.arguments.as_str(), r#"{"title":"It is late"}"#);
    /// ```
    #[must_use]
    pub fn args(mut self, arguments: impl Serialize) -> Self {
        let written = serde_json::value::to_raw_value(&arguments).map_err(|error| error.to_string());
        match written.and_then(|text| Arguments::try_from(text).map_err(|error| error.to_string())) {
            Ok(arguments) => (self.arguments, self.invalid_arguments) = (arguments, None),
            Err(problem) => self.invalid_arguments = Some(problem),
        }
        self
    }

    /// Adds an argument, in place of one of the same name.
    ///
    /// ```
    /// # use pegboard_tools::ToolCall;
    /// let call = ToolCall::new("github.create_issue").arg("body", "Mend it.").arg("title", "It is late");
    /// assert_eq!(call.arguments.as_str(), r#"{"body":"Mend it.","title":"It is late"}"#);
    /// ```
    #[must_use]
    pub fn arg(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        if self.invalid_arguments.is_some() {
            return self;
        }
        let added = serde_json::to_value(&value)
            .map_err(|error| error.to_string())
            .and_then(|value| {
                let mut arguments = self.arguments.by_name()?;
                arguments.insert(name.into(), value);
                Ok(Arguments::from(arguments))
            });
        match added {
            Ok(arguments) => self.arguments = arguments,
            Err(problem) => self.invalid_arguments = Some(problem),
        }
        self
    }

    /// Sets the arguments as a model wrote them.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Sets how the text is parsed, overriding the server's settings.
    #[must_use]
    pub fn reading(mut self, reading: Reading) -> Self {
        self.reading = Some(reading);
        self
    }

    /// Sets the caller's id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self.generated_number = None;
        self
    }

    /// Returns whether the caller set the id.
    #[doc(hidden)]
    pub fn has_given_id(&self) -> bool {
        // The field is public, so it can change without `id`.
        !self
            .generated_number
            .is_some_and(|number| is_generated(&self.id, number))
    }

    /// Returns the name as the model wrote it.
    #[doc(hidden)]
    pub fn asked_name(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.name)
    }

    /// Builds the reply to this call when it ends without an answer of a server, or is never sent.
    pub fn unanswered(&self, outcome: Outcome, latency: Duration) -> Reply {
        Reply {
            asked: self.asked_name().to_owned(),
            id_given: self.has_given_id(),
            ..Reply::unanswered(&self.id, &self.name, outcome, latency)
        }
    }

    /// Sets the limit for the whole call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the servers and tools that this call may use, in place of the view's selection. Share one `Arc` among many calls.
    #[must_use]
    pub fn selection(mut self, selection: impl Into<Arc<Selection>>) -> Self {
        self.selection = Some(selection.into());
        self
    }

    /// Sets the conversation that led to the call, without the system prompt. The summariser of the result sees it.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Sets the channel that receives progress.
    #[must_use]
    pub fn progress(mut self, progress: mpsc::Sender<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets what learns whether the call may have run. A call that the program cancels, by dropping its future, has no reply that says it.
    #[must_use]
    pub fn delivery(mut self, delivery: Arc<dyn Delivery>) -> Self {
        self.delivery = Some(delivery);
        self
    }

    /// Sets where the call writes how long its parts took.
    #[doc(hidden)]
    #[must_use]
    pub fn times(mut self, times: Arc<CallTimes>) -> Self {
        self.times = Some(times);
        self
    }

    /// Runs the call as a task where the tool leaves the choice, so that the server need not hold the request open while it works.
    #[must_use]
    pub fn as_task(mut self) -> Self {
        self.as_task = true;
        self
    }

    /// Adds an entry to the request's `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Makes the call part of a trace: `traceparent` as W3C Trace Context defines it.
    #[must_use]
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        self.meta(meta::TRACEPARENT, traceparent.into())
    }

    /// Sets the idempotency key. Calls of this view, or of views of the same principal with the same credentials and variables, return
    /// the reply of the first one with the same tool, key and arguments, until ten minutes after it ended. The same key with other arguments is refused, and a call that was certainly not executed releases its key.
    /// The server finds the key in `_meta` as `dev.pegboard/idempotencyKey`, and in the argument that the config names (`retry = {
    /// key_argument = "…" }`).
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// A call without arguments.
impl From<&str> for ToolCall {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A call without arguments.
impl From<String> for ToolCall {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// A call with these [arguments](ToolCall::args).
impl<N: Into<String>, A: Serialize> From<(N, A)> for ToolCall {
    fn from((name, arguments): (N, A)) -> Self {
        Self::new(name).args(arguments)
    }
}

/// Generates the id of a call or request, unique in this process, and its number.
pub fn generate_id() -> (u64, String) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Large enough for every number, so that the string is allocated once.
    let mut id = String::with_capacity(25);
    id.push_str(GENERATED);
    let _ = write!(id, "{number}");
    (number, id)
}

/// Returns the number of a generated id.
pub(super) fn generated_number(id: &str) -> Option<u64> {
    id.strip_prefix(GENERATED)?.parse().ok()
}

/// Returns whether `id` is the generated id of this number. Runs for every reply, so it compares digits instead of formatting the number.
fn is_generated(id: &str, mut number: u64) -> bool {
    let Some(digits) = id.strip_prefix(GENERATED) else {
        return false;
    };
    let fits = |digit: u8| {
        let fits = u64::from(digit) == u64::from(b'0') + number % 10;
        number /= 10;
        fits
    };
    !digits.is_empty() && digits.bytes().rev().all(fits) && number == 0
}
