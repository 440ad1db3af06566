//! Polls calls that a server runs as tasks until they end, in both eras.

use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use pegboard_protocol::{code, method};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    call_result::CallResult,
    calls_in_flight::CallInFlight,
    connection::RpcConnection,
    fault::{Fault, FaultKind},
    host::{CallOwner, OnBehalf},
    input_rounds::{MAX_ROUNDS, too_many_rounds},
    json_rpc::Params,
    mcp_session::Session,
    patience::Patience,
    progress::ProgressSubscription,
    request::Request,
    response::parse_result,
    round_fields::InputRequests,
    task_state::{TaskState, TaskStatus},
    task_updates::TaskUpdateReceiver,
};
use crate::session::Era;
use crate::transport::{Sent, ServerError};
use pegboard_mask::ServerMasker;

/// The poll interval for servers that set none.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The bounds of the poll interval that a server may set.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two polls if a notification reports a new status.
const MIN_NOTIFIED_INTERVAL: Duration = Duration::from_millis(100);
/// How long a task must run before its notifications are requested.
const LISTEN_AFTER: Duration = Duration::from_secs(3);
/// How many polls in a row may fail in the transport before the task counts as lost.
const MAX_LOST_POLLS: u32 = 5;
/// The longest id of a task. It is repeated in an HTTP header.
const MAX_ID: usize = 1 << 10;

/// What a task keeps of the call that started it.
#[derive(Debug, Default)]
pub struct TaskContext {
    pub(super) progress: Option<ProgressSubscription>,
    /// Set if the server may ask for input by requests of its own.
    pub(super) in_flight: Option<CallInFlight>,
}

/// A task, as its server reports it.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    /// The server's id for the task.
    #[serde(rename = "taskId")]
    pub id: String,
    /// The status of the task, with the server's message about it.
    #[serde(flatten)]
    pub state: TaskState,
    #[serde(default, rename = "pollIntervalMs")]
    poll_interval_ms: Option<u64>,
    /// The name in the older era.
    #[serde(default, rename = "pollInterval")]
    legacy_poll_interval_ms: Option<u64>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<ServerError>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<InputRequests>,
}

impl Task {
    /// Parses the task in a response. Returns `None` if a server that should create a task sent a result instead.
    pub(super) fn parse_created(response: &[u8], era: Era) -> Result<Option<Self>, Fault> {
        #[derive(Deserialize)]
        struct Created {
            #[serde(default)]
            task: Option<Task>,
        }
        let task: Option<Self> = match era {
            Era::Legacy => parse_result::<Created>(response)?.task,
            Era::Modern => Some(parse_result(response)?),
        };
        match task {
            Some(task) if task.id.is_empty() || task.id.len() > MAX_ID => {
                Err(Fault::unreadable("the id of its task has no proper length"))
            }
            task => Ok(task),
        }
    }

    /// Masks the secrets in the status message and the error. The result and the input requests are masked where they are used.
    pub(super) fn into_masked(mut self, masker: &ServerMasker) -> Self {
        masker.hide_in(&mut self.state.message);
        if let Some(error) = &mut self.error {
            error.hide(masker);
        }
        self
    }

    fn poll_interval(&self) -> Duration {
        let interval = self
            .poll_interval_ms
            .or(self.legacy_poll_interval_ms)
            .map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
        interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)
    }
}

impl Session {
    /// The tasks that the server runs.
    pub fn tasks(&self) -> Tasks<'_> {
        Tasks { session: self }
    }
}

/// The tasks of one server: their states, results and cancellation.
#[derive(Debug, Clone, Copy)]
pub struct Tasks<'a> {
    session: &'a Session,
}

