//! A call that runs in the background of its server: started here, asked after and fetched later.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    CallContext, CallGuard, Record, Route, Stop, ToolCall, View, concluded, failure_of, let_in, output_check,
    permission, prepare_arguments, present, unavailable,
};
use crate::{
    catalog::TaskSupport,
    deadline::Deadline,
    outcome::{Failure, Kind, Outcome, Reply},
    server::Live,
    session::{Begun, Call, CallResult, Fault, FaultKind, Patience, Session, Steps, Task, TaskState, TaskStatus},
    status::Era,
};

/// How many sessions may end while a task is waited for, before the waiting ends too.
const LOST_SESSIONS: u32 = 5;
/// The code of a task that was given up.
const GIVEN_UP: i64 = -32800;

/// A call that its server carries out as a task. Dropping the handle leaves the task alone; [`TaskHandle::cancel`] gives it up.
///
/// For events and metrics the call ends when its reply is fetched, or as cancelled when the handle is dropped before that.
#[derive(Debug)]
pub struct TaskHandle {
    view: Arc<View>,
    route: Arc<Route>,
    call: ToolCall,
    record: Record,
    /// Rings the end of the call; taken when its reply is made.
    guard: Option<CallGuard<'static>>,
    live: Live,
    /// The id under which its server knows it.
    id: Option<String>,
    task: Held,
}

#[derive(Debug)]
enum Held {
    /// Its server may tell how far it is for as long as the handle is kept.
    Running(Task, Option<Steps>),
    /// The server answered at once, although it might have taken its time.
    Done(CallResult),
    /// It has ended, and the reply is being made of that. Whoever waited for it may have gone; the next one goes on.
    Closing(TaskStatus, Closing),
    /// It has ended, and everybody was told.
    Ended(TaskStatus, Box<Reply>),
}

/// The reply while it is made. The lock is never taken: it only lets the handle be shared.
struct Closing(Mutex<Pin<Box<dyn Future<Output = Reply> + Send>>>);

impl fmt::Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closing")
    }
}

/// Starts a call as a task. Keys and kept answers are for calls that are waited for.
pub(crate) async fn start(
    view: &Arc<View>,
    route: Arc<Route>,
    mut call: ToolCall,
    started: Instant,
    guard: CallGuard<'_>,
) -> Result<TaskHandle, Box<Reply>> {
    let job = CallContext::new(view, &route, &call, started);
    let let_in = let_in(&job, &mut call).await;
    let mut record = Record::open(&job, &mut call);
    let begun = match let_in {
        Ok(()) => begin(&job, &call, &mut record).await,
        Err(failure) => Err(failure.into()),
    };
    match begun {
        Ok((live, task)) => Ok(TaskHandle {
            view: view.clone(),
            guard: Some(guard.held(view, &route)),
            route: route.clone(),
            call,
            record,
            live,
            id: match &task {
                Held::Running(task, _) => Some(task.id.clone()),
                _ => None,
            },
            task,
        }),
        Err(stop) => Err(Box::new(closed(&job, &mut call, record, guard, Err(stop)).await)),
    }
}

/// Takes up a task that was started earlier, if the server still knows it.
pub(crate) async fn take_up(
    view: &Arc<View>,
    route: Arc<Route>,
    id: &str,
    deadline: Deadline,
) -> Result<TaskHandle, Failure> {
    let server = &route.server;
    let live = server.live(deadline).await;
    let live = live.map_err(|outage| unavailable(server.name().as_str(), &outage))?;
    if !live.session.offers_tasks() {
        let message = format!("server `{}` does not offer tasks", server.name());
        return Err(Failure::new(Kind::Unavailable, message));
    }
    let patience = Patience {
        idle: server.config().limits.call_idle,
        total: deadline,
    };
    let asked = ask(&route, &live, deadline, |live| async move {
        live.session.task_state(id, patience).await
    });
    let task = asked.await.map_err(|fault| {
        let what = format!("taking up a task of {}", route.tool.dotted_name());
        failed(&route, &fault, &what)
    })?;
    let mut call = ToolCall::new(route.tool.dotted_name());
    let started = Instant::now();
    let guard = CallGuard::routed(view, &route, &call, started).held(view, &route);
    let job = CallContext::new(view, &route, &call, started);
    let mut record = Record::open(&job, &mut call);
    record.attempts = 1;
    Ok(TaskHandle {
        view: view.clone(),
        route,
        call,
        record,
        guard: Some(guard),
        live,
        id: Some(id.to_owned()),
        task: Held::Running(task, None),
    })
}

