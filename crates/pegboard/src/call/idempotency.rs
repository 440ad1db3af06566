//! Calls that carry a key of their caller: the same key is carried out once, and everybody who uses it again gets that reply.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::Instant};

use crate::{
    args::Arguments,
    deadline::Deadline,
    outcome::{Failure, Kind, Outcome, Reply},
};

/// Where a server finds the key in the `_meta` of a call.
pub(super) const META: &str = "dev.pegboard/idempotencyKey";
/// How long the reply to a call is given again after the call has ended.
const WINDOW: Duration = Duration::from_secs(600);
/// The most keys that are remembered; of the calls that have ended the oldest are forgotten first.
const MAX_KEYS: usize = 1024;

/// The keys that calls of one view have used.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<HashMap<IdempotencyKey, Used>>);

/// A caller's key. The same word for another tool is another key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey {
    pub(super) tool: String,
    pub(super) word: String,
}

/// The call that was made under a key.
#[derive(Debug)]
struct Used {
    arguments: [u8; 32],
    reply: watch::Receiver<Option<Reply>>,
    /// When the call ended, or was given up.
    ended: Option<Instant>,
}

impl Used {
    fn is_over(&self) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= WINDOW)
    }
}

impl IdempotencyKeys {
    /// Makes the call, unless one with this key and these arguments was made before; then its reply is waited for and given again. A call
    /// that was surely not carried out leaves its key free.
    pub(super) async fn once(
        &self,
        key: IdempotencyKey,
        arguments: &Arguments,
        deadline: Deadline,
        call: impl Future<Output = Reply>,
    ) -> Reply {
        match self.begin(&key, fingerprint(arguments)) {
            Begin::Now(told) => {
                let mut begun = Begun {
                    keys: self,
                    key: &key,
                    is_free: false,
                };
                let reply = call.await;
                begun.is_free = !reply.outcome.may_have_executed();
                told.send_replace(Some(reply.clone()));
                reply
            }
            Begin::Before(mut earlier) => match deadline.run(earlier.wait_for(Option::is_some)).await {
                Ok(Ok(reply)) => reply.clone().unwrap_or_else(|| unknown(&key)),
                // Its caller gave it up, so nobody knows how far it came; or it takes longer than this one may wait.
                Ok(Err(_)) | Err(_) => unknown(&key),
            },
            Begin::Never(failure) => refused(failure),
        }
    }

    /// Looks the key up and takes it in one step, so that of two callers only one begins.
    fn begin(&self, key: &IdempotencyKey, arguments: [u8; 32]) -> Begin {
        let mut keys = self.lock();
        match keys.get(key) {
            Some(used) if used.is_over() => {}
            Some(used) if used.arguments != arguments => return Begin::Never(taken(key)),
            Some(used) => return Begin::Before(used.reply.clone()),
            None => {}
        }
        if keys.len() >= MAX_KEYS && !make_room(&mut keys) {
            return Begin::Never(Failure::new(
                Kind::LimitExceeded,
                format!("{MAX_KEYS} calls with keys are under way, and no more keys are taken"),
            ));
        }
        let (told, reply) = watch::channel(None);
        let used = Used {
            arguments,
            reply,
            ended: None,
        };
        keys.insert(key.clone(), used);
        Begin::Now(told)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IdempotencyKey, Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a caller with a key is to do.
enum Begin {
    /// Make the call, and tell its reply.
    Now(watch::Sender<Option<Reply>>),
    /// Wait for the reply of the call that was made before.
    Before(watch::Receiver<Option<Reply>>),
    Never(Failure),
}

/// A call under way. However it ends, also when it is given up, the time of its key begins to run.
struct Begun<'a> {
    keys: &'a IdempotencyKeys,
    key: &'a IdempotencyKey,
    /// Whether nothing was done under the key.
    is_free: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut keys = self.keys.lock();
        if self.is_free {
            keys.remove(self.key);
        } else if let Some(used) = keys.get_mut(self.key) {
            used.ended = Some(Instant::now());
        }
    }
}

