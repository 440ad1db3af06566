//! Caches answers, so that the same request is not sent twice. Off unless the operator sets a lifetime.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::CallContext;
use crate::{
    args::Arguments,
    catalog::Tool,
    config::Policy,
    filter,
    outcome::{Answer, Content},
};

/// The most cached answers.
const MAX_ENTRIES: usize = 1000;
/// The most bytes of cached payload.
const MAX_BYTES: usize = 32 << 20;

/// The cached answers of one view. Views do not share them.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<CacheKey, Entry>,
    /// The keys from the oldest answer to the newest.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    answer: Answer,
    bytes: usize,
    until: Instant,
}

/// What identifies a request: the server, the tool, and the arguments in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    /// The server's number: another server may have its name by now.
    server: u64,
    tool: String,
    arguments: String,
}

impl CacheKey {
    /// The key of a call and the lifetime of its answer; `None` if the answer must not be cached.
    pub(super) fn of(job: &CallContext<'_>, arguments: &Arguments) -> Option<(Box<Self>, Duration)> {
        let lifetime = lifetime(job.tool(), &job.config.policy)?;
        // Parsing and serialising sorts the keys, so that their order makes no difference.
        let arguments: Value = serde_json::from_str(arguments.as_raw().get()).ok()?;
        let question = Self {
            server: job.server().number(),
            tool: job.tool().name.clone(),
            arguments: arguments.to_string(),
        };
        Some((Box::new(question), lifetime))
    }
}

/// How long answers of a tool are cached. A server's lifetime applies to tools declared read-only; a lifetime for a named tool also applies
/// if it declares nothing, but a tool that declares itself writing or destructive is never cached.
fn lifetime(tool: &Tool, policy: &Policy) -> Option<Duration> {
    if policy.cache.is_none() && policy.tools_cache.is_empty() {
        return None;
    }
    let hint = |name: &str| tool.annotations.as_ref()?.get(name)?.as_bool();
    let named = policy
        .tools_cache
        .iter()
        .find(|(glob, _)| filter::fits(glob, &tool.name));
    match (hint("readOnlyHint"), named) {
        (Some(false), _) => None,
        (None, _) if hint("destructiveHint") == Some(true) => None,
        (_, Some((_, lifetime))) => *lifetime,
        (Some(true), None) => policy.cache,
        (None, None) => None,
    }
}

impl Cache {
    /// Returns the cached answer for this key unless it has expired.
    pub(super) fn get(&self, question: &CacheKey) -> Option<Answer> {
        let kept = self.lock();
        let entry = kept.answers.get(question)?;
        (entry.until > Instant::now()).then(|| entry.answer.clone())
    }

    /// Caches an answer, evicting the oldest ones to make room.
    pub(super) fn put(&self, question: CacheKey, answer: &Answer, lifetime: Duration) {
        let bytes = size(answer) + question.arguments.len();
        if bytes > MAX_BYTES / 8 {
            return;
        }
        let mut kept = self.lock();
        kept.forget(&question);
        while kept.answers.len() >= MAX_ENTRIES || kept.bytes + bytes > MAX_BYTES {
            let Some(oldest) = kept.order.front().cloned() else {
                break;
            };
            kept.forget(&oldest);
        }
        let entry = Entry {
            answer: answer.clone(),
            bytes,
            until: Instant::now() + lifetime,
        };
        kept.bytes += bytes;
        kept.order.push_back(question.clone());
        kept.answers.insert(question, entry);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget(&mut self, question: &CacheKey) {
        if let Some(entry) = self.answers.remove(question) {
            self.bytes -= entry.bytes;
            self.order.retain(|kept| kept != question);
        }
    }
}

fn size(answer: &Answer) -> usize {
    let blocks: usize = answer.content.iter().map(Content::payload_bytes).sum();
    let structured = answer.structured.as_ref().map_or(0, |value| value.to_string().len());
    blocks + structured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(arguments: &str) -> CacheKey {
        CacheKey {
            server: 1,
            tool: "t".into(),
            arguments: arguments.into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_time() {
        let cache = Cache::default();
        let answer = Answer::from_text("noon");
        cache.put(question("{}"), &answer, Duration::from_secs(10));
        assert_eq!(cache.get(&question("{}")), Some(answer));
        assert_eq!(cache.get(&question(r#"{"a":1}"#)), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cache.get(&question("{}")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_answers_make_room_and_a_huge_one_is_not_kept() {
        let cache = Cache::default();
        let lifetime = Duration::from_secs(60);
        for n in 0..=MAX_ENTRIES {
            cache.put(question(&n.to_string()), &Answer::from_text("x"), lifetime);
        }
        assert_eq!(cache.get(&question("0")), None);
        assert!(cache.get(&question("1")).is_some());
        assert_eq!(cache.lock().answers.len(), MAX_ENTRIES);
        let big = Answer::from_text("x".repeat(MAX_BYTES / 9));
        for n in 0..20 {
            cache.put(question(&format!("big {n}")), &big, lifetime);
        }
        assert!(cache.lock().bytes <= MAX_BYTES);
        cache.put(
            question("huge"),
            &Answer::from_text("x".repeat(MAX_BYTES / 2)),
            lifetime,
        );
        assert_eq!(cache.get(&question("huge")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_answer_takes_the_place_of_the_old_one() {
        let cache = Cache::default();
        for text in ["old", "new"] {
            cache.put(question("{}"), &Answer::from_text(text), Duration::from_secs(60));
        }
        assert_eq!(cache.get(&question("{}")), Some(Answer::from_text("new")));
        assert_eq!(cache.lock().order.len(), 1);
    }
}
