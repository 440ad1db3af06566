//! Idempotency keys: a call runs once per key, and further calls with that key get its reply.

use std::{collections::HashMap, future::Future, time::Duration};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::Instant};

use pegboard_base::deadline::Deadline;
use pegboard_base::sync::Mutex;
use pegboard_tools::{
    args::Arguments,
    outcome::{Failure, Kind, Outcome, Reply},
};

/// The `_meta` entry that passes the key to the server.
pub(super) const META_KEY: &str = "dev.pegboard/idempotencyKey";
/// How long the reply is kept for calls with the same key, counted from the end of the call.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// The most keys that are remembered; the calls that ended first are evicted first.
const MAX_KEYS: usize = 1024;

/// The idempotency keys of one view, or of the views of a principal.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<HashMap<IdempotencyKey, KeyedCall>>);

/// A caller's key for one tool. The same key for another tool is a different one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey {
    pub(super) tool: String,
    pub(super) key: String,
    /// The server's unique number if the tool is one of the view's own: another view may have another tool of that name.
    pub(super) server: Option<u64>,
}

/// The call that claimed a key.
#[derive(Debug)]
struct KeyedCall {
    arguments: [u8; 32],
    reply: watch::Receiver<Option<Reply>>,
    /// When the call ended or was dropped.
    ended: Option<Instant>,
}

impl KeyedCall {
    fn is_expired(&self) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= LIFETIME)
    }
}

impl IdempotencyKeys {
    /// Runs `call`, unless one with this key and these arguments ran before; then waits for its reply and returns a copy. A call that was
    /// certainly not executed releases its key.
    pub(super) async fn once(
        &self,
        key: IdempotencyKey,
        arguments: &Arguments,
        deadline: Deadline,
        call: impl Future<Output = Reply>,
    ) -> Reply {
        match self.claim(&key, fingerprint(arguments)) {
            Claim::New(publisher) => {
                let mut guard = ClaimGuard {
                    keys: self,
                    key: &key,
                    is_released: false,
                };
                let reply = call.await;
                guard.is_released = !reply.outcome.may_have_executed();
                publisher.send_replace(Some(reply.clone()));
                reply
            }
            Claim::Existing(mut earlier) => match deadline.run(earlier.wait_for(Option::is_some)).await {
                Ok(Ok(reply)) => reply.clone().unwrap_or_else(|| unknown_end_reply(&key)),
                // The earlier call was dropped in flight, so its outcome is unknown; or it takes longer than this call may wait.
                Ok(Err(_)) | Err(_) => unknown_end_reply(&key),
            },
            Claim::Rejected(failure) => to_refused_reply(failure),
        }
    }

    /// Looks the key up and claims it under one lock, so that only one of two callers runs.
    fn claim(&self, key: &IdempotencyKey, arguments: [u8; 32]) -> Claim {
        let mut keys = self.0.lock();
        match keys.get(key) {
            Some(claimed) if claimed.is_expired() => {}
            Some(claimed) if claimed.arguments != arguments => return Claim::Rejected(taken_key_failure(key)),
            Some(claimed) => return Claim::Existing(claimed.reply.clone()),
            None => {}
        }
        if keys.len() >= MAX_KEYS && !evict(&mut keys) {
            return Claim::Rejected(Failure::new(
                Kind::LimitExceeded,
                format!("{MAX_KEYS} calls with keys are under way, and no more keys are taken"),
            ));
        }
        let (publisher, reply) = watch::channel(None);
        let claimed = KeyedCall {
            arguments,
            reply,
            ended: None,
        };
        keys.insert(key.clone(), claimed);
        Claim::New(publisher)
    }
}

/// The result of claiming a key.
enum Claim {
    /// Run the call and publish its reply.
    New(watch::Sender<Option<Reply>>),
    /// Wait for the reply of the earlier call.
    Existing(watch::Receiver<Option<Reply>>),
    Rejected(Failure),
}

/// Held while the call is in flight. Starts the key's expiry when the call ends or is dropped.
struct ClaimGuard<'a> {
    keys: &'a IdempotencyKeys,
    key: &'a IdempotencyKey,
    /// Whether the key is released because nothing was executed.
    is_released: bool,
}

impl Drop for ClaimGuard<'_> {
    fn drop(&mut self) {
        let mut keys = self.keys.0.lock();
        if self.is_released {
            keys.remove(self.key);
        } else if let Some(claimed) = keys.get_mut(self.key) {
            claimed.ended = Some(Instant::now());
        }
    }
}

/// Evicts expired keys, or else the call that ended first. A call in flight is never evicted: it could run twice then.
fn evict(keys: &mut HashMap<IdempotencyKey, KeyedCall>) -> bool {
    keys.retain(|_, claimed| !claimed.is_expired());
    if keys.len() < MAX_KEYS {
        return true;
    }
    let ended = keys.iter().filter_map(|(key, claimed)| Some((claimed.ended?, key)));
    let first = ended.min_by_key(|(at, _)| *at).map(|(_, key)| key.clone());
    first.is_some_and(|first| keys.remove(&first).is_some())
}

