//! [`OpenExchanges`]: the requests of a toolset's clients that are being answered, so that a server's question finds the one it belongs to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use pegboard::ServerName;
use pegboard_base::sync::Mutex;

use super::{related_tasks::RelatedTasks, task_inputs::Inputs};
use crate::protocol::{Exchange, RpcError};

/// The most pages that are remembered until their servers say that the user has finished there.
const MAX_ELICITATIONS: usize = 64;
/// The most calls that are noted until they end. A note is lost only if so many others end in the meantime.
const MAX_LACKING: usize = 256;

/// Whose requests a toolset sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// One client's: whatever request a question belongs to, the same person is asked.
    OneClient,
    /// Those of several clients of one principal.
    Several,
}

/// The open exchanges by call.
#[derive(Debug)]
pub(super) struct OpenExchanges {
    audience: Audience,
    open: Mutex<HashMap<String, OpenExchange>>,
    /// Tasks whose results are waited for without an exchange, by request.
    tasks: Mutex<HashMap<String, Arc<Inputs>>>,
    /// By which ids the clients know the tasks of servers.
    pub(super) task_ids: RelatedTasks,
    /// The number of the last exchange, and of the last request that is no call.
    last: AtomicU64,
    /// The ids of the last pages that a client was sent to.
    elicitations: Mutex<VecDeque<String>>,
    /// The ids of the last sign-in pages that a legacy client was sent to, with their servers.
    sign_ins: Mutex<VecDeque<(String, ServerName)>>,
    /// The last calls whose client lacks what their servers asked for.
    lacking: Mutex<VecDeque<(String, RpcError)>>,
}

#[derive(Debug)]
struct OpenExchange {
    exchange: Exchange,
    /// Later ones have higher numbers.
    number: u64,
}

impl OpenExchanges {
    pub(super) fn new(audience: Audience) -> Arc<Self> {
        Arc::new(Self {
            audience,
            open: Mutex::default(),
            tasks: Mutex::default(),
            task_ids: RelatedTasks::default(),
            last: AtomicU64::new(0),
            elicitations: Mutex::default(),
            sign_ins: Mutex::default(),
            lacking: Mutex::default(),
        })
    }

    /// Adds the exchange of a call until the returned value is dropped.
    pub(super) fn register(self: &Arc<Self>, call: &str, exchange: &Exchange) -> Registered {
        let open = OpenExchange {
            exchange: exchange.clone(),
            number: self.last.fetch_add(1, Ordering::Relaxed),
        };
        self.open.lock().insert(call.to_owned(), open);
        Registered {
            exchanges: self.clone(),
            call: call.to_owned(),
        }
    }

    /// An id for a request that is no call. No call has one like it.
    pub(super) fn request_id(&self) -> String {
        format!("request-{}", self.last.fetch_add(1, Ordering::Relaxed))
    }

    /// The exchange of a call.
    pub(super) fn find(&self, call: &str) -> Option<Exchange> {
        self.open.lock().get(call).map(|open| open.exchange.clone())
    }

    /// The exchange that a question for `call` belongs to. The call is empty if the library cannot tell which of several of the same principal
    /// it is: `candidates` are their ids.
    pub(super) fn route_question(&self, call: &str, candidates: &[String]) -> QuestionRoute {
        let open = self.open.lock();
        if let Some(exact) = open.get(call) {
            return QuestionRoute::Exchange(call.to_owned(), exact.exchange.clone());
        }
        match self.audience {
            // It is asked on any of its exchanges, because a task asks under an id of its own.
            Audience::OneClient => {
                QuestionRoute::from_latest(open.iter()).unwrap_or_else(|| QuestionRoute::None(call.to_owned()))
            }
            Audience::Several if call.is_empty() => Self::find_among(&open, candidates),
            Audience::Several => QuestionRoute::None(call.to_owned()),
        }
    }

