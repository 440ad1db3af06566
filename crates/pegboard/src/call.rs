//! The path of a tool call, in order: route, hooks, arguments, permission, cache, queue, delivery with retries, presentation of the result.

mod approval;
mod cache;
mod deliver;
mod embeddings;
mod guard;
mod hook;
mod idempotency;
mod model;
mod output_check;
mod output_handles;
mod permission;
mod prepare_arguments;
mod present;
mod progress;
mod record;
mod resource;
mod result_options;
mod retry;
mod route;
mod rules;
mod stop;
mod stream;
mod summarise;
mod task;
mod trace;
mod view;
mod visibility;

pub use approval::{Approvals, Approved, Approver, Decision, Question};
pub use embeddings::Embedder;
pub(crate) use embeddings::Embeddings;
pub(crate) use guard::CallGuard;
pub use hook::{Budget, Called, Hook};
pub(crate) use resource::read_resource;
pub(crate) use route::{
    Route, RouteTable, Routed, Unroutable, ambiguous, folded, listed, may_be_of, tool_of, variants,
};
pub use rules::Proposed;
pub(crate) use stop::{failure_of, unavailable};
pub use stream::{CallEvent, CallStream};
#[cfg(feature = "http")]
pub use summarise::ChatModel;
pub use summarise::{Summariser, Summary, SummaryError, SummaryRequest};
pub use task::TaskHandle;
pub(crate) use task::{start, take_up};
pub(crate) use trace::{is_traced, traced};
pub use view::View;
pub(crate) use visibility::Visibility;

use record::Record;
use retry::ToolClass;
use stop::{Stop, after_a_lost_attempt};

use std::{
    fmt::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    args::Arguments,
    catalog::Tool,
    config::{Reading, ServerConfig},
    deadline::Deadline,
    filter::Selection,
    name,
    outcome::{Failure, Outcome, Reply},
    server::Server,
    session::Progress,
};

/// Prefix of generated call ids.
const OURS: &str = "call-";

/// One tool call as the caller requests it.
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
    pub(crate) notes: Vec<String>,
    /// Why the given arguments are unusable.
    pub(crate) unfit: Option<String>,
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
    /// The number in the id while the id is the generated one.
    numbered: Option<u64>,
    /// The name that the model wrote, if a built-in tool such as `call_tool` forwards the call to another tool.
    pub(crate) asked: Option<String>,
}

impl ToolCall {
    /// Creates a call of `name` without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Large enough for every number, so that the string is allocated once.
        let mut id = String::with_capacity(25);
        id.push_str(OURS);
        let _ = write!(id, "{number}");
        Self {
            id,
            numbered: Some(number),
            asked: None,
            name: name.into(),
            arguments: Arguments::default(),
            text: None,
            reading: None,
            notes: Vec::new(),
            unfit: None,
            timeout: None,
            context: None,
            progress: None,
            selection: None,
            meta: Map::new(),
            key: None,
            as_task: false,
        }
    }

    /// Sets the arguments: [`Arguments`], a map, or a JSON value. A value that is not an object fails the call: the reply says so and
    /// nothing is sent.
    ///
    /// ```
    /// # use pegboard::ToolCall;
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
            Ok(arguments) => (self.arguments, self.unfit) = (arguments, None),
            Err(problem) => self.unfit = Some(problem.to_string()),
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
        self.numbered = None;
        self
    }

    /// Returns whether the caller set the id.
    fn has_given_id(&self) -> bool {
        // The field is public, so it can change without `id`.
        !self.numbered.is_some_and(|number| is_ours(&self.id, number))
    }

    /// Returns the name as the model wrote it.
    fn asked(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.name)
    }

    /// Builds the reply to this call when it ends without an answer of a server, or is never sent.
    pub fn unanswered(&self, outcome: Outcome, latency: Duration) -> Reply {
        Reply {
            asked: self.asked().to_owned(),
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
        self.meta("traceparent", traceparent.into())
    }

    /// Sets the idempotency key. Calls of this view with the same tool, key and arguments return the reply of the first one, until ten
    /// minutes after it ended. The same key with other arguments is refused, and a call that was certainly not executed releases its key.
    /// The server finds the key in `_meta` as `dev.pegboard/idempotencyKey`, and in the argument that the config names (`retry = {
    /// key_argument = "…" }`).
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Returns whether `id` is the generated id of this number. Runs for every reply, so it compares digits instead of formatting the number.
fn is_ours(id: &str, mut number: u64) -> bool {
    let Some(digits) = id.strip_prefix(OURS) else {
        return false;
    };
    let fits = |digit: u8| {
        let fits = u64::from(digit) == u64::from(b'0') + number % 10;
        number /= 10;
        fits
    };
    !digits.is_empty() && digits.bytes().rev().all(fits) && number == 0
}

/// The state that all steps of a call share.
pub(crate) struct CallContext<'a> {
    view: &'a View,
    route: &'a Route,
    /// A snapshot of the server's settings, taken when the call began.
    config: Arc<ServerConfig>,
    started: Instant,
    /// The one deadline for everything the call waits for.
    deadline: Deadline,
}