impl Tasks<'_> {
    /// Polls a task until it has ended, and returns its result. Dropping the future cancels the task.
    pub(super) async fn await_or_cancel(
        self,
        task: Task,
        patience: Patience,
        on_behalf: OnBehalf<'_>,
        mut context: TaskContext,
    ) -> Result<CallResult, Fault> {
        let cancel_on_drop = CancelOnDrop {
            connection: &self.session.connection,
            id: task.id.clone(),
            owner: context.in_flight.as_ref().map(|call| call.owner().clone()),
            is_armed: self.session.peer.cancels_tasks(),
        };
        let result = self.await_result(task, patience, on_behalf, &mut context).await;
        match &result {
            // The task may still run if polling failed.
            Err(fault) if fault.code().is_none() => drop(cancel_on_drop),
            Ok(_) | Err(_) => cancel_on_drop.disarm(),
        }
        result
    }

    /// Registers the caller of a task that was started in another session, so that the server's questions for the task reach it.
    pub fn adopt(self, context: &mut TaskContext, on_behalf: OnBehalf<'_>) {
        let calls = self.session.connection.dispatcher().calls();
        if !context.in_flight.as_ref().is_some_and(|call| call.is_on(calls)) {
            context.in_flight = self.session.register(on_behalf);
        }
    }

    /// Polls a task until it has ended, and returns its result. Dropping the future leaves the task running.
    pub async fn await_result(
        self,
        task: Task,
        patience: Patience,
        on_behalf: OnBehalf<'_>,
        context: &mut TaskContext,
    ) -> Result<CallResult, Fault> {
        let id = task.id.clone();
        let terms = PollTerms {
            patience,
            on_behalf,
            owner: context.in_flight.as_ref().map(CallInFlight::owner),
        };
        let result = tokio::select! {
            biased;
            result = self.poll(task, terms, context.progress.as_mut()) => result,
            never = self.listen(&id, terms) => match never {},
        };
        // After an error in response to a poll the task may still run and ask.
        let has_ended = result.is_ok();
        if has_ended && let Some(call) = &mut context.in_flight {
            call.complete();
        }
        result.map_err(|fault| fault.into_masked(self.session.masker()))
    }

    async fn poll(
        self,
        mut task: Task,
        terms: PollTerms<'_>,
        progress: Option<&mut ProgressSubscription>,
    ) -> Result<CallResult, Fault> {
        let mut polling = TaskPolling::new(self.session, &task.id, terms, progress);
        let mut inputs = TaskInputs::default();
        loop {
            polling.report_message(&task.state);
            match (task.state.status, self.session.peer.era) {
                (TaskStatus::Working, _) => {}
                (TaskStatus::Cancelled, _) => {
                    return Err(task_fault(&task, code::REQUEST_CANCELLED, "the task was cancelled"));
                }
                // In this era the server sends its input requests while `tasks/result` is pending.
                (_, Era::Legacy) => return self.request_result(&task.id, terms).await,
                (TaskStatus::InputRequired, Era::Modern) => {
                    let requests = task.input_requests.take().unwrap_or_default();
                    self.send_input(&task.id, requests, &mut inputs, terms).await?;
                }
                (TaskStatus::Failed, Era::Modern) => {
                    return Err(task_fault(&task, code::INTERNAL_ERROR, "the task failed"));
                }
                (TaskStatus::Completed, Era::Modern) => {
                    let result = task.result.take().unwrap_or_default();
                    return serde_json::from_value(result).map_err(|error| Fault::unreadable(error.to_string()));
                }
            }
            task = self.next_state(&task, &mut polling).await?;
        }
    }

    /// Waits for the poll interval and polls the task. Retries polls that fail in the transport, which is safe: a poll changes nothing.
    async fn next_state(self, task: &Task, polling: &mut TaskPolling<'_>) -> Result<Task, Fault> {
        let (mut lost, terms) = (0, polling.terms);
        let patience = terms.patience;
        loop {
            let waiting = polling.until_next_poll(task.poll_interval());
            if patience.total.run(waiting).await.is_err() {
                return Err(Fault::timed_out(polling.started));
            }
            match self
                .request_state(terms.request(method::TASKS_GET, &task.id), patience)
                .await
            {
                Ok(task) => {
                    polling.note_polled(task.state.status);
                    return Ok(task);
                }
                Err(fault) if fault.is_transport() && lost < MAX_LOST_POLLS && !patience.total.has_passed() => {
                    lost += 1
                }
                // The call itself was sent, even if the poll was not.
                Err(fault) => {
                    return Err(Fault {
                        sent: Sent::Maybe,
                        ..fault
                    });
                }
            }
        }
    }

    /// Requests the notifications of a long-running task, in the era in which they must be requested. Failure is ignored: the task is
    /// polled anyway.
    async fn listen(self, id: &str, terms: PollTerms<'_>) -> Infallible {
        if self.session.peer.era == Era::Modern {
            tokio::time::sleep(LISTEN_AFTER).await;
            let mut filter = Map::new();
            filter.insert("taskIds".to_owned(), Value::from(vec![id]));
            let params = Params::default().with("notifications", &filter);
            let request = terms.sign(Request::new(method::SUBSCRIPTIONS_LISTEN, params));
            let until = Patience::until(terms.patience.total);
            let _ = self.session.connection.request(request, until).await;
        }
        std::future::pending().await
    }

    /// Polls a task once.
    pub async fn state(self, id: &str, patience: Patience) -> Result<Task, Fault> {
        self.request_state(task_request(method::TASKS_GET, id), patience).await
    }

    async fn request_state(self, request: Request<'_>, patience: Patience) -> Result<Task, Fault> {
        let result = self.session.connection.request(request, patience).await?;
        match parse_result::<Task>(&result) {
            Ok(task) => Ok(task.into_masked(self.session.masker())),
            Err(fault) => Err(fault.into_masked(self.session.masker())),
        }
    }

    /// Requests the result of a task, in the era that has `tasks/result`. The response comes when the task has ended.
    async fn request_result(self, id: &str, terms: PollTerms<'_>) -> Result<CallResult, Fault> {
        let until = Patience::until(terms.patience.total);
        let request = terms.request(method::TASKS_RESULT, id);
        let result = self.session.connection.request(request, until).await?;
        parse_result(&result)
    }

    /// Requests the cancellation of a task. The server decides whether it ends.
    pub async fn cancel(self, id: &str) -> Result<(), Fault> {
        let request = task_request(method::TASKS_CANCEL, id);
        self.session
            .connection
            .request(request, self.session.patience())
            .await
            .map(drop)
    }

    /// Responds to the input requests of a task, each once: the server lists a request until it has processed the response.
    async fn send_input(
        self,
        id: &str,
        mut requests: InputRequests,
        inputs: &mut TaskInputs,
        terms: PollTerms<'_>,
    ) -> Result<(), Fault> {
        requests.retain(|key, _| !inputs.answered.contains(key));
        if requests.is_empty() {
            return Ok(());
        }
        if inputs.rounds >= MAX_ROUNDS {
            return Err(too_many_rounds());
        }
        inputs.rounds += 1;
        inputs.answered.extend(requests.keys().cloned());
        let (patience, on_behalf) = (terms.patience, terms.on_behalf);
        let responses = self.session.answers().respond(requests, patience, on_behalf).await?;
        let mut request = terms.request(method::TASKS_UPDATE, id);
        request.params = request.params.with("inputResponses", &responses);
        self.session.connection.request(request, patience).await.map(drop)
    }
}

