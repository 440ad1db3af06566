//! A call that runs in the background of its server: started here, asked after and fetched later.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Record, Route, Stop, ToolCall, View, concluded, created, deadline, failure_of, let_in, output, permit, prepare,
    present,
};
use crate::{
    catalog::TaskSupport,
    deadline::Deadline,
    event::Event,
    outcome::{Failure, Kind, Outcome, Reply},
    server::Live,
    session::{Begun, Call, CallResult, Patience, Session, Steps, Task, TaskState, TaskStatus},
    status::Era,
};

/// A call that its server carries out as a task. Dropping the handle leaves the task alone; [`TaskHandle::cancel`] gives it up.
#[derive(Debug)]
pub struct TaskHandle {
    view: Arc<View>,
    route: Arc<Route>,
    call: ToolCall,
    record: Record,
    live: Live,
    task: Held,
}

#[derive(Debug)]
enum Held {
    /// Its server may tell how far it is for as long as the handle is kept.
    Running(Task, Option<Steps>),
    /// The server answered at once, although it might have taken its time.
    Done(CallResult),
}

/// Starts a call as a task. Keys and kept answers are for calls that are waited for.
pub(crate) async fn start(
    view: &Arc<View>,
    route: Arc<Route>,
    mut call: ToolCall,
    started: Instant,
) -> Result<TaskHandle, Box<Reply>> {
    view.bell.ring(|| created(&route, &call));
    let deadline = deadline(&route, &call, started);
    let let_in = let_in(view, &route, &mut call, deadline).await;
    let mut record = Record::open(&route, &call, started);
    let begun = match let_in {
        Ok(()) => begin(view, &route, &call, deadline, &mut record).await,
        Err(failure) => Err(failure.into()),
    };
    match begun {
        Ok((live, task)) => Ok(TaskHandle {
            view: view.clone(),
            route,
            call,
            record,
            live,
            task,
        }),
        Err(stop) => Err(Box::new(closed(view, &route, &call, record, Err(stop), deadline).await)),
    }
}

async fn begin(
    view: &View,
    route: &Route,
    call: &ToolCall,
    deadline: Deadline,
    record: &mut Record,
) -> Result<(Live, Held), Stop> {
    let arguments = prepare::arguments(route, call, view, &mut record.warnings).await?;
    permit::ask(route, call, &arguments, view, deadline).await?;
    let server = &route.server;
    let turn = server.turn(&route.tool.name, deadline).await?;
    record.queued = turn.waited();
    let live = server.live(deadline).await?;
    if !runs_as_task(route, &live.session) {
        let message = format!("{} does not run as a task", route.tool.dotted_name());
        let failure = Failure::new(Kind::InvalidArguments, message);
        return Err(failure.hint("call it; its result comes with the call").into());
    }
    record.attempts = 1;
    let meta = view.hooks.meta(route, call);
    let begun = live.session.begin(Call {
        tool: &route.tool,
        arguments: arguments.as_raw(),
        meta: &meta,
        patience: Patience {
            idle: server.config().limits.call_idle,
            total: deadline,
        },
        progress: call.progress.clone(),
        as_task: true,
    });
    let task = match begun.await? {
        Begun::Done(result) => Held::Done(result),
        Begun::Task(task, steps) => Held::Running(task, steps),
    };
    Ok((live, task))
}

/// The reply to a call that has come to its end, told to all who listen.
async fn closed(
    view: &View,
    route: &Route,
    call: &ToolCall,
    mut record: Record,
    ended: Result<CallResult, Stop>,
    deadline: Deadline,
) -> Reply {
    let outcome: Result<Outcome, Stop> = ended.map(|result| {
        let misfit = output::misfit(route, &result, &mut record.warnings);
        misfit.unwrap_or_else(|| present::extract(result))
    });
    let mut reply = concluded(view, route, call, record, outcome, deadline).await;
    view.hooks.after(route, &mut reply).await;
    view.bell.ring(|| Event::completed(&reply));
    reply
}

/// In the newest era it is the server that decides, for every tool.
fn runs_as_task(route: &Route, session: &Session) -> bool {
    session.offers_tasks() && (session.facts.era == Era::Modern || route.tool.task_support != TaskSupport::Forbidden)
}

impl TaskHandle {
    /// The id under which its server knows it; none when the server answered at once.
    pub fn id(&self) -> Option<&str> {
        match &self.task {
            Held::Running(task, _) => Some(&task.id),
            Held::Done(_) => None,
        }
    }

    /// The tool: `server.tool`.
    pub fn name(&self) -> String {
        self.route.tool.dotted_name()
    }

    /// Asks how far it is.
    pub async fn status(&self) -> Result<TaskState, Failure> {
        match &self.task {
            Held::Done(_) => Ok(TaskState {
                status: TaskStatus::Completed,
                message: None,
            }),
            Held::Running(task, _) => {
                let limits = self.route.server.config().limits;
                let patience = Patience {
                    idle: limits.call_idle,
                    total: Deadline::within(limits.call_idle),
                };
                let state = self.live.session.task_state(&task.id, patience).await;
                let what = format!("asking after the task of {}", self.name());
                state
                    .map(|task| task.state)
                    .map_err(|fault| failure_of(&fault, &what).masked(&self.route.server.veil().masker()))
            }
        }
    }

    /// Waits for its end, at most for `patience`, and returns the reply of the call. The task itself is left alone when the time is up or
    /// the future is dropped, so this can be asked again.
    pub async fn result(&mut self, patience: Duration) -> Reply {
        let limits = self.route.server.config().limits;
        let patience = Patience {
            idle: limits.call_idle,
            total: Deadline::within(patience),
        };
        let ended = match &mut self.task {
            Held::Done(result) => Ok(std::mem::take(result)),
            Held::Running(task, steps) => self
                .live
                .session
                .follow(task.clone(), patience, steps.as_mut())
                .await
                .map_err(Stop::from),
        };
        let record = self.record.clone();
        closed(&self.view, &self.route, &self.call, record, ended, patience.total).await
    }

    /// Asks the server to give it up. The server may finish it all the same.
    pub async fn cancel(&self) -> Result<(), Failure> {
        let Held::Running(task, _) = &self.task else {
            return Ok(());
        };
        if !self.live.session.cancels_tasks() {
            let message = format!("server `{}` does not let its tasks be cancelled", self.route.server.name());
            return Err(Failure::new(Kind::Unavailable, message));
        }
        let what = format!("cancelling the task of {}", self.name());
        let done = self.live.session.cancel_task(&task.id).await;
        done.map_err(|fault| failure_of(&fault, &what).masked(&self.route.server.veil().masker()))
    }
}
