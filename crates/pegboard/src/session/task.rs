//! Calls that a server carries out as tasks: it is asked now and then how far they are, in the words of either era, until they end.

use std::{collections::HashSet, convert::Infallible, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    CallResult, Fault, FaultKind, Patience, Request, Session,
    connection::RpcConnection,
    input_rounds::{InputRequests, MAX_ROUNDS, read, too_many_rounds},
    json_rpc::Params,
    progress::Steps,
    task_updates::TaskUpdateReceiver,
};
use crate::{
    mask::ServerMasker,
    status::Era,
    transport::{RpcError, Sent},
};

/// How often a server is asked that does not say how often it wants to be.
const USUAL_PAUSE: Duration = Duration::from_secs(1);
/// The bounds of what it may want.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));
/// How soon a server may be asked again that says that there is something new.
const SOONEST: Duration = Duration::from_millis(100);
/// How long a task must take before its server is asked to tell of it.
const LISTEN_AFTER: Duration = Duration::from_secs(3);
/// How many questions in a row may be lost on the way before the task is.
const LOST_QUESTIONS: u32 = 5;
/// The longest id of a task. It is repeated in a header.
const MAX_ID: usize = 1 << 10;

/// A task as its server tells of it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Task {
    #[serde(rename = "taskId")]
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) state: TaskState,
    #[serde(default, rename = "pollIntervalMs")]
    pause_ms: Option<u64>,
    /// The same in the words of the era before.
    #[serde(default, rename = "pollInterval")]
    old_pause_ms: Option<u64>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcError>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<InputRequests>,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskState {
    /// Where it stands.
    pub status: TaskStatus,
    /// The server's words about that.
    #[serde(default, rename(deserialize = "statusMessage"))]
    pub message: Option<String>,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// The server wants something first.
    InputRequired,
    /// Its result is there.
    Completed,
    /// It failed.
    Failed,
    /// It was given up.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl Task {
    /// The task that came in the place of a result. Nothing when a server that was asked for a task gave a result all the same.
    pub(super) fn created(answer: &[u8], era: Era) -> Result<Option<Self>, Fault> {
        #[derive(Deserialize)]
        struct Created {
            #[serde(default)]
            task: Option<Task>,
        }
        let task: Option<Self> = match era {
            Era::Legacy => read::<Created>(answer)?.task,
            Era::Modern => Some(read(answer)?),
        };
        match task {
            Some(task) if task.id.is_empty() || task.id.len() > MAX_ID => {
                Err(Fault::unreadable("the id of its task has no proper length"))
            }
            task => Ok(task),
        }
    }

    /// The words of the server in it masked, but for its result and its questions.
    pub(super) fn hidden(mut self, masker: &ServerMasker) -> Self {
        masker.hide_in(&mut self.state.message);
        if let Some(error) = &mut self.error {
            error.hide(masker);
        }
        self
    }

    fn pause(&self) -> Duration {
        let wanted = self
            .pause_ms
            .or(self.old_pause_ms)
            .map_or(USUAL_PAUSE, Duration::from_millis);
        wanted.clamp(PAUSES.0, PAUSES.1)
    }
}

impl Session {
    /// ServerRequests for the state of a task until it has ended, and returns its result. Dropping the future cancels the task.
    pub(crate) async fn see_through(
        &self,
        task: Task,
        patience: Patience,
        mut steps: Option<Steps>,
    ) -> Result<CallResult, Fault> {
        let giving_up = CancelOnDrop {
            connection: &self.connection,
            id: task.id.clone(),
            needed: self.cancels_tasks(),
        };
        let result = self.follow(task, patience, steps.as_mut()).await;
        match &result {
            // A task that we may simply have lost sight of is not wanted any more either.
            Err(fault) if fault.code().is_none() => drop(giving_up),
            Ok(_) | Err(_) => giving_up.not_needed(),
        }
        result
    }

    /// The same without cancelling it when nobody waits any more.
    pub(crate) async fn follow(
        &self,
        task: Task,
        patience: Patience,
        steps: Option<&mut Steps>,
    ) -> Result<CallResult, Fault> {
        let id = task.id.clone();
        let result = tokio::select! {
            biased;
            result = self.followed(task, patience, steps) => result,
            never = self.listen_to_task(&id, patience) => match never {},
        };
        result.map_err(|fault| fault.hidden(self.masker()))
    }