/// How a task is polled: for whom, and for how long.
#[derive(Clone, Copy)]
struct PollTerms<'a> {
    patience: Patience,
    on_behalf: OnBehalf<'a>,
    owner: Option<&'a Arc<CallOwner>>,
}

impl<'a> PollTerms<'a> {
    /// A request about the task.
    fn request(self, method: &'static str, id: &'a str) -> Request<'a> {
        self.sign(task_request(method, id))
    }

    /// Sends the request in the name of the caller.
    fn sign(self, request: Request<'a>) -> Request<'a> {
        Request {
            offers: self.on_behalf.offers(),
            owner: self.owner,
            ..request
        }
    }
}

/// The input that we have sent to a task so far.
#[derive(Default)]
struct TaskInputs {
    /// The keys of the input requests that were answered.
    answered: HashSet<String>,
    rounds: usize,
}

/// A request about one task.
fn task_request<'a>(method: &'static str, id: &'a str) -> Request<'a> {
    Request::new(method, Params::default().with("taskId", id)).about(id)
}

/// The fault of a task that ended without a result.
fn task_fault(task: &Task, code: i64, text: &str) -> Fault {
    let error = task.error.clone().unwrap_or_else(|| {
        let message = match &task.state.message {
            Some(message) => format!("{text}: {message}"),
            None => text.to_owned(),
        };
        ServerError::new(code, message)
    });
    Fault {
        kind: FaultKind::Error(error),
        sent: Sent::Maybe,
    }
}

