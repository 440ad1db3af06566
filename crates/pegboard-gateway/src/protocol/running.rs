//! [`Running`]: a request in flight, polled by the wire that received it.

use std::{
    fmt,
    future::poll_fn,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::future::BoxFuture;
use pegboard_protocol::{RequestId, method};
use serde_json::{Map, Value, json};
use tokio::time::{Sleep, sleep};

use super::{
    early_end::EarlyEnd,
    exchange::ExchangeState,
    observed::Observed,
    outgoing::Outgoing,
    params::Params,
    parked::{ParkedCall, ParkedCalls, ParkedOrigin},
    peer::InFlight,
    raw_result::RawResult,
    request_stream::Question,
    rpc_errors,
    service::Answer,
};

/// How long a question waits for others that the client can answer in the same round. A server that asks several things at once sends them
/// one after the other.
const TOGETHER: Duration = Duration::from_millis(20);

/// What a request in flight yields.
#[derive(Debug)]
pub(crate) enum RunStep {
    /// A notification, or a question to a legacy client. More follows.
    Message(Outgoing),
    /// The response; `None` if the client cancelled the request.
    Done(Option<Outgoing>),
}

/// A request in flight, owned by the wire. Dropping it cancels the request.
pub(crate) struct Running {
    id: RequestId,
    /// `None` if the request was answered at once.
    shared: Option<Arc<ExchangeState>>,
    work: Work,
    outcome: Option<Answer>,
    /// `None` in the legacy era.
    modern: Option<Modern>,
    entry: Option<InFlight>,
    /// Whether the work was polled. Until then the request has had no effect.
    has_started: bool,
    /// Completes when the questions that are open have waited long enough for others; `None` while there is none.
    together: Option<Pin<Box<Sleep>>>,
    /// Set when the server gives requests no more time.
    halt: Option<Arc<AtomicBool>>,
    /// Its span and its duration, if anything receives them.
    observed: Option<Box<Observed>>,
}

enum Work {
    /// Polled here.
    Here(BoxFuture<'static, Answer>),
    /// In a task, because the client had to answer a question meanwhile.
    Parked(Arc<ParkedCall>, Arc<ParkedCalls>),
    Over,
}

/// What the response to a modern request needs.
pub(super) struct Modern {
    pub(super) parked: Arc<ParkedCalls>,
    pub(super) peer: Option<u64>,
    pub(super) method: Box<str>,
    pub(super) params: Params,
}

impl Running {
    /// A request that was answered at once.
    pub(super) fn from_answer(id: RequestId, outcome: Answer) -> Self {
        Self {
            id,
            shared: None,
            work: Work::Over,
            outcome: Some(outcome),
            modern: None,
            entry: None,
            has_started: false,
            together: None,
            halt: None,
            observed: None,
        }
    }

    /// A request whose work is polled with it.
    pub(super) fn here(
        id: RequestId,
        shared: Arc<ExchangeState>,
        work: BoxFuture<'static, Answer>,
        modern: Option<Modern>,
        entry: Option<InFlight>,
    ) -> Self {
        Self {
            id,
            shared: Some(shared),
            work: Work::Here(work),
            outcome: None,
            modern,
            entry,
            has_started: false,
            together: None,
            halt: None,
            observed: None,
        }
    }

    /// A request that continues a parked call.
    pub(super) fn from_parked(id: RequestId, call: Arc<ParkedCall>, modern: Modern, entry: Option<InFlight>) -> Self {
        Self {
            id,
            shared: Some(call.shared.clone()),
            work: Work::Parked(call, modern.parked.clone()),
            outcome: None,
            modern: Some(modern),
            entry,
            has_started: true,
            together: None,
            halt: None,
            observed: None,
        }
    }

    /// Reports its end.
    #[must_use]
    pub(super) fn observed_by(mut self, mut observed: Observed) -> Self {
        if let Some(shared) = &self.shared {
            observed.set_version(shared.client.version());
        }
        // Boxed, so that requests without one do not carry its size.
        self.observed = Some(Box::new(observed));
        self
    }

    /// Answers with an error once `halt` is set.
    #[must_use]
    pub(super) fn until(mut self, halt: &Arc<AtomicBool>) -> Self {
        self.halt = Some(halt.clone());
        self
    }

    /// The id of the request.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns `true` if the response is ready without any work.
    pub(super) fn is_answered(&self) -> bool {
        self.shared.is_none()
    }

    /// Takes the entry in the list of requests in flight, for a wire that frees the id only when there is room for the response.
    pub(super) fn take_entry(&mut self) -> Option<InFlight> {
        self.entry.take()
    }

    /// Whether the client only listens with the request, which never ends by itself.
    pub(crate) fn is_listening(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_listening)
    }

    /// Ends the request early. It is answered the next time it is polled.
    pub(crate) fn end(&self, end: EarlyEnd) {
        if let Some(shared) = &self.shared {
            shared.stream.end(end);
        }
    }

    /// Drops notifications from now on, because the wire can carry only the response. Questions to a legacy client go to its outbox.
    pub(crate) fn mute(&self) {
        if let Some(shared) = &self.shared {
            shared.stream.mute();
        }
    }

    /// The next message. Cancel-safe. Must not be called after [`RunStep::Done`].
    pub(crate) async fn next(&mut self) -> RunStep {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Running::next`].
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<RunStep> {
        let Some(shared) = self.shared.clone() else {
            return Poll::Ready(self.respond());
        };
        shared.stream.register(context.waker());
        if shared.stream.is_cancelled() {
            self.stop();
            return Poll::Ready(RunStep::Done(None));
        }
        if let Some(message) = shared.stream.pop() {
            return Poll::Ready(RunStep::Message(message));
        }
        if self.outcome.is_none() {
            self.poll_work_or_end(&shared, context);
        }
        // What the work has sent goes before its result.
        if let Some(message) = shared.stream.pop() {
            return Poll::Ready(RunStep::Message(message));
        }
        if self.outcome.is_some() {
            return Poll::Ready(self.respond());
        }
        if shared.questions.is_none() && self.poll_questions(&shared, context).is_ready() {
            return Poll::Ready(self.respond());
        }
        Poll::Pending
    }

    /// Polls the work, unless the request ends early.
    fn poll_work_or_end(&mut self, shared: &ExchangeState, context: &mut Context<'_>) {
        let end = self.early_end(shared);
        // Work that has had no effect must not begin to have one now. A result that is ready is delivered.
        if end.is_none() || (self.has_started && shared.may_have_executed()) {
            self.has_started = true;
            self.poll_work(context);
        }
        if let (None, Some(end)) = (&self.outcome, end) {
            let may_have_executed = self.has_started && shared.may_have_executed();
            self.end_work();
            self.outcome = Some(Err(end.error(may_have_executed)));
        }
    }

    /// Why the request ends now, whether its work is done or not. Does not lock.
    fn early_end(&self, shared: &ExchangeState) -> Option<EarlyEnd> {
        let is_halted = || self.halt.as_ref().is_some_and(|halt| halt.load(Ordering::Acquire));
        let is_withdrawn = || shared.client.caller().revoked.is_revoked();
        let end = shared.stream.early_end();
        end.or_else(|| is_withdrawn().then_some(EarlyEnd::TokenWithdrawn))
            .or_else(|| is_halted().then_some(EarlyEnd::Stopping))
    }

    /// Waits until the questions that belong together are there, and makes them the outcome.
    fn poll_questions(&mut self, shared: &Arc<ExchangeState>, context: &mut Context<'_>) -> Poll<()> {
        if !shared.stream.has_questions() {
            self.together = None;
            return Poll::Pending;
        }
        let together = self.together.get_or_insert_with(|| Box::pin(sleep(TOGETHER)));
        ready!(together.as_mut().poll(context));
        let questions = shared.stream.with_questions(input_requests);
        self.outcome = Some(self.ask(shared, &questions));
        Poll::Ready(())
    }

    fn poll_work(&mut self, context: &mut Context<'_>) {
        let _request = self.shared.as_ref().map(|shared| shared.info.tag.enter());
        let _entered = self.observed.as_ref().and_then(|observed| observed.enter());
        let outcome = match &mut self.work {
            Work::Here(work) => match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => return,
                Ok(Poll::Ready(outcome)) => outcome,
                Err(_) => {
                    let may_have_executed = self.shared.as_ref().is_some_and(|shared| shared.may_have_executed());
                    Err(rpc_errors::panic_error(may_have_executed))
                }
            },
            Work::Parked(call, _) => match call.take_outcome() {
                Some(outcome) => outcome,
                None => return,
            },
            Work::Over => return,
        };
        self.end_work();
        self.outcome = Some(outcome);
    }

    /// Parks the call and returns the result that asks the client.
    fn ask(&mut self, shared: &Arc<ExchangeState>, requests: &Map<String, Value>) -> Answer {
        let Some(modern) = &self.modern else {
            return Err(rpc_errors::panic_error(shared.may_have_executed()));
        };
        let call = match mem::replace(&mut self.work, Work::Over) {
            Work::Here(work) => {
                let origin = ParkedOrigin::new(modern.peer, &modern.method, &modern.params);
                modern.parked.park(shared.clone(), origin, work)?
            }
            Work::Parked(call, _) => call,
            Work::Over => return Err(rpc_errors::panic_error(shared.may_have_executed())),
        };
        let state = call.detach()?;
        let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
        Ok(RawResult::from_text(super::outgoing::to_text(&result), true))
    }

    fn respond(&mut self) -> RunStep {
        // The id is free again before the client sees the response.
        self.entry = None;
        let shared = self.shared.as_ref();
        let failure = shared.and_then(|shared| shared.failure.get().copied());
        if let (Some(shared), Some(outcome)) = (shared, &self.outcome) {
            match outcome {
                Ok(_) => failure.into_iter().for_each(|kind| shared.info.note_failure(kind)),
                Err(error) => shared.info.note_error(error),
            }
        }
        if let (Some(observed), Some(outcome)) = (self.observed.take(), &self.outcome) {
            match outcome {
                Ok(_) => observed.succeed(failure),
                Err(error) => observed.fail(error),
            }
        }
        let response = self.outcome.take().map(|outcome| match (outcome, &self.modern) {
            (Err(error), _) => Outgoing::error(Some(&self.id), &error),
            (Ok(result), None) => Outgoing::result(&self.id, &result, false),
            (Ok(result), Some(modern)) if is_cacheable(&modern.method) => {
                Outgoing::result(&self.id, &result.with_default_cache(), true)
            }
            (Ok(result), Some(_)) => Outgoing::result(&self.id, &result, true),
        });
        RunStep::Done(response)
    }

    fn stop(&mut self) {
        let _request = self.shared.as_ref().map(|shared| shared.info.tag.enter());
        if let (Work::Here(_), Some(shared)) = (&self.work, &self.shared) {
            // A question that is open is then cancelled on the general stream, because this one ends.
            shared.stream.mute();
        }
        self.end_work();
        self.entry = None;
        self.observed = None;
    }

    fn end_work(&mut self) {
        match mem::replace(&mut self.work, Work::Over) {
            Work::Parked(call, calls) => calls.remove(&call),
            // A call that is dropped says so.
            Work::Here(work) => drop(work),
            Work::Over => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The methods whose results a modern client may cache.
pub(super) fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        method::SERVER_DISCOVER
            | method::TOOLS_LIST
            | method::RESOURCES_LIST
            | method::RESOURCES_TEMPLATES_LIST
            | method::RESOURCES_READ
            | method::PROMPTS_LIST
    )
}

/// The open questions by key, as a result names them.
fn input_requests(questions: &[Question]) -> Map<String, Value> {
    let request = |question: &Question| {
        let params: Value = serde_json::from_slice(&question.params).unwrap_or_default();
        (
            question.key.clone(),
            json!({"method": question.method, "params": params}),
        )
    };
    questions.iter().map(request).collect()
}