    async fn followed(
        &self,
        mut task: Task,
        patience: Patience,
        steps: Option<&mut Steps>,
    ) -> Result<CallResult, Fault> {
        let mut course = TaskPolling::new(self, &task.id, patience, steps);
        let mut given = TaskInputs::default();
        loop {
            course.tell(&task.state);
            match (task.state.status, self.facts.era) {
                (TaskStatus::Working, _) => {}
                (TaskStatus::Cancelled, _) => return Err(ended(&task, -32800, "the task was cancelled")),
                // What the server wants comes as requests of its own while it is asked for the result.
                (_, Era::Legacy) => return self.task_result(&task.id, patience).await,
                (TaskStatus::InputRequired, Era::Modern) => {
                    let requests = task.input_requests.take().unwrap_or_default();
                    self.give_input(&task.id, requests, &mut given, patience).await?;
                }
                (TaskStatus::Failed, Era::Modern) => return Err(ended(&task, -32603, "the task failed")),
                (TaskStatus::Completed, Era::Modern) => {
                    let result = task.result.take().unwrap_or_default();
                    return serde_json::from_value(result).map_err(|error| Fault::unreadable(error.to_string()));
                }
            }
            task = self.next_state(&task, &mut course).await?;
        }
    }

    /// Waits as long as the server wants, and asks it again. A question or two may be lost on the way: asking does no harm.
    async fn next_state(&self, task: &Task, course: &mut TaskPolling<'_>) -> Result<Task, Fault> {
        let (mut lost, patience) = (0, course.patience);
        loop {
            if patience.total.run(course.pause(task.pause())).await.is_err() {
                return Err(Fault::late(course.started));
            }
            match self.task_state(&task.id, patience).await {
                Ok(task) => {
                    course.asked(task.state.status);
                    return Ok(task);
                }
                Err(fault) if fault.is_transport() && lost < LOST_QUESTIONS && !patience.total.has_passed() => {
                    lost += 1
                }
                // The call was made, whatever became of the question about it.
                Err(fault) => {
                    return Err(Fault {
                        sent: Sent::Maybe,
                        ..fault
                    });
                }
            }
        }
    }

    /// ServerRequests to be told of a task that takes its time, in the era in which that must be asked for. A server that does not do so is asked
    /// after the task all the same.
    async fn listen_to_task(&self, id: &str, patience: Patience) -> Infallible {
        if self.facts.era == Era::Modern {
            tokio::time::sleep(LISTEN_AFTER).await;
            let mut wanted = Map::new();
            wanted.insert("taskIds".to_owned(), Value::from(vec![id]));
            let params = Params::default().with("notifications", &wanted);
            let request = Request::new("subscriptions/listen", params);
            let _ = self.connection.request(request, Patience::until(patience.total)).await;
        }
        std::future::pending().await
    }

    /// How far a task is.
    pub(crate) async fn task_state(&self, id: &str, patience: Patience) -> Result<Task, Fault> {
        let answer = self.connection.request(about("tasks/get", id), patience).await?;
        match read::<Task>(&answer) {
            Ok(task) => Ok(task.hidden(self.masker())),
            Err(fault) => Err(fault.hidden(self.masker())),
        }
    }

    /// The result of a task, in the era that has a request for it. It comes when the task has ended.
    async fn task_result(&self, id: &str, patience: Patience) -> Result<CallResult, Fault> {
        let until = Patience::until(patience.total);
        let answer = self.connection.request(about("tasks/result", id), until).await?;
        read(&answer)
    }

    /// Whether the server lets its tasks be given up. Without a handshake, every server that has tasks does.
    pub(crate) fn cancels_tasks(&self) -> bool {
        let tasks = self.facts.capabilities.get("tasks");
        let cancels = tasks
            .and_then(|tasks| tasks.get("cancel"))
            .is_some_and(|cancel| !cancel.is_null());
        cancels || self.facts.era == Era::Modern
    }

    /// Gives a task up. The server decides what comes of that.
    pub(crate) async fn cancel_task(&self, id: &str) -> Result<(), Fault> {
        let request = about("tasks/cancel", id);
        self.connection.request(request, self.patience()).await.map(drop)
    }

