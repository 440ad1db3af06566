//! Calls that run as tasks: started here, polled and fetched later.

use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use pegboard_protocol::code;
use tokio::time::Instant;

use super::{
    admit::admit,
    audit_trail, conclude,
    context::CallContext,
    crossing,
    error::{CallError, outage_failure, request_failure},
    guard::CallGuard,
    native_caller::with_caller,
    output_check,
    owner_usage::InFlightSlot,
    permission, prepare_arguments, present,
    record::CallRecord,
    route::resolved::Route,
    view::View,
};
use crate::status::Era;
use crate::{audit::AuditRule, server::Live};
use pegboard_base::deadline::Deadline;
use pegboard_base::sync::Mutex;
use pegboard_client::session::{
    Call, CallResponse, CallResult, Fault, FaultKind, OnBehalf, PassOn, Patience, Session, Task, TaskContext,
    TaskState, TaskStatus,
};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    catalog::TaskSupport,
    outcome::{Failure, Kind, Outcome, Reply},
};

/// How many sessions may end while a task is awaited.
const MAX_LOST_SESSIONS: u32 = 5;

/// A call that its server runs as a task. Dropping the handle does not affect the task; [`TaskHandle::cancel`] cancels it.
///
/// For events and metrics the call ends when its reply is fetched, or as cancelled when the handle is dropped before that.
#[derive(Debug)]
pub struct TaskHandle {
    view: Arc<View>,
    route: Arc<Route>,
    call: ToolCall,
    record: CallRecord,
    /// Ends the call for events and metrics; taken when its reply is built.
    guard: Option<CallGuard<'static>>,
    /// Counts the task among the calls in flight of its owner; taken when its end is seen.
    slot: Option<InFlightSlot>,
    live: Live,
    /// The server's id of the task.
    id: Option<String>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// In flight. The server may send progress for as long as the handle exists.
    Running(Box<Task>, TaskContext),
    /// The server answered at once instead of creating a task.
    Answered(CallResult),
    /// The task has ended and its reply is being built. If the awaiting caller is dropped, the next one continues.
    Replying(TaskStatus, PendingReply),
    /// The task has ended and its end was reported.
    Ended(TaskStatus, Box<Reply>),
}

/// The future of the reply. The mutex is never locked: it only makes the handle `Sync`.
struct PendingReply(Mutex<Pin<Box<dyn Future<Output = Reply> + Send>>>);

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingReply")
    }
}

/// Starts a call as a task. Idempotency keys and the cache do not apply.
pub(crate) async fn start_task(
    view: &Arc<View>,
    route: Arc<Route>,
    mut call: ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
) -> Result<TaskHandle, Box<Reply>> {
    let context = CallContext::new(view, &route, &call, started);
    let admitted = admit(&context, &mut call).await;
    let mut record = CallRecord::open(&context, &mut call);
    let begun = match admitted {
        Ok(slot) => begin(&context, &call, &mut record).await.map(|begun| (slot, begun)),
        Err(failure) => Err(failure.into()),
    };
    match begun {
        Ok((slot, (live, stage))) => Ok(TaskHandle {
            slot,
            view: view.clone(),
            guard: Some(guard.into_shared(view, &route)),
            route: route.clone(),
            call,
            record,
            live,
            id: match &stage {
                Stage::Running(task, _) => Some(task.id.clone()),
                _ => None,
            },
            stage,
        }),
        Err(error) => Err(Box::new(finish(&context, &mut call, record, guard, Err(error)).await)),
    }
}

/// Attaches to a task that was started earlier, if the server still knows it.
pub(crate) async fn attach_task(
    view: &Arc<View>,
    route: Arc<Route>,
    id: &str,
    deadline: Deadline,
) -> Result<TaskHandle, Failure> {
    let server = &route.server;
    let live = server.ensure_live(deadline).await;
    let live = live.map_err(|outage| outage_failure(server.name().as_str(), &outage))?;
    if !live.session.peer.offers_tasks() {
        let message = format!("server `{}` does not offer tasks", server.name());
        return Err(Failure::new(Kind::Unavailable, message));
    }
    let patience = Patience {
        idle: server.config().limits.call_timeout,
        total: deadline,
    };
    let response = request(&route, &live, deadline, |live| async move {
        live.session.tasks().state(id, patience).await
    });
    let task = response.await.map_err(|fault| {
        let what = format!("taking up a task of {}", route.name_for(view.audience));
        task_request_failure(&route, &fault, &what)
    })?;
    let mut call = ToolCall::new(route.tool.dotted_name());
    let started = Instant::now();
    let guard = CallGuard::open_on_route(view, &route, &call, started).into_shared(view, &route);
    let context = CallContext::new(view, &route, &call, started);
    let mut record = CallRecord::open(&context, &mut call);
    record.attempts = 1;
    Ok(TaskHandle {
        view: view.clone(),
        route,
        call,
        record,
        guard: Some(guard),
        slot: None,
        live,
        id: Some(id.to_owned()),
        stage: Stage::Running(Box::new(task), TaskContext::default()),
    })
}

