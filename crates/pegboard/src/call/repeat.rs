//! Calls that carry a key of their caller: the same key is carried out once, and everybody who used it gets that reply.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    sync::{Mutex, PoisonError},
};

use tokio::sync::watch;

use crate::{
    deadline::Deadline,
    outcome::{Failure, Kind, Outcome, Reply},
};

/// The most keys that are remembered; the oldest are forgotten first.
const MAX_KEYS: usize = 1024;

/// The keys that calls of one view have used.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    replies: HashMap<String, watch::Receiver<Option<Reply>>>,
    order: VecDeque<String>,
}

impl Keys {
    /// Runs the call unless one with this key was made before; then its reply is waited for and given again.
    pub(super) async fn once(&self, key: String, deadline: Deadline, call: impl Future<Output = Reply>) -> Reply {
        let earlier = self.lock().replies.get(&key).cloned();
        if let Some(mut earlier) = earlier {
            let reply = deadline.run(earlier.wait_for(Option::is_some)).await;
            return match reply {
                Ok(Ok(reply)) => reply.clone().unwrap_or_else(|| unknown(&key)),
                // Its caller gave it up, so nobody knows how far it came; or it takes longer than this one may wait.
                Ok(Err(_)) | Err(_) => unknown(&key),
            };
        }
        let told = self.begin(key);
        let reply = call.await;
        told.send_replace(Some(reply.clone()));
        reply
    }

    fn begin(&self, key: String) -> watch::Sender<Option<Reply>> {
        let (told, reply) = watch::channel(None);
        let mut used = self.lock();
        while used.order.len() >= MAX_KEYS {
            if let Some(oldest) = used.order.pop_front() {
                used.replies.remove(&oldest);
            }
        }
        used.order.push_back(key.clone());
        used.replies.insert(key, reply);
        told
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(key: &str) -> Reply {
    let failure = Failure::new(
        Kind::Cancelled,
        format!(
            "an earlier call with the key `{key}` was begun and its end is not known. It may have been carried out."
        ),
    );
    let failure = failure.hint("check the state before using another key").after_sending();
    Reply::unanswered("", "", Outcome::Lost(failure), std::time::Duration::ZERO)
}
