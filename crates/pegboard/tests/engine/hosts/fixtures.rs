//! Hosts that record what they are asked, and answer at once or when the test lets them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use pegboard::{
    Caller, Host, Principal, Reply, ToolCall, Toolset, View,
    host::{ElicitAnswer, Elicitation, HostContext},
};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::*;

/// `call view principal trace` of a caller.
pub(crate) fn shown(caller: &Caller<'_>) -> String {
    let principal = caller.principal.map_or("-", Principal::as_str);
    let trace = caller.meta.get("trace").and_then(Value::as_str).unwrap_or("-");
    format!("{} {} {principal} {trace}", caller.call, caller.view)
}

/// A person who is asked for a colour and answers with their own name.
#[derive(Clone)]
pub(crate) struct Person {
    name: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
    /// A permit for each answer.
    answers: Arc<Semaphore>,
}

impl Person {
    /// A person who answers at once.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            asked: Arc::default(),
            open: Arc::default(),
            answers: Arc::new(Semaphore::new(1000)),
        }
    }

    /// A person who answers once for each [`Person::answer`].
    pub(crate) fn slow(name: &'static str) -> Self {
        Self {
            answers: Arc::new(Semaphore::new(0)),
            ..Self::new(name)
        }
    }

    pub(crate) fn answer(&self) {
        self.answers.add_permits(1);
    }

    /// What was asked so far: the server and the caller.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// How many questions wait for an answer.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The view of this person: named after them, with them as principal and host.
    pub(crate) fn view(&self) -> View {
        View::new()
            .name(format!("{}s", self.name))
            .principal(self.name)
            .host(self.clone())
    }
}

/// Counts a question as open until it is dropped.
struct OpenQuestion(Arc<AtomicUsize>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Host for Person {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        context: HostContext<'a>,
        _request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(async move {
            self.open.fetch_add(1, Ordering::SeqCst);
            let _open = OpenQuestion(self.open.clone());
            let caller = context.caller.map_or_else(|| "-".to_owned(), |caller| shown(&caller));
            self.asked.lock().push(format!("{}: {caller}", context.server));
            self.answers.acquire().await.unwrap().forget();
            let answer = json!({"colour": self.name});
            ElicitAnswer::Accept(answer.as_object().unwrap().clone())
        })
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "never: {what}");
}

/// Calls the tool `fx.ask` with this id, and with the id as trace.
pub(crate) async fn ask(tools: &Toolset, id: &str) -> Reply {
    tools.call(ToolCall::new("fx.ask").id(id).meta("trace", id)).await
}
