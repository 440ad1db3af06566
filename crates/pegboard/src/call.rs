//! The path of a tool call, top to bottom: hooks, arguments, permission, a kept answer, a turn, the server, the exchange, what is made of
//! the result.

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

/// How the ids begin that we make up.
const OURS: &str = "call-";

/// One call as a caller asks for it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The caller's id for it, told in the reply.
    pub id: String,
    /// The tool, in any naming style.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// What a model wrote instead; it becomes the arguments when it is known which tool is meant, before any hook sees the call.
    pub text: Option<String>,
    /// How the text is read; as the server's settings say when not set.
    pub reading: Option<Reading>,
    /// What had to be done to read it.
    pub(crate) notes: Vec<String>,
    /// Why what was given as the arguments cannot be that.
    pub(crate) unfit: Option<String>,
    /// The limit for the whole call, besides the server's own limits.
    pub timeout: Option<Duration>,
    /// The conversation that led to it, for whoever summarises the result.
    pub context: Option<String>,
    /// Where progress goes. When the channel is full, steps are left out.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// The servers and tools that this call may use, in place of the view's selection.
    pub selection: Option<Arc<Selection>>,
    /// What goes with it in `_meta`: trace context, a tenant, whatever the server understands. The protocol's own keys are left out.
    pub meta: Map<String, Value>,
    /// A key that makes the call unique: a second call with it is not made, it gets the first one's reply. See [`ToolCall::key`].
    pub key: Option<String>,
    /// Whether it should run as a task where the tool leaves the choice.
    pub as_task: bool,
    /// The number in the id, while it is the one that we made up.
    numbered: Option<u64>,
    /// The name that the model wrote, where that is not the tool which is called: one of ours passes the call on.
    pub(crate) asked: Option<String>,
}

impl ToolCall {
    /// A call of `name` without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // With room for the largest number, so that it is not made twice.
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

    /// Sets the arguments: [`Arguments`], a map, or a JSON value. One that is no object is told in the reply; nothing is called with it.
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

    /// Sets how the text is read, whatever the server's settings say.
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

    /// Whether the id came from the caller.
    fn has_given_id(&self) -> bool {
        // It can be set without `id` too.
        !self.numbered.is_some_and(|number| is_ours(&self.id, number))
    }

    /// The name as the model wrote it.
    fn asked(&self) -> &str {
        self.asked.as_deref().unwrap_or(&self.name)
    }

    /// The reply to this call if it ends before a server has answered it, or is never made.
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

    /// Sets the servers and tools that this call may use, in place of the view's selection. One that is used for many calls is best shared.
    #[must_use]
    pub fn selection(mut self, selection: impl Into<Arc<Selection>>) -> Self {
        self.selection = Some(selection.into());
        self
    }

    /// Tells the conversation that led to the call, without the system's part. Whoever summarises the result is told what it was wanted for.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Sets where progress goes.
    #[must_use]
    pub fn progress(mut self, progress: mpsc::Sender<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Has the tool run as a task where it leaves the choice, so that the server need not hold the call open while it works.
    #[must_use]
    pub fn as_task(mut self) -> Self {
        self.as_task = true;
        self
    }

    /// Adds a fact for the server to `_meta`.
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

    /// Sets the key under which the call is made once and not again: calls of this view with the same tool, key and arguments get the reply
    /// of the first one, until ten minutes after it ended. The same key with other arguments is refused, and a call that was surely not
    /// carried out leaves its key free. The server finds the key in `_meta` as `dev.pegboard/idempotencyKey`, and in the argument that the
    /// config names for that (`retry = { key_argument = "…" }`).
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Whether an id is the one that we made up of this number. Every reply asks, so the number is not written out for that.
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

/// What all steps of a call look at.
pub(crate) struct CallContext<'a> {
    view: &'a View,
    route: &'a Route,
    /// The server's settings when the call began. They hold to its end.
    config: Arc<ServerConfig>,
    started: Instant,
    /// The one limit for all that the call waits for.
    deadline: Deadline,
}

impl<'a> CallContext<'a> {
    fn new(view: &'a View, route: &'a Route, call: &ToolCall, started: Instant) -> Self {
        let config = route.server.config_snapshot();
        let most = config.limits.call_total;
        Self {
            view,
            route,
            deadline: Deadline::after(started, call.timeout.unwrap_or(most).min(most)),
            config,
            started,
        }
    }

    /// What is left of a call that began earlier.
    fn until(view: &'a View, route: &'a Route, deadline: Deadline) -> Self {
        Self {
            view,
            route,
            config: route.server.config_snapshot(),
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

/// Carries a call out on the route that was found for it. The reply takes what it repeats of the call's words.
pub(crate) async fn run(
    view: &View,
    route: &Route,
    call: &mut ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
) -> Reply {
    let job = CallContext::new(view, route, call, started);
    let mut reply = match let_in(&job, call).await {
        // Boxed, because calls with a key are rare and every call would pay for the room.
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

/// Reads the call's arguments, so that all that follow see the same, and lets the hooks look at it.
async fn let_in(job: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    prepare_arguments::read(job, call)?;
    job.view.hooks.before(job.route, call, job.deadline).await
}

/// Makes the call, or gives the reply to an earlier one with the same key.
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

/// Makes the call, and writes down how it went.
async fn recorded(job: &CallContext<'_>, call: &mut ToolCall) -> Reply {
    let mut record = Record::open(job, call);
    let ended = attempt(job, call, &mut record).await;
    concluded(job, call, record, ended).await
}

/// The reply to a call that has come to its end, well or not.
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

/// The reply to a call that has no route. It names server and tool as far as the call's name says which are meant.
pub(crate) fn refuse(call: &ToolCall, astray: Unroutable, started: Instant, guard: CallGuard<'_>) -> Reply {
    let mut reply = call.unanswered(Outcome::Refused(astray.failure), started.elapsed());
    if let Some((server, tool)) = astray.meant {
        reply.name = name::dotted(server.as_str(), &tool);
        (reply.server, reply.tool) = (Some(server), Some(tool));
    }
    guard.complete(&reply);
    reply
}

/// The steps of a call, in order.
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
    // What a user said once is not said for the next call.
    let question = question.filter(|_| !result.had_input);
    let outcome = present::extract(result);
    if let (Some((question, lifetime)), Outcome::Done(answer)) = (question, &outcome) {
        cache.put(*question, answer, lifetime);
    }
    Ok(outcome)
}