impl<'a> CallContext<'a> {
    fn new(view: &'a View, route: &'a Route, call: &ToolCall, started: Instant) -> Self {
        let config = route.server.kept_config();
        let most = config.limits.call_total;
        Self {
            view,
            route,
            deadline: Deadline::after(started, call.timeout.unwrap_or(most).min(most)),
            config,
            started,
        }
    }

    /// Creates the context of a call that began earlier, for the rest of its time.
    fn until(view: &'a View, route: &'a Route, deadline: Deadline) -> Self {
        Self {
            view,
            route,
            config: route.server.kept_config(),
            started: Instant::now(),
            deadline,
        }
    }

    fn server(&self) -> &'a Server {
        &self.route.server
    }

    fn tool(&self) -> &'a Tool {
        &self.route.tool
    }
}

/// Runs a call on its route. Moves the id and the name out of `call` into the reply.
pub(crate) async fn run(
    view: &View,
    route: &Route,
    call: &mut ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
) -> Reply {
    let job = CallContext::new(view, route, call, started);
    let mut reply = match let_in(&job, call).await {
        // Boxed, because calls with a key are rare and every call would pay for the space.
        Ok(()) if call.key.is_some() => Box::pin(once(&job, call)).await,
        Ok(()) => recorded(&job, call).await,
        Err(failure) => {
            let record = Record::open(&job, call);
            concluded(&job, call, record, Err(failure.into())).await
        }
    };
    view.hooks.after(route, &mut reply).await;
    guard.complete(&reply);
    reply
}

/// Parses the arguments and runs the `before` hooks, which then see the parsed form.
async fn let_in(job: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    prepare_arguments::read(job, call)?;
    job.view.hooks.before(job.route, call, job.deadline).await
}

/// Runs the call, or returns the reply of an earlier call with the same idempotency key.
async fn once(job: &CallContext<'_>, call: &mut ToolCall) -> Reply {
    let name = job.tool().dotted_name();
    let key = idempotency::IdempotencyKey {
        tool: name.clone(),
        word: call.key.clone().unwrap_or_default(),
    };
    let (id, asked, id_given) = (call.id.clone(), call.asked().to_owned(), call.has_given_id());
    let arguments = call.arguments.clone();
    let making = recorded(job, call);
    let reply = job.view.keys.once(key, &arguments, job.deadline, making).await;
    Reply {
        id,
        name,
        asked,
        id_given,
        server: Some(job.server().name().clone()),
        tool: Some(job.tool().name.clone()),
        latency: job.started.elapsed(),
        ..reply
    }
}

/// Runs the call and records how it went.
async fn recorded(job: &CallContext<'_>, call: &mut ToolCall) -> Reply {
    let mut record = Record::open(job, call);
    let ended = attempt(job, call, &mut record).await;
    concluded(job, call, record, ended).await
}

/// Turns the result of a call into its reply, and counts it.
async fn concluded(
    job: &CallContext<'_>,
    call: &mut ToolCall,
    mut record: Record,
    ended: Result<Outcome, Stop>,
) -> Reply {
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(stop) => {
            stop.count_masked(&mut record.masked);
            stop.into_outcome(job.route)
        }
    };
    let outcome = if record.may_have_run {
        after_a_lost_attempt(outcome, &job.tool().dotted_name())
    } else {
        outcome
    };
    let presented = present::present(job, call, outcome).await;
    let reply = record.close(job, call, presented);
    job.server().counts().took(&reply);
    job.server().count_for_view(&reply);
    job.server().remember_failure(&reply);
    if reply.untrusted {
        job.view.rules.taint();
    }
    reply
}

/// Builds the reply to a call without a route. It names server and tool if the name identifies them.
pub(crate) fn refuse(call: &ToolCall, astray: Unroutable, started: Instant, guard: CallGuard<'_>) -> Reply {
    let mut reply = call.unanswered(Outcome::Refused(astray.failure), started.elapsed());
    if let Some((server, tool)) = astray.meant {
        reply.name = name::dotted(server.as_str(), &tool);
        (reply.server, reply.tool) = (Some(server), Some(tool));
    }
    guard.complete(&reply);
    reply
}

/// Runs the steps of a call in order.
async fn attempt(job: &CallContext<'_>, call: &ToolCall, record: &mut Record) -> Result<Outcome, Stop> {
    let arguments = prepare_arguments::arguments(job, call, &mut record.warnings).await?;
    permission::ask(job, call, &arguments).await?;
    job.view.check_open()?;
    let cache = &job.view.cache;
    let question = cache::CacheKey::of(job, &arguments);
    if let Some(answer) = question.as_ref().and_then(|(question, _)| cache.get(question)) {
        record.cached = true;
        return Ok(Outcome::Done(answer));
    }
    let result = deliver::delivered(job, call, &arguments, record).await?;
    if let Some(failed) = output_check::misfit(job, &result, &mut record.warnings) {
        return Ok(failed);
    }
    // A user's input to one call must not answer the next one.
    let question = question.filter(|_| !result.had_input);
    let outcome = present::extract(result);
    if let (Some((question, lifetime)), Outcome::Done(answer)) = (question, &outcome) {
        cache.put(*question, answer, lifetime);
    }
    Ok(outcome)
}