    /// Answers what a task wants, each question once: the server shows it until it has seen the answer.
    async fn give_input(
        &self,
        id: &str,
        mut requests: InputRequests,
        given: &mut TaskInputs,
        patience: Patience,
    ) -> Result<(), Fault> {
        requests.retain(|key, _| !given.answered.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        if given.rounds >= MAX_ROUNDS {
            return Err(too_many_rounds());
        }
        given.rounds += 1;
        given.answered.extend(requests.keys().cloned());
        let answers = self.inputs(requests, patience).await?;
        let mut request = about("tasks/update", id);
        request.params = request.params.with("inputResponses", &answers);
        self.connection.request(request, patience).await.map(drop)
    }
}

/// What a task was given so far.
#[derive(Default)]
struct TaskInputs {
    /// The questions that were answered.
    answered: HashSet<String>,
    rounds: usize,
}

fn about<'a>(method: &'static str, id: &'a str) -> Request<'a> {
    Request::new(method, Params::default().with("taskId", id)).about(id)
}

/// The error of a task that ended without a result.
fn ended(task: &Task, code: i64, words: &str) -> Fault {
    let error = task.error.clone().unwrap_or_else(|| RpcError {
        code,
        message: match &task.state.message {
            Some(message) => format!("{words}: {message}"),
            None => words.to_owned(),
        },
        data: None,
        masked: None,
    });
    Fault {
        kind: FaultKind::Error(error),
        sent: Sent::Maybe,
    }
}

/// How a task is asked after: what the server tells of it meanwhile may bring the next question forward.
struct TaskPolling<'a> {
    patience: Patience,
    started: Instant,
    steps: Option<&'a mut Steps>,
    task_updates: Option<TaskUpdateReceiver>,
    /// How long after the last question the next one may come, when the server says that there is something new.
    soonest: Duration,
    /// Whether it said so before the last question.
    was_hurried: bool,
}

impl<'a> TaskPolling<'a> {
    fn new(session: &Session, id: &str, patience: Patience, steps: Option<&'a mut Steps>) -> Self {
        Self {
            patience,
            started: Instant::now(),
            steps,
            task_updates: session
                .connection
                .pending()
                .notifications()
                .map(|notifications| notifications.of_task(id)),
            soonest: SOONEST,
            was_hurried: false,
        }
    }

    fn tell(&mut self, state: &TaskState) {
        if let Some(steps) = &mut self.steps {
            steps.say(state.message.as_ref());
        }
    }

    /// Waits until it is time to ask again: after the pause that the server wants, or when it tells that its task does not work any more.
    async fn pause(&mut self, pause: Duration) {
        let asked = Instant::now();
        self.was_hurried = false;
        loop {
            let told = async {
                match &mut self.task_updates {
                    Some(task_updates) => task_updates.next().await,
                    None => std::future::pending().await,
                }
            };
            let told = tokio::select! {
                biased;
                () = tokio::time::sleep_until(asked + pause) => return,
                told = told => told,
            };
            self.tell(&told);
            if told.status != TaskStatus::Working {
                self.was_hurried = true;
                return tokio::time::sleep_until(asked + self.soonest.min(pause)).await;
            }
        }
    }

    /// The server answered. One that says again and again that there is something new, when there is not, is listened to less and less.
    fn asked(&mut self, status: TaskStatus) {
        self.soonest = match (self.was_hurried, status) {
            (true, TaskStatus::Working) => (self.soonest * 2).min(PAUSES.1),
            (true, _) => SOONEST,
            (false, _) => self.soonest,
        };
    }
}

/// Cancels a task when it is dropped before its end.
struct CancelOnDrop<'a> {
    connection: &'a RpcConnection,
    id: String,
    needed: bool,
}

impl CancelOnDrop<'_> {
    fn not_needed(mut self) {
        self.needed = false;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.needed {
            self.connection.fire(&about("tasks/cancel", &self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_in_the_words_of_both_eras() {
        let legacy = br#"{"task":{"taskId":"a","status":"working","pollInterval":20,"ttl":null}}"#;
        let task = Task::created(legacy, Era::Legacy).unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.pause()), ("a", PAUSES.0));
        let modern = br#"{"resultType":"task","taskId":"b","status":"input_required","statusMessage":"m","pollIntervalMs":5000}"#;
        let task = Task::created(modern, Era::Modern).unwrap().unwrap();
        assert!(Task::created(br#"{"content":[]}"#, Era::Legacy).unwrap().is_none());
        assert_eq!(task.state.status, TaskStatus::InputRequired);
        assert_eq!(
            (task.state.message.as_deref(), task.pause()),
            (Some("m"), Duration::from_secs(5))
        );
        for wrong in [
            r#"{"taskId":"","status":"working"}"#,
            r#"{"taskId":"a","status":"lazy"}"#,
            "[]",
        ] {
            assert!(Task::created(wrong.as_bytes(), Era::Modern).is_err(), "{wrong}");
        }
    }
}