/// Hashes the arguments, independent of the order of their keys.
fn fingerprint(arguments: &Arguments) -> [u8; 32] {
    let text = arguments.as_raw().get();
    let sorted = serde_json::from_str(text).map(|tree: Value| tree.to_string());
    Sha256::digest(sorted.as_deref().unwrap_or(text)).into()
}

fn taken_key_failure(key: &IdempotencyKey) -> Failure {
    let message = format!(
        "the key `{}` belongs to an earlier call of `{}` with other arguments",
        key.key.escape_debug(),
        key.tool
    );
    Failure::new(Kind::InvalidArguments, message).hint("a new call needs a key of its own")
}

fn unknown_end_reply(key: &IdempotencyKey) -> Reply {
    let failure = Failure::new(
        Kind::Cancelled,
        format!(
            "an earlier call with the key `{}` was begun and its end is not known. It may have been carried out.",
            key.key.escape_debug()
        ),
    );
    let failure = failure.hint("check the state before using another key").after_sending();
    Reply::unanswered("", "", Outcome::Lost(failure), Duration::ZERO)
}

fn to_refused_reply(failure: Failure) -> Reply {
    Reply::unanswered("", "", Outcome::Refused(failure), Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_tools::outcome::Answer;

    fn key(key: impl Into<String>) -> IdempotencyKey {
        let tool = "fx.pay".to_owned();
        IdempotencyKey {
            tool,
            key: key.into(),
            server: None,
        }
    }

    fn done(text: &str) -> Reply {
        let answer = Answer::from_text(text);
        Reply::unanswered("", "", Outcome::Done(answer), Duration::ZERO)
    }

    async fn call(keys: &IdempotencyKeys, text: &str, arguments: &str, reply: Reply) -> Reply {
        let arguments = Arguments::parse(arguments).unwrap();
        let deadline = Deadline::within(Duration::from_secs(60));
        keys.once(key(text), &arguments, deadline, async { reply }).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_is_given_again_for_ten_minutes() {
        let keys = IdempotencyKeys::default();
        for (wait, text, expected) in [(0, "first", "first"), (599, "second", "first"), (1, "third", "third")] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            assert_eq!(call(&keys, "a", "{}", done(text)).await.text(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_key_runs_from_the_end_of_its_call() {
        let keys = IdempotencyKeys::default();
        let arguments = Arguments::default();
        let slow = async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            done("slow")
        };
        let late = async {
            tokio::time::sleep(Duration::from_secs(3599)).await;
            call(&keys, "a", "{}", done("twice")).await
        };
        let deadline = Deadline::within(Duration::from_secs(4000));
        let (first, second) = tokio::join!(keys.once(key("a"), &arguments, deadline, slow), late);
        assert_eq!((first.text(), second.text()), ("slow".into(), "slow".into()));
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(call(&keys, "a", "{}", done("twice")).await.text(), "slow");
    }

    #[tokio::test(start_paused = true)]
    async fn other_arguments_under_the_same_key_are_an_error_and_their_order_makes_no_difference() {
        let keys = IdempotencyKeys::default();
        call(&keys, "a", r#"{"x": 1, "y": 2}"#, done("1")).await;
        assert_eq!(call(&keys, "a", r#"{"y":2,"x":1}"#, done("2")).await.text(), "1");
        let other = call(&keys, "a", r#"{"x": 2, "y": 2}"#, done("3")).await;
        assert_eq!(other.outcome.kind(), Kind::InvalidArguments);
        assert!(!other.outcome.may_have_executed());
        assert!(other.text().contains("the key `a`"), "{}", other.text());
        assert_eq!(call(&keys, "b", r#"{"x": 2}"#, done("4")).await.text(), "4");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_surely_not_made_leaves_its_key_free() {
        let keys = IdempotencyKeys::default();
        let down = || to_refused_reply(Failure::new(Kind::Unavailable, "down"));
        assert_eq!(call(&keys, "a", "{}", down()).await.text(), "down");
        assert_eq!(call(&keys, "a", r#"{"x": 1}"#, done("made")).await.text(), "made");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_replies_make_room_and_calls_in_flight_never_do() {
        let keys = IdempotencyKeys::default();
        let (never, arguments) = (std::future::pending::<Reply>(), Arguments::default());
        let deadline = Deadline::within(Duration::from_secs(60));
        let mut in_flight = Box::pin(keys.once(key("0"), &arguments, deadline, never));
        assert!(futures_util::poll!(&mut in_flight).is_pending());
        for n in 1..=MAX_KEYS {
            call(&keys, &n.to_string(), "{}", done("first")).await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(keys.0.lock().len(), MAX_KEYS);
        assert_eq!(call(&keys, "2", "{}", done("again")).await.text(), "first");
        assert_eq!(call(&keys, "1", "{}", done("again")).await.text(), "again");
        assert!(keys.0.lock().contains_key(&key("0")));
    }
}