async fn begin(
    context: &CallContext<'_>,
    call: &ToolCall,
    record: &mut CallRecord,
) -> Result<(Live, Stage), CallError> {
    let (view, route, deadline) = (context.view, context.route, context.deadline);
    let arguments = prepare_arguments::prepare(context, call, &mut record.warnings).await;
    let arguments = arguments.map_err(|failure| audit_trail::deny(context, call, AuditRule::Arguments, failure))?;
    let arguments = crossing::check(context, arguments, &mut record.warnings);
    let arguments = arguments.map_err(|failure| audit_trail::deny(context, call, AuditRule::Crossing, failure))?;
    permission::obtain(context, call, &arguments, record).await?;
    view.check_open()?;
    let server = &route.server;
    let permit = server.permit_call(&route.tool.name, &view.owner, deadline).await?;
    record.queued = permit.wait_time();
    let live = server.ensure_live(deadline).await?;
    if !runs_as_task(route, &live.session) {
        let message = format!("{} does not run as a task", context.tool_name());
        let failure = Failure::new(Kind::InvalidArguments, message);
        return Err(failure.hint("call it; its result comes with the call").into());
    }
    record.attempts = 1;
    let meta = view.hooks.meta(route, view.caller_view(), call)?;
    let meta = with_caller(meta, view, route, call);
    if let Some(delivery) = &call.delivery {
        delivery.sending();
    }
    let begun = live.session.start_call(Call {
        tool: &route.tool,
        arguments: arguments.as_raw(),
        meta: &meta,
        patience: Patience {
            idle: context.config.limits.call_timeout,
            total: deadline,
        },
        on_behalf: view.on_behalf(call),
        progress: call.progress.clone(),
        as_task: true,
        pass_on: PassOn::default(),
    });
    let stage = match begun.await? {
        CallResponse::Result(result) => Stage::Answered(result),
        CallResponse::Task(task, context) => Stage::Running(task, context),
    };
    Ok((live, stage))
}

/// Builds the reply to an ended call and reports it to hooks, events and metrics.
async fn finish(
    context: &CallContext<'_>,
    call: &mut ToolCall,
    mut record: CallRecord,
    guard: CallGuard<'_>,
    result: Result<CallResult, CallError>,
) -> Reply {
    let outcome: Result<Outcome, CallError> = result.map(|result| {
        let failed = output_check::check(context, &result, &mut record.warnings);
        failed.unwrap_or_else(|| present::extract(result))
    });
    let reply = conclude::conclude(context, call, record, outcome).await;
    conclude::report(context, call, reply, guard).await
}

/// Returns whether a call can run as a task. In the modern era the server decides that for each call; before, the tool declares it.
fn runs_as_task(route: &Route, session: &Session) -> bool {
    session.peer.offers_tasks()
        && (session.peer.era == Era::Modern || route.tool.task_support != TaskSupport::Forbidden)
}

/// Sends a request about a task. Retries once on a new session if the session is lost: these requests are safe to retry.
async fn request<T, F>(route: &Route, live: &Live, deadline: Deadline, send: impl Fn(Live) -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    match send(live.clone()).await {
        Err(fault) if fault.loses_session() => match next_session(route, live, deadline).await {
            Some(live) => send(live).await,
            None => Err(fault),
        },
        result => result,
    }
}

/// Replaces a lost session and waits for the next one.
async fn next_session(route: &Route, lost_session: &Live, deadline: Deadline) -> Option<Live> {
    let server = &route.server;
    server.connections().replace(lost_session.generation);
    server.ensure_live_after(lost_session.generation, deadline).await.ok()
}

fn task_request_failure(route: &Route, fault: &Fault, what: &str) -> Failure {
    request_failure(&route.server, fault, what)
}

impl TaskHandle {
    /// The server's id of the task; `None` if the server answered at once.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The tool: `server.tool`.
    pub fn name(&self) -> String {
        self.route.tool.dotted_name()
    }

