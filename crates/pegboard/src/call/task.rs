//! A call that runs in the background of its server: started here, asked after and fetched later.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Record, Route, Stop, ToolCall, View, conclude, failure_of, permit, prepare};
use crate::{
    catalog::TaskSupport,
    deadline::Deadline,
    outcome::{Failure, Kind, Reply},
    session::{Begun, Call, CallResult, Patience, Session, Task, TaskState, TaskStatus},
    status::Era,
};

/// A call that its server carries out as a task. Dropping the handle leaves the task alone; [`TaskHandle::cancel`] gives it up.
#[derive(Debug)]
pub struct TaskHandle {
    route: Route,
    record: Record,
    session: Arc<Session>,
    task: Held,
}

#[derive(Debug)]
enum Held {
    Running(Task),
    /// The server answered at once, although it might have taken its time.
    Done(CallResult),
}

/// Starts a call as a task.
pub(crate) async fn start(
    view: &View,
    route: Route,
    call: ToolCall,
    started: Instant,
) -> Result<TaskHandle, Box<Reply>> {
    let mut record = Record::open(&route, &call, started);
    match begin(view, &route, &call, &mut record).await {
        Ok((session, task)) => Ok(TaskHandle {
            route,
            record,
            session,
            task,
        }),
        Err(stop) => Err(Box::new(conclude(&route, record, Err(stop)))),
    }
}

async fn begin(view: &View, route: &Route, call: &ToolCall, record: &mut Record) -> Result<(Arc<Session>, Held), Stop> {
    let arguments = prepare::arguments(route, call, view)?;
    permit::ask(route, call, view).await?;
    let (server, config) = (&route.server, route.server.config());
    let total = call
        .timeout
        .unwrap_or(config.limits.call_total)
        .min(config.limits.call_total);
    let deadline = Deadline::within(total);
    let waiting = Instant::now();
    let _turn = server.turn(deadline).await?;
    record.queued = waiting.elapsed();
    let live = server.live(deadline).await?;
    if !runs_as_task(route, &live.session) {
        let message = format!("{} does not run as a task", route.tool.dotted_name());
        let failure = Failure::new(Kind::InvalidArguments, message);
        return Err(failure.hint("call it; its result comes with the call").into());
    }
    record.attempts = 1;
    let patience = Patience {
        idle: config.limits.call_idle,
        total: deadline,
    };
    let begun = live.session.begin(Call {
        tool: &route.tool,
        arguments: arguments.as_raw(),
        patience,
        progress: call.progress.clone(),
        as_task: true,
    });
    let task = match begun.await? {
        Begun::Done(result) => Held::Done(result),
        Begun::Task(task) => Held::Running(task),
    };
    Ok((live.session, task))
}

/// In the newest era it is the server that decides, for every tool.
fn runs_as_task(route: &Route, session: &Session) -> bool {
    session.offers_tasks() && (session.facts.era == Era::Modern || route.tool.task_support != TaskSupport::Forbidden)
}

impl TaskHandle {
    /// The id under which its server knows it; none when the server answered at once.
    pub fn id(&self) -> Option<&str> {
        match &self.task {
            Held::Running(task) => Some(&task.id),
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
            Held::Running(task) => {
                let limits = self.route.server.config().limits;
                let patience = Patience {
                    idle: limits.call_idle,
                    total: Deadline::within(limits.call_idle),
                };
                let state = self.session.task_state(&task.id, patience).await;
                let what = format!("asking after the task of {}", self.name());
                state.map(|task| task.state).map_err(|fault| failure_of(&fault, &what))
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
            Held::Running(task) => self
                .session
                .follow(task.clone(), patience, None)
                .await
                .map_err(Stop::from),
        };
        conclude(&self.route, self.record.clone(), ended)
    }

    /// Asks the server to give it up. The server may finish it all the same.
    pub async fn cancel(&self) -> Result<(), Failure> {
        let Held::Running(task) = &self.task else {
            return Ok(());
        };
        let what = format!("cancelling the task of {}", self.name());
        let done = self.session.cancel_task(&task.id).await;
        done.map_err(|fault| failure_of(&fault, &what))
    }
}