async fn begin(job: &CallContext<'_>, call: &ToolCall, record: &mut Record) -> Result<(Live, Held), Stop> {
    let (view, route, deadline) = (job.view, job.route, job.deadline);
    let arguments = prepare_arguments::arguments(job, call, &mut record.warnings).await?;
    permission::ask(job, call, &arguments).await?;
    let server = &route.server;
    let turn = server.enter_queue(&route.tool.name, deadline).await?;
    record.queued = turn.waited();
    let live = server.live(deadline).await?;
    if !runs_as_task(route, &live.session) {
        let message = format!("{} does not run as a task", route.tool.dotted_name());
        let failure = Failure::new(Kind::InvalidArguments, message);
        return Err(failure.hint("call it; its result comes with the call").into());
    }
    record.attempts = 1;
    let meta = view.hooks.meta(route, call)?;
    let begun = live.session.begin(Call {
        tool: &route.tool,
        arguments: arguments.as_raw(),
        meta: &meta,
        patience: Patience {
            idle: job.config.limits.call_idle,
            total: deadline,
        },
        progress: call.progress.clone(),
        as_task: true,
    });
    let task = match begun.await? {
        Begun::Done(result) => Held::Done(result),
        Begun::Task(task, steps) => Held::Running(*task, steps),
    };
    Ok((live, task))
}

/// The reply to a call that has come to its end, told to all who listen.
async fn closed(
    job: &CallContext<'_>,
    call: &mut ToolCall,
    mut record: Record,
    guard: CallGuard<'_>,
    ended: Result<CallResult, Stop>,
) -> Reply {
    let outcome: Result<Outcome, Stop> = ended.map(|result| {
        let misfit = output_check::misfit(job, &result, &mut record.warnings);
        misfit.unwrap_or_else(|| present::extract(result))
    });
    let mut reply = concluded(job, call, record, outcome).await;
    job.view.hooks.after(job.route, &mut reply).await;
    guard.complete(&reply);
    reply
}

/// In the newest era it is the server that decides, for every tool.
fn runs_as_task(route: &Route, session: &Session) -> bool {
    session.offers_tasks() && (session.facts.era == Era::Modern || route.tool.task_support != TaskSupport::Forbidden)
}

/// Asks about a task, once more in a new session when the one that was used is gone: that does no harm.
async fn ask<T, F>(route: &Route, live: &Live, deadline: Deadline, ask: impl Fn(Live) -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let asked = ask(live.clone()).await;
    match asked {
        Err(fault) if fault.loses_session() => match next_session(route, live, deadline).await {
            Some(live) => ask(live).await,
            None => Err(fault),
        },
        asked => asked,
    }
}

/// The session after one that is gone, if there is one in time.
async fn next_session(route: &Route, gone: &Live, deadline: Deadline) -> Option<Live> {
    let server = &route.server;
    server.replace(gone.generation);
    server.live_after(gone.generation, deadline).await.ok()
}

fn failed(route: &Route, fault: &Fault, what: &str) -> Failure {
    failure_of(fault, what).masked(&route.server.masker().current())
}

impl TaskHandle {
    /// The id under which its server knows it; none when the server answered at once.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The tool: `server.tool`.
    pub fn name(&self) -> String {
        self.route.tool.dotted_name()
    }

    /// Asks how far it is. Once its reply was fetched, nobody is asked any more.
    pub async fn status(&self) -> Result<TaskState, Failure> {
        let task = match &self.task {
            Held::Running(task, _) => task,
            Held::Done(result) => return Ok(known(status_of(result))),
            Held::Closing(status, _) | Held::Ended(status, _) => return Ok(known(*status)),
        };
        let limits = self.route.server.config().limits;
        let patience = Patience {
            idle: limits.call_idle,
            total: Deadline::within(limits.call_idle),
        };
        let asked = ask(&self.route, &self.live, patience.total, |live| async move {
            live.session.task_state(&task.id, patience).await
        });
        let what = || format!("asking after the task of {}", self.name());
        asked
            .await
            .map(|task| task.state)
            .map_err(|fault| failed(&self.route, &fault, &what()))
    }