    /// The name of the tool in texts.
    fn shown_name(&self) -> Cow<'_, str> {
        self.route.name_for(self.view.audience)
    }

    /// Requests the task's status. Once its reply was fetched, returns the final status without a request.
    pub async fn status(&self) -> Result<TaskState, Failure> {
        let task = match &self.stage {
            Stage::Running(task, _) => task,
            Stage::Answered(result) => return Ok(state_without_message(status_of(result))),
            Stage::Replying(status, _) | Stage::Ended(status, _) => return Ok(state_without_message(*status)),
        };
        let limits = self.route.server.config().limits;
        let patience = Patience {
            idle: limits.call_timeout,
            total: Deadline::within(limits.call_timeout),
        };
        let response = request(&self.route, &self.live, patience.total, |live| async move {
            live.session.tasks().state(&task.id, patience).await
        });
        let what = || format!("asking after the task of {}", self.shown_name());
        response
            .await
            .map(|task| task.state)
            .map_err(|fault| task_request_failure(&self.route, &fault, &what()))
    }

    /// Waits for the task's end, at most for `patience`, and returns the reply of the call. A timeout or a dropped future does not affect
    /// the task, so this can be called again; once the task has ended, every call returns the same reply. Hooks, budgets and events see
    /// that reply, and not those that only say that the task has not ended yet.
    pub async fn result(&mut self, patience: Duration) -> Reply {
        let deadline = Deadline::within(patience);
        loop {
            match &mut self.stage {
                Stage::Ended(_, reply) => return Reply::clone(reply),
                Stage::Replying(status, pending) => {
                    let status = *status;
                    let reply = pending.0.get_mut().await;
                    self.stage = Stage::Ended(status, Box::new(reply));
                }
                Stage::Answered(result) => {
                    let result = std::mem::take(result);
                    self.end(Ok(result), deadline);
                }
                Stage::Running(task, context) => {
                    let on_behalf = self.view.on_behalf(&self.call);
                    match follow(&self.route, &mut self.live, task, context, on_behalf, deadline).await {
                        Err(fault) if !is_task_error(&fault) => return self.not_yet(&fault, patience, deadline).await,
                        result => self.end(result, deadline),
                    }
                }
            }
        }
    }

    /// Starts building the final reply.
    fn end(&mut self, result: Result<CallResult, Fault>, deadline: Deadline) {
        let status = match &result {
            Ok(result) => status_of(result),
            Err(fault) if fault.code() == Some(code::REQUEST_CANCELLED) => TaskStatus::Cancelled,
            Err(_) => TaskStatus::Failed,
        };
        let (view, route) = (self.view.clone(), self.route.clone());
        let (mut call, record) = (self.call.clone(), self.record.clone());
        let guard = self.guard.take().expect("a call is closed once");
        self.slot = None;
        let pending = async move {
            let context = CallContext::until(&view, &route, deadline);
            finish(&context, &mut call, record, guard, result.map_err(CallError::from)).await
        };
        self.stage = Stage::Replying(status, PendingReply(Mutex::new(Box::pin(pending))));
    }

    /// A reply that says that the task has not ended yet.
    async fn not_yet(&self, fault: &Fault, waited: Duration, deadline: Deadline) -> Reply {
        let (name, id) = (self.shown_name(), self.id().unwrap_or_default().escape_debug());
        let failure = task_request_failure(&self.route, fault, &format!("waiting for the task of {name}"));
        let message = match failure.kind {
            Kind::Timeout => format!(
                "the task `{id}` of {name} has not ended within {} s. It goes on, and can be asked after again.",
                waited.as_secs_f64()
            ),
            _ => format!(
                "{}. The task `{id}` may go on, and can be asked after again.",
                failure.message
            ),
        };
        let outcome = Outcome::Lost(Failure {
            message,
            ..failure.after_sending()
        });
        let context = CallContext::until(&self.view, &self.route, deadline);
        let presented = present::present(&context, &self.call, outcome).await;
        let reply = self.record.clone().close(&context, &mut self.call.clone(), presented);
        if reply.untrusted {
            self.view.rules.taint.mark(self.route.server.name());
        }
        reply
    }

    /// Requests cancellation. The server may still complete the task. Does nothing for a task whose result was fetched. Fails if the server
    /// does not support cancellation.
    pub async fn cancel(&self) -> Result<(), Failure> {
        let Stage::Running(task, _) = &self.stage else {
            return Ok(());
        };
        if !self.live.session.peer.cancels_tasks() {
            let message = format!(
                "server `{}` does not let its tasks be cancelled",
                self.route.server.name()
            );
            return Err(Failure::new(Kind::Unavailable, message));
        }
        let deadline = Deadline::within(self.route.server.config().limits.call_timeout);
        let response = request(&self.route, &self.live, deadline, |live| async move {
            live.session.tasks().cancel(&task.id).await
        });
        let what = || format!("cancelling the task of {}", self.shown_name());
        response
            .await
            .map_err(|fault| task_request_failure(&self.route, &fault, &what()))
    }
}

/// Follows a task to its end, across sessions if necessary.
async fn follow(
    route: &Route,
    live: &mut Live,
    task: &Task,
    context: &mut TaskContext,
    on_behalf: OnBehalf<'_>,
    deadline: Deadline,
) -> Result<CallResult, Fault> {
    let patience = Patience {
        idle: route.server.config().limits.call_timeout,
        total: deadline,
    };
    let mut lost = 0;
    loop {
        live.session.tasks().adopt(context, on_behalf);
        let result = live
            .session
            .tasks()
            .await_result(task.clone(), patience, on_behalf, context);
        match result.await {
            Err(fault) if fault.loses_session() && lost < MAX_LOST_SESSIONS => {
                lost += 1;
                *live = next_session(route, live, deadline).await.ok_or(fault)?;
            }
            result => return result,
        }
    }
}

/// Returns whether a fault is the task's own error, and not a failure of the request for its result.
fn is_task_error(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Error(_) | FaultKind::Unreadable(_))
}

fn status_of(result: &CallResult) -> TaskStatus {
    if result.is_error {
        TaskStatus::Failed
    } else {
        TaskStatus::Completed
    }
}

fn state_without_message(status: TaskStatus) -> TaskState {
    TaskState { status, message: None }
}
