//! Caches answers, so that the same request is not sent twice. Off unless the operator sets a lifetime.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use pegboard_base::sync::Mutex;
use pegboard_config::Policy;
use pegboard_tools::{
    args::Arguments,
    catalog::Tool,
    filter,
    outcome::{Answer, Content},
};

/// The most cached answers.
const MAX_ENTRIES: usize = 1000;
/// The most bytes of cached payload.
const MAX_BYTES: usize = 32 << 20;

/// The cached answers of one view, or of the views of a principal.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    answers: HashMap<CacheKey, CachedResult>,
    /// The keys from the oldest answer to the newest.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedResult {
    answer: Answer,
    bytes: usize,
    until: Instant,
}

/// What identifies a request: the server, the tool, and the arguments in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    /// The server's unique number; its name may belong to another server by now.
    server: u64,
    tool: String,
    arguments: String,
}

impl CacheKey {
    /// The key of a call and the lifetime of its answer; `None` if the answer must not be cached. `server` is the server's number.
    pub(super) fn new(
        server: u64,
        tool: &Tool,
        is_believed: bool,
        policy: &Policy,
        arguments: &Arguments,
    ) -> Option<(Box<Self>, Duration)> {
        let lifetime = lifetime(tool, is_believed, policy)?;
        // Parsing and serialising sorts the keys, so that their order makes no difference.
        let arguments: Value = serde_json::from_str(arguments.as_raw().get()).ok()?;
        let key = Self {
            server,
            tool: tool.name.clone(),
            arguments: arguments.to_string(),
        };
        Some((Box::new(key), lifetime))
    }
}

/// How long answers of a tool are cached. A server's lifetime applies to tools with a `readOnlyHint` that is believed; a lifetime for a named
/// tool also applies to tools without annotations. An exact name wins over globs; of several globs, the first in alphabetical order applies. `readOnlyHint: false`, or
/// `destructiveHint: true` alone, turns caching off.
fn lifetime(tool: &Tool, is_believed: bool, policy: &Policy) -> Option<Duration> {
    if policy.cache.is_none() && policy.tools_cache.is_empty() {
        return None;
    }
    let hint = |name: &str| tool.annotations.as_ref()?.get(name)?.as_bool();
    let exact = policy.tools_cache.get(&tool.name);
    let by_glob = || {
        policy
            .tools_cache
            .iter()
            .find(|(glob, _)| filter::fits(glob, &tool.name))
    };
    let named = exact.or_else(|| by_glob().map(|(_, lifetime)| lifetime));
    match (hint("readOnlyHint"), named) {
        (Some(false), _) => None,
        (None, _) if hint("destructiveHint") == Some(true) => None,
        (_, Some(lifetime)) => *lifetime,
        (Some(true), None) if is_believed => policy.cache,
        (Some(true) | None, None) => None,
    }
}

impl Cache {
    /// Returns the cached answer for this key unless it has expired.
    pub(super) fn get(&self, key: &CacheKey) -> Option<Answer> {
        let entries = self.0.lock();
        let entry = entries.answers.get(key)?;
        (entry.until > Instant::now()).then(|| entry.answer.clone())
    }

    /// Caches an answer, evicting the oldest ones to make room.
    pub(super) fn put(&self, key: CacheKey, answer: &Answer, lifetime: Duration) {
        let bytes = size(answer) + key.arguments.len();
        if bytes > MAX_BYTES / 8 {
            return;
        }
        let mut entries = self.0.lock();
        entries.remove(&key);
        while entries.answers.len() >= MAX_ENTRIES || entries.bytes + bytes > MAX_BYTES {
            let Some(oldest) = entries.order.front().cloned() else {
                break;
            };
            entries.remove(&oldest);
        }
        let entry = CachedResult {
            answer: answer.clone(),
            bytes,
            until: Instant::now() + lifetime,
        };
        entries.bytes += bytes;
        entries.order.push_back(key.clone());
        entries.answers.insert(key, entry);
    }
}

impl Entries {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.answers.remove(key) {
            self.bytes -= entry.bytes;
            self.order.retain(|other| other != key);
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

    fn key(arguments: &str) -> CacheKey {
        CacheKey {
            server: 1,
            tool: "t".into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn an_exact_name_wins_over_a_glob() {
        let server = "fx".parse().unwrap();
        let tool = Tool::parse_built_in(
            &server,
            serde_json::json!({"name": "get", "inputSchema": {"type": "object"}}),
        )
        .unwrap();
        let mut policy = Policy::default();
        policy.tools_cache.insert("*".into(), Some(Duration::from_secs(60)));
        assert_eq!(lifetime(&tool, false, &policy), Some(Duration::from_secs(60)));
        policy.tools_cache.insert("get".into(), None);
        assert_eq!(lifetime(&tool, false, &policy), None);
    }

    /// A server could otherwise have a write answered from the cache by calling it a read.
    #[test]
    fn a_servers_lifetime_applies_only_to_hints_that_are_believed() {
        let server = "fx".parse().unwrap();
        let item = serde_json::json!({"name": "get", "annotations": {"readOnlyHint": true}});
        let tool = Tool::parse_built_in(&server, item).unwrap();
        let policy = Policy {
            cache: Some(Duration::from_secs(60)),
            ..Policy::default()
        };
        assert_eq!(lifetime(&tool, false, &policy), None);
        assert_eq!(lifetime(&tool, true, &policy), policy.cache);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_time() {
        let cache = Cache::default();
        let answer = Answer::from_text("noon");
        cache.put(key("{}"), &answer, Duration::from_secs(10));
        assert_eq!(cache.get(&key("{}")), Some(answer));
        assert_eq!(cache.get(&key(r#"{"a":1}"#)), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cache.get(&key("{}")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_answers_make_room_and_a_huge_one_is_not_kept() {
        let cache = Cache::default();
        let lifetime = Duration::from_secs(60);
        for n in 0..=MAX_ENTRIES {
            cache.put(key(&n.to_string()), &Answer::from_text("x"), lifetime);
        }
        assert_eq!(cache.get(&key("0")), None);
        assert!(cache.get(&key("1")).is_some());
        assert_eq!(cache.0.lock().answers.len(), MAX_ENTRIES);
        let big = Answer::from_text("x".repeat(MAX_BYTES / 9));
        for n in 0..20 {
            cache.put(key(&format!("big {n}")), &big, lifetime);
        }
        assert!(cache.0.lock().bytes <= MAX_BYTES);
        cache.put(key("huge"), &Answer::from_text("x".repeat(MAX_BYTES / 2)), lifetime);
        assert_eq!(cache.get(&key("huge")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_answer_takes_the_place_of_the_old_one() {
        let cache = Cache::default();
        for text in ["old", "new"] {
            cache.put(key("{}"), &Answer::from_text(text), Duration::from_secs(60));
        }
        assert_eq!(cache.get(&key("{}")), Some(Answer::from_text("new")));
        assert_eq!(cache.0.lock().order.len(), 1);
    }
}
