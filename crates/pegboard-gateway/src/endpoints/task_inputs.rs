//! [`TaskInputs`]: what legacy servers ask about tasks of modern clients.
//!
//! A legacy server asks while `tasks/result` is pending. A modern client reads the questions in the response to `tasks/get`, and answers
//! them with `tasks/update`. So `tasks/result` is sent in the background as soon as a task needs input.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use pegboard_base::sync::Mutex;
use pegboard_protocol::code;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use crate::protocol::{RpcError, check_capability};

/// How long `tasks/get` waits for the questions of a task that needs input.
const QUESTIONS: Duration = Duration::from_secs(1);
/// How long a question may wait for its answer.
const ANSWER: Duration = Duration::from_secs(10 * 60);
/// The most tasks of an endpoint that may wait for input at once.
const MAX_TASKS: usize = 256;
/// The most questions of one task that may be open at once.
const MAX_QUESTIONS: usize = 16;

/// The tasks that wait for input, by the id that the client knows.
#[derive(Debug, Default)]
pub(super) struct TaskInputs(Mutex<HashMap<String, Waiting>>);

#[derive(Debug)]
struct Waiting {
    inputs: Arc<Inputs>,
    /// Sends `tasks/result`.
    fetching: AbortOnDropHandle<()>,
}

impl TaskInputs {
    /// The open questions of a task, as a modern client reads them. `fetch` starts the request that makes the server ask, unless it runs.
    pub(super) async fn questions(
        &self,
        id: &str,
        capabilities: &Bytes,
        fetch: impl FnOnce(Arc<Inputs>) -> AbortOnDropHandle<()>,
    ) -> Result<Map<String, Value>, RpcError> {
        let inputs = self.find_or_start(id, capabilities, fetch)?;
        let mut open = inputs.open.subscribe();
        // Without a question in time, the client polls again.
        let _ = timeout(QUESTIONS, open.wait_for(|open| !open.is_empty())).await;
        let questions = inputs.open.borrow();
        let shown = questions.iter().map(|(key, question)| {
            let question = json!({"method": question.method, "params": question.params});
            (key.clone(), question)
        });
        Ok(shown.collect())
    }

    fn find_or_start(
        &self,
        id: &str,
        capabilities: &Bytes,
        fetch: impl FnOnce(Arc<Inputs>) -> AbortOnDropHandle<()>,
    ) -> Result<Arc<Inputs>, RpcError> {
        let mut all = self.0.lock();
        all.retain(|_, waiting| !waiting.fetching.is_finished());
        if let Some(waiting) = all.get(id) {
            return Ok(waiting.inputs.clone());
        }
        if all.len() >= MAX_TASKS {
            let message = format!("{MAX_TASKS} tasks wait for input already; try again later");
            return Err(RpcError::new(code::BUSY, message));
        }
        let inputs = Arc::new(Inputs {
            capabilities: capabilities.clone(),
            open: watch::Sender::default(),
        });
        let fetching = fetch(inputs.clone());
        let waiting = Waiting {
            inputs: inputs.clone(),
            fetching,
        };
        all.insert(id.to_owned(), waiting);
        Ok(inputs)
    }

    /// Passes the client's answers on. Those to questions that are not open are ignored: the client may repeat itself.
    pub(super) fn answer(&self, id: &str, answers: Map<String, Value>) {
        let inputs = self.0.lock().get(id).map(|waiting| waiting.inputs.clone());
        let Some(inputs) = inputs else { return };
        for (key, answer) in answers {
            inputs.answer(&key, answer);
        }
    }
}

/// The open questions of one task.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// What the client that polls the task declares.
    capabilities: Bytes,
    open: watch::Sender<BTreeMap<String, Question>>,
}

#[derive(Debug)]
struct Question {
    method: String,
    params: Value,
    answer: oneshot::Sender<Value>,
}

