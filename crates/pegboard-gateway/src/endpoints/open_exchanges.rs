//! [`OpenExchanges`]: the requests of a toolset's clients that are being answered, so that a server's question finds the one it belongs to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::protocol::Exchange;

/// The most pages that are remembered until their servers say that the user has finished there.
const MAX_ELICITATIONS: usize = 64;

/// Whose requests a toolset sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    /// One client's: whatever request a question belongs to, the same person is asked.
    OneClient,
    /// Those of several clients of one principal. A question must belong to one of them for certain.
    Several,
}

/// The open exchanges by call.
#[derive(Debug)]
pub(super) struct OpenExchanges {
    audience: Audience,
    open: Mutex<HashMap<String, Exchange>>,
    /// The number of the last request that is no call.
    last_request: AtomicU64,
    /// The ids of the last pages that a client was sent to.
    elicitations: Mutex<VecDeque<String>>,
}

impl OpenExchanges {
    pub(super) fn new(audience: Audience) -> Arc<Self> {
        Arc::new(Self {
            audience,
            open: Mutex::default(),
            last_request: AtomicU64::new(0),
            elicitations: Mutex::default(),
        })
    }

    /// Adds the exchange of a call until the returned value is dropped.
    pub(super) fn register(self: &Arc<Self>, call: &str, exchange: &Exchange) -> Registered {
        self.lock().insert(call.to_owned(), exchange.clone());
        Registered {
            exchanges: self.clone(),
            call: call.to_owned(),
        }
    }

    /// Adds the exchange of a request that is no call.
    pub(super) fn register_request(self: &Arc<Self>, exchange: &Exchange) -> Registered {
        let number = self.last_request.fetch_add(1, Ordering::Relaxed);
        self.register(&format!("request-{number}"), exchange)
    }

    /// The exchange that a question for `call` belongs to. Among several clients only the call itself tells them apart. One client is asked
    /// on any of its exchanges: a task asks under an id of its own, and a server may not say which call it asks for.
    pub(super) fn find(&self, call: &str) -> Option<Exchange> {
        let open = self.lock();
        let any = || match self.audience {
            Audience::OneClient => open.values().next(),
            Audience::Several => None,
        };
        open.get(call).or_else(any).cloned()
    }

    /// Remembers that a client was sent to a page.
    pub(super) fn note_elicitation(&self, id: &str) {
        let mut ids = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= MAX_ELICITATIONS {
            ids.pop_front();
        }
        ids.push_back(id.to_owned());
    }

    /// Whether a client was sent to this page.
    pub(super) fn has_asked(&self, id: &str) -> bool {
        let ids = self.elicitations.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().any(|known| known == id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Exchange>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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
        let removed = self.exchanges.lock().remove(&self.call);
        // Dropped outside the lock: it may be the last handle of its request.
        drop(removed);
    }
}