/// Forgets what is over, or else the call that ended first. A call under way is never forgotten: it could be made twice then.
fn make_room(keys: &mut HashMap<IdempotencyKey, Used>) -> bool {
    keys.retain(|_, used| !used.is_over());
    if keys.len() < MAX_KEYS {
        return true;
    }
    let ended = keys.iter().filter_map(|(key, used)| Some((used.ended?, key)));
    let first = ended.min_by_key(|(at, _)| *at).map(|(_, key)| key.clone());
    first.is_some_and(|first| keys.remove(&first).is_some())
}

/// Says of two calls whether they have the same arguments, in whatever order these are written.
fn fingerprint(arguments: &Arguments) -> [u8; 32] {
    let text = arguments.as_raw().get();
    let sorted = serde_json::from_str(text).map(|tree: Value| tree.to_string());
    Sha256::digest(sorted.as_deref().unwrap_or(text)).into()
}

fn taken(key: &IdempotencyKey) -> Failure {
    let message = format!(
        "the key `{}` belongs to an earlier call of `{}` with other arguments",
        key.word.escape_debug(),
        key.tool
    );
    Failure::new(Kind::InvalidArguments, message).hint("a new call needs a key of its own")
}

fn unknown(key: &IdempotencyKey) -> Reply {
    let failure = Failure::new(
        Kind::Cancelled,
        format!(
            "an earlier call with the key `{}` was begun and its end is not known. It may have been carried out.",
            key.word.escape_debug()
        ),
    );
    let failure = failure.hint("check the state before using another key").after_sending();
    Reply::unanswered("", "", Outcome::Lost(failure), Duration::ZERO)
}

fn refused(failure: Failure) -> Reply {
    Reply::unanswered("", "", Outcome::Refused(failure), Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Answer;

    fn key(word: impl Into<String>) -> IdempotencyKey {
        let tool = "fx.pay".to_owned();
        IdempotencyKey {
            tool,
            word: word.into(),
        }
    }

    fn done(text: &str) -> Reply {
        let answer = Answer::from_text(text);
        Reply::unanswered("", "", Outcome::Done(answer), Duration::ZERO)
    }

    async fn call(keys: &IdempotencyKeys, word: &str, arguments: &str, reply: Reply) -> Reply {
        let arguments = Arguments::parse(arguments).unwrap();
        let deadline = Deadline::within(Duration::from_secs(60));
        keys.once(key(word), &arguments, deadline, async { reply }).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_is_given_again_for_ten_minutes() {
        let keys = IdempotencyKeys::default();
        for (wait, made, told) in [(0, "first", "first"), (599, "second", "first"), (1, "third", "third")] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            assert_eq!(call(&keys, "a", "{}", done(made)).await.text(), told);
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
        let down = || refused(Failure::new(Kind::Unavailable, "down"));
        assert_eq!(call(&keys, "a", "{}", down()).await.text(), "down");
        assert_eq!(call(&keys, "a", r#"{"x": 1}"#, done("made")).await.text(), "made");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_replies_make_room_and_calls_under_way_never_do() {
        let keys = IdempotencyKeys::default();
        let (never, arguments) = (std::future::pending::<Reply>(), Arguments::default());
        let deadline = Deadline::within(Duration::from_secs(60));
        let mut under_way = Box::pin(keys.once(key("0"), &arguments, deadline, never));
        assert!(futures_util::poll!(&mut under_way).is_pending());
        for n in 1..=MAX_KEYS {
            call(&keys, &n.to_string(), "{}", done("first")).await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(keys.lock().len(), MAX_KEYS);
        assert_eq!(call(&keys, "2", "{}", done("again")).await.text(), "first");
        assert_eq!(call(&keys, "1", "{}", done("again")).await.text(), "again");
        assert!(keys.lock().contains_key(&key("0")));
    }
}