    /// Waits for its end, at most for `patience`, and returns the reply of the call. The task itself is left alone when the time is up or
    /// the future is dropped, so this can be asked again; once it has ended, it is the same reply each time. Hooks, budgets and listeners
    /// hear of that one, and not of the replies that only say that the task has not ended yet.
    pub async fn result(&mut self, patience: Duration) -> Reply {
        let deadline = Deadline::within(patience);
        loop {
            match &mut self.task {
                Held::Ended(_, reply) => return Reply::clone(reply),
                Held::Closing(status, closing) => {
                    let status = *status;
                    let reply = closing.0.get_mut().unwrap_or_else(PoisonError::into_inner).await;
                    self.task = Held::Ended(status, Box::new(reply));
                }
                Held::Done(result) => {
                    let result = std::mem::take(result);
                    self.close(Ok(result), deadline);
                }
                Held::Running(task, steps) => {
                    match followed(&self.route, &mut self.live, task, steps, deadline).await {
                        Err(fault) if !is_end(&fault) => return self.not_yet(&fault, patience, deadline).await,
                        ended => self.close(ended, deadline),
                    }
                }
            }
        }
    }

    /// Makes the reply of how it ended, once and for all.
    fn close(&mut self, ended: Result<CallResult, Fault>, deadline: Deadline) {
        let status = match &ended {
            Ok(result) => status_of(result),
            Err(fault) if fault.code() == Some(GIVEN_UP) => TaskStatus::Cancelled,
            Err(_) => TaskStatus::Failed,
        };
        let (view, route) = (self.view.clone(), self.route.clone());
        let (mut call, record) = (self.call.clone(), self.record.clone());
        let guard = self.guard.take().expect("a call is closed once");
        let closing = async move {
            let job = CallContext::until(&view, &route, deadline);
            closed(&job, &mut call, record, guard, ended.map_err(Stop::from)).await
        };
        self.task = Held::Closing(status, Closing(Mutex::new(Box::pin(closing))));
    }

    /// A reply that says only that there is none yet.
    async fn not_yet(&self, fault: &Fault, waited: Duration, deadline: Deadline) -> Reply {
        let (name, id) = (self.name(), self.id().unwrap_or_default().escape_debug());
        let failure = failed(&self.route, fault, &format!("waiting for the task of {name}"));
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
        let job = CallContext::until(&self.view, &self.route, deadline);
        let presented = present::present(&job, &self.call, outcome).await;
        let reply = self.record.clone().close(&job, &mut self.call.clone(), presented);
        if reply.untrusted {
            self.view.rules.taint();
        }
        reply
    }

    /// Asks the server to give it up. The server may finish it all the same. One that has ended is left alone.
    pub async fn cancel(&self) -> Result<(), Failure> {
        let Held::Running(task, _) = &self.task else {
            return Ok(());
        };
        if !self.live.session.cancels_tasks() {
            let message = format!(
                "server `{}` does not let its tasks be cancelled",
                self.route.server.name()
            );
            return Err(Failure::new(Kind::Unavailable, message));
        }
        let deadline = Deadline::within(self.route.server.config().limits.call_idle);
        let asked = ask(&self.route, &self.live, deadline, |live| async move {
            live.session.cancel_task(&task.id).await
        });
        let what = || format!("cancelling the task of {}", self.name());
        asked.await.map_err(|fault| failed(&self.route, &fault, &what()))
    }
}

/// Follows a task to its end, also in the sessions that come after the one in which it was started.
async fn followed(
    route: &Route,
    live: &mut Live,
    task: &Task,
    steps: &mut Option<Steps>,
    deadline: Deadline,
) -> Result<CallResult, Fault> {
    let patience = Patience {
        idle: route.server.config().limits.call_idle,
        total: deadline,
    };
    let mut lost = 0;
    loop {
        match live.session.follow(task.clone(), patience, steps.as_mut()).await {
            Err(fault) if fault.loses_session() && lost < LOST_SESSIONS => {
                lost += 1;
                *live = next_session(route, live, deadline).await.ok_or(fault)?;
            }
            followed => return followed,
        }
    }
}

/// Whether a fault is what the server has to say about the task, as opposed to one of asking.
fn is_end(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Error(_) | FaultKind::Unreadable(_))
}

fn status_of(result: &CallResult) -> TaskStatus {
    if result.is_error {
        TaskStatus::Failed
    } else {
        TaskStatus::Completed
    }
}

fn known(status: TaskStatus) -> TaskState {
    TaskState { status, message: None }
}