impl Inputs {
    /// Asks the client that polls the task, and waits for its answer.
    pub(super) async fn ask(&self, name: Option<&str>, method: &str, params: Value) -> Result<Value, RpcError> {
        check_capability(&self.capabilities, method, &params)?;
        let (answer, answered) = oneshot::channel();
        let question = Question {
            method: method.to_owned(),
            params,
            answer,
        };
        let key = self.add(name, question)?;
        let _withdraw = Withdraw { inputs: self, key };
        match timeout(ANSWER, answered).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(RpcError::new(
                code::INTERNAL_ERROR,
                format!("the client did not answer `{method}` in time"),
            )),
        }
    }

    /// Adds a question under its name, or under the first number that is free.
    fn add(&self, name: Option<&str>, question: Question) -> Result<String, RpcError> {
        let mut added = Err(RpcError::new(code::BUSY, "too many questions of this task are open"));
        self.open.send_if_modified(|open| {
            if open.len() >= MAX_QUESTIONS {
                return false;
            }
            let numbers = (1..).map(|number: usize| format!("question-{number}"));
            let mut keys = name.map(str::to_owned).into_iter().chain(numbers);
            let Some(key) = keys.find(|key| !open.contains_key(key)) else {
                return false;
            };
            added = Ok(key.clone());
            open.insert(key, question);
            true
        });
        added
    }

    fn answer(&self, key: &str, answer: Value) {
        let mut question = None;
        self.open.send_if_modified(|open| {
            question = open.remove(key);
            question.is_some()
        });
        if let Some(question) = question {
            // The server may have given up.
            let _ = question.answer.send(answer);
        }
    }
}

/// Closes a question that its server no longer waits for.
struct Withdraw<'a> {
    inputs: &'a Inputs,
    key: String,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.inputs.open.send_if_modified(|open| {
            // Another question may have got the key.
            let is_ours = open.get(&self.key).is_some_and(|question| question.answer.is_closed());
            is_ours && open.remove(&self.key).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(_: Arc<Inputs>) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(std::future::pending()))
    }

    fn capabilities() -> Bytes {
        Bytes::from_static(br#"{"elicitation":{}}"#)
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_shown_until_it_is_answered() {
        let tasks = TaskInputs::default();
        let inputs = tasks.find_or_start("a", &capabilities(), fetch).unwrap();
        let asking = tokio::spawn({
            let inputs = inputs.clone();
            async move {
                inputs
                    .ask(Some("colour"), "elicitation/create", json!({"message": "?"}))
                    .await
            }
        });
        let questions = tasks.questions("a", &capabilities(), fetch).await.unwrap();
        assert_eq!(questions["colour"]["method"], "elicitation/create");
        let answers = json!({"colour": {"action": "decline"}, "other": {}});
        tasks.answer("b", answers.as_object().unwrap().clone());
        assert!(!asking.is_finished());
        tasks.answer("a", answers.as_object().unwrap().clone());
        assert_eq!(asking.await.unwrap().unwrap(), json!({"action": "decline"}));
        assert!(tasks.questions("a", &capabilities(), fetch).await.unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_bounded_and_withdrawn() {
        let tasks = TaskInputs::default();
        let inputs = tasks.find_or_start("a", &capabilities(), fetch).unwrap();
        let ask = || inputs.ask(Some("same"), "elicitation/create", json!({}));
        let mut open: Vec<_> = (0..MAX_QUESTIONS).map(|_| Box::pin(ask())).collect();
        for asked in &mut open {
            assert!(futures_util::poll!(asked).is_pending());
        }
        assert_eq!(ask().await.unwrap_err().code, code::BUSY);
        assert_eq!(inputs.open.borrow().len(), MAX_QUESTIONS);
        drop(open);
        assert!(inputs.open.borrow().is_empty());
        let lacking = inputs.ask(None, "roots/list", json!({})).await.unwrap_err();
        assert_eq!(lacking.code, code::MISSING_CAPABILITY);
        assert!(ask().await.is_err(), "no answer within ten minutes");
    }
}