    /// The latest of several calls whose client is there. A client that has left a call waiting may never come back, and its server has asked
    /// already, so a call whose client answers no questions is more likely to be meant.
    fn find_among(open: &HashMap<String, OpenExchange>, candidates: &[String]) -> QuestionRoute {
        let able = candidates.iter().filter_map(|call| open.get_key_value(call));
        let attended = able.filter(|(_, open)| !open.exchange.is_parked());
        QuestionRoute::from_latest(attended).unwrap_or_else(|| {
            let unable = candidates.iter().find(|call| !open.contains_key(*call));
            QuestionRoute::None(unable.cloned().unwrap_or_default())
        })
    }

    /// Adds a task whose questions its client polls, until the returned value is dropped. `request` waits for its result.
    pub(super) fn register_task(self: &Arc<Self>, request: &str, inputs: Arc<Inputs>) -> RegisteredTask {
        self.tasks.lock().insert(request.to_owned(), inputs);
        RegisteredTask {
            exchanges: self.clone(),
            request: request.to_owned(),
        }
    }

    /// The task that a question for `request` is about. The request is empty if the library cannot tell which it is: then it is the only
    /// one, if there is no exchange either.
    pub(super) fn find_task(&self, request: &str) -> Option<Arc<Inputs>> {
        let tasks = self.tasks.lock();
        if request.is_empty() && tasks.len() == 1 && self.open.lock().is_empty() {
            return tasks.values().next().cloned();
        }
        tasks.get(request).cloned()
    }

    /// Notes that the client of a call lacks what its server asked for. Only modern clients are told, and those are several.
    pub(super) fn note_lacking(&self, call: &str, error: RpcError) {
        if self.audience == Audience::Several {
            let mut lacking = self.lacking.lock();
            if lacking.len() >= MAX_LACKING {
                lacking.pop_front();
            }
            lacking.push_back((call.to_owned(), error));
        }
    }

    /// Takes the note about a call that has ended.
    pub(super) fn take_lacking(&self, call: &str) -> Option<RpcError> {
        let mut lacking = self.lacking.lock();
        let at = lacking.iter().position(|(noted, _)| noted == call)?;
        let (_, error) = lacking.remove(at)?;
        Some(error)
    }

    /// Remembers that a client was sent to a page.
    pub(super) fn note_elicitation(&self, id: &str) {
        let mut ids = self.elicitations.lock();
        if ids.len() >= MAX_ELICITATIONS {
            ids.pop_front();
        }
        ids.push_back(id.to_owned());
    }

    /// Whether a client was sent to this page.
    pub(super) fn has_asked(&self, id: &str) -> bool {
        let ids = self.elicitations.lock();
        ids.iter().any(|known| known == id)
    }

    /// Remembers that a legacy client was sent to the sign-in page of a server.
    pub(super) fn note_sign_in(&self, id: &str, server: &ServerName) {
        let mut pages = self.sign_ins.lock();
        if pages.iter().any(|(known, _)| known == id) {
            return;
        }
        if pages.len() >= MAX_ELICITATIONS {
            pages.pop_front();
        }
        pages.push_back((id.to_owned(), server.clone()));
    }

    /// Forgets the sign-in pages of a server, and returns their ids.
    pub(super) fn take_sign_ins(&self, server: &ServerName) -> Vec<String> {
        let mut pages = self.sign_ins.lock();
        let ids = pages.iter().filter(|(_, of)| of == server).map(|(id, _)| id.clone());
        let ids = ids.collect();
        pages.retain(|(_, of)| of != server);
        ids
    }
}

/// Where a question goes.
#[derive(Debug)]
pub(super) enum QuestionRoute {
    /// To the client of this call.
    Exchange(String, Exchange),
    /// Nowhere: the client of this call answers no questions. The call is empty if it is unknown.
    None(String),
}

impl QuestionRoute {
    /// The latest of these calls.
    fn from_latest<'a>(calls: impl Iterator<Item = (&'a String, &'a OpenExchange)>) -> Option<Self> {
        let (call, open) = calls.max_by_key(|(_, open)| open.number)?;
        Some(Self::Exchange(call.clone(), open.exchange.clone()))
    }
}