/// The timing of a task's polls. A status notification brings the next poll forward.
struct TaskPolling<'a> {
    terms: PollTerms<'a>,
    started: Instant,
    progress: Option<&'a mut ProgressSubscription>,
    updates: Option<TaskUpdateReceiver>,
    /// The shortest time between two polls, for a poll that follows a notification.
    notified_interval: Duration,
    /// Whether the last poll followed a notification.
    was_notified: bool,
}

impl<'a> TaskPolling<'a> {
    fn new(session: &Session, id: &str, terms: PollTerms<'a>, progress: Option<&'a mut ProgressSubscription>) -> Self {
        Self {
            terms,
            started: Instant::now(),
            progress,
            updates: session
                .connection
                .dispatcher()
                .notifications()
                .map(|notifications| notifications.subscribe_to_task(id)),
            notified_interval: MIN_NOTIFIED_INTERVAL,
            was_notified: false,
        }
    }

    fn report_message(&mut self, state: &TaskState) {
        if let Some(progress) = &mut self.progress {
            progress.report_message(state.message.as_ref());
        }
    }

    /// Waits for the poll interval, or until a notification says that the task is not working any more.
    async fn until_next_poll(&mut self, interval: Duration) {
        let last_poll = Instant::now();
        self.was_notified = false;
        loop {
            let update = async {
                match &mut self.updates {
                    Some(updates) => updates.next().await,
                    None => std::future::pending().await,
                }
            };
            let state = tokio::select! {
                biased;
                () = tokio::time::sleep_until(last_poll + interval) => return,
                state = update => state,
            };
            self.report_message(&state);
            if state.status != TaskStatus::Working {
                self.was_notified = true;
                return tokio::time::sleep_until(last_poll + self.notified_interval.min(interval)).await;
            }
        }
    }

    /// Backs off from notifications that a poll did not confirm.
    fn note_polled(&mut self, status: TaskStatus) {
        self.notified_interval = match (self.was_notified, status) {
            (true, TaskStatus::Working) => (self.notified_interval * 2).min(MAX_POLL_INTERVAL),
            (true, _) => MIN_NOTIFIED_INTERVAL,
            (false, _) => self.notified_interval,
        };
    }
}

/// Cancels a task when it is dropped, unless it was disarmed.
struct CancelOnDrop<'a> {
    connection: &'a RpcConnection,
    id: String,
    owner: Option<Arc<CallOwner>>,
    is_armed: bool,
}

impl CancelOnDrop<'_> {
    fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.is_armed {
            let sent = self
                .connection
                .send_and_forget(&task_request(method::TASKS_CANCEL, &self.id));
            if let (Some(id), Some(owner)) = (sent, &self.owner) {
                owner.cancelled_before(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_parsed_in_the_form_of_both_eras() {
        let legacy = br#"{"task":{"taskId":"a","status":"working","pollInterval":20,"ttl":null}}"#;
        let task = Task::parse_created(legacy, Era::Legacy).unwrap().unwrap();
        assert_eq!((task.id.as_str(), task.poll_interval()), ("a", MIN_POLL_INTERVAL));
        let modern = br#"{"resultType":"task","taskId":"b","status":"input_required","statusMessage":"m","pollIntervalMs":5000}"#;
        let task = Task::parse_created(modern, Era::Modern).unwrap().unwrap();
        assert!(
            Task::parse_created(br#"{"content":[]}"#, Era::Legacy)
                .unwrap()
                .is_none()
        );
        assert_eq!(task.state.status, TaskStatus::InputRequired);
        assert_eq!(
            (task.state.message.as_deref(), task.poll_interval()),
            (Some("m"), Duration::from_secs(5))
        );
        for wrong in [
            r#"{"taskId":"","status":"working"}"#,
            r#"{"taskId":"a","status":"lazy"}"#,
            "[]",
        ] {
            assert!(Task::parse_created(wrong.as_bytes(), Era::Modern).is_err(), "{wrong}");
        }
    }
}