/// Keeps an exchange open for questions.
#[derive(Debug)]
pub(super) struct Registered {
    exchanges: Arc<OpenExchanges>,
    call: String,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let removed = self.exchanges.open.lock().remove(&self.call);
        // Dropped outside the lock: it may be the last handle of its request.
        drop(removed);
    }
}

/// Keeps a task open for questions.
#[derive(Debug)]
pub(super) struct RegisteredTask {
    exchanges: Arc<OpenExchanges>,
    request: String,
}

impl Drop for RegisteredTask {
    fn drop(&mut self) {
        self.exchanges.tasks.lock().remove(&self.request);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        door::Caller,
        protocol::{Client, Version},
    };

    fn exchange() -> Exchange {
        let empty = Bytes::from_static(b"{}");
        let client = Client::new(Caller::default(), Version::V2026_07_28, empty.clone(), empty);
        Exchange::detached(client)
    }

    /// The call whose client is asked, or why there is none: the call that is named as unable.
    fn asked(exchanges: &OpenExchanges, call: &str, candidates: &[&str]) -> Result<String, String> {
        let candidates: Vec<String> = candidates.iter().map(|&call| call.to_owned()).collect();
        match exchanges.route_question(call, &candidates) {
            QuestionRoute::Exchange(call, _) => Ok(call),
            QuestionRoute::None(call) => Err(call),
        }
    }

    #[test]
    fn a_question_goes_to_the_client_of_its_call_and_to_no_other_of_several() {
        let exchanges = OpenExchanges::new(Audience::Several);
        let first = exchange();
        let _open = [
            exchanges.register("first", &first),
            exchanges.register("second", &exchange()),
        ];
        let both = ["first", "second"];
        assert_eq!(asked(&exchanges, "first", &[]), Ok("first".into()));
        assert_eq!(
            asked(&exchanges, "gone", &both),
            Err("gone".into()),
            "it names its call"
        );
        assert_eq!(asked(&exchanges, "", &[]), Err(String::new()), "it may be anybody's");
        assert_eq!(asked(&exchanges, "", &["first"]), Ok("first".into()));
        assert_eq!(asked(&exchanges, "", &both), Ok("second".into()), "the latest");
        assert_eq!(asked(&exchanges, "", &["gone"]), Err("gone".into()));
        first.park();
        assert_eq!(
            asked(&exchanges, "", &["first", "gone"]),
            Err("gone".into()),
            "the client of the first was asked already"
        );
    }

    #[test]
    fn a_question_to_the_only_client_goes_to_its_latest_call() {
        let exchanges = OpenExchanges::new(Audience::OneClient);
        assert_eq!(asked(&exchanges, "task", &[]), Err("task".into()));
        let _first = exchanges.register("first", &exchange());
        let second = exchanges.register("second", &exchange());
        assert_eq!(asked(&exchanges, "task", &[]), Ok("second".into()));
        drop(second);
        assert_eq!(asked(&exchanges, "task", &[]), Ok("first".into()));
    }

    #[test]
    fn a_question_without_a_call_is_about_the_only_task_if_nothing_else_is_open() {
        let exchanges = OpenExchanges::new(Audience::Several);
        let has_task = |request: &str| exchanges.find_task(request).is_some();
        let first = exchanges.register_task("first", Arc::default());
        assert_eq!(["first", "", "other"].map(has_task), [true, true, false]);
        let second = exchanges.register_task("second", Arc::default());
        assert_eq!(["second", ""].map(has_task), [true, false], "it may be about either");
        drop(second);
        let _call = exchanges.register("call", &exchange());
        assert_eq!(["first", ""].map(has_task), [true, false], "it may be about the call");
        drop(first);
        assert!(!has_task("first"));
    }

    #[test]
    fn a_page_is_remembered_for_the_client_that_was_sent_there() {
        let [ada, bob] = [(); 2].map(|()| OpenExchanges::new(Audience::OneClient));
        ada.note_elicitation("page");
        assert!(ada.has_asked("page") && !ada.has_asked("other") && !bob.has_asked("page"));
    }
}
