//! How often a view may repeat the same call.

use std::{collections::HashMap, time::Duration};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::verdict::Denied;
use crate::audit::AuditRule;
use pegboard_base::sync::Mutex;
use pegboard_tools::{
    args::Arguments,
    outcome::{Failure, Kind},
};

/// How long repeated calls are counted.
const LOOP_WINDOW: Duration = Duration::from_secs(600);
/// The most different calls that are counted for one view. The one that is unused for longest makes room.
const MAX_REPEATED: usize = 1024;

/// The repeated calls of one view.
#[derive(Debug, Default)]
pub(crate) struct CallLimits {
    repeated: Mutex<HashMap<RepeatKey, Repeated>>,
}

/// What makes two calls the same: the server, the tool and the arguments, in any order of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RepeatKey([u8; 32]);

#[derive(Debug)]
struct Repeated {
    since: Instant,
    last: Instant,
    calls: usize,
    /// How the last one ended.
    kind: Option<Kind>,
}

impl RepeatKey {
    pub(super) fn new(server: u64, tool: &str, arguments: &Arguments) -> Self {
        // Parsing and serialising sorts the keys, so that their order makes no difference.
        let canonical = serde_json::from_str(arguments.as_str()).map(|value: Value| value.to_string());
        let mut hash = Sha256::new();
        hash.update(server.to_le_bytes());
        hash.update(tool);
        hash.update([0]);
        hash.update(canonical.as_deref().unwrap_or(arguments.as_str()));
        Self(hash.finalize().into())
    }
}

impl CallLimits {
    /// Counts a call, or refuses it if it was repeated too often.
    pub(super) fn repeat(
        &self,
        key: RepeatKey,
        limit: usize,
        now: Instant,
        name: impl Fn() -> String,
    ) -> Result<(), Denied> {
        let mut repeated = self.repeated.lock();
        if repeated.len() >= MAX_REPEATED && !repeated.contains_key(&key) {
            let oldest = repeated.iter().min_by_key(|(_, repeated)| repeated.last);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                repeated.remove(&oldest);
            }
        }
        let fresh = Repeated {
            since: now,
            last: now,
            calls: 0,
            kind: None,
        };
        let entry = repeated.entry(key).or_insert(fresh);
        if now.duration_since(entry.since) >= LOOP_WINDOW {
            (entry.since, entry.calls) = (now, 0);
        }
        entry.last = now;
        if entry.calls >= limit {
            let left = LOOP_WINDOW.saturating_sub(now.duration_since(entry.since));
            return Err(repeats_itself(&name(), entry.calls, entry.kind, left));
        }
        entry.calls += 1;
        Ok(())
    }

    /// Records how a counted call has ended. Another outcome than before starts the count again.
    pub(super) fn record_end(&self, key: RepeatKey, kind: Kind) {
        let mut repeated = self.repeated.lock();
        if let Some(entry) = repeated.get_mut(&key) {
            if entry.kind.is_some_and(|before| before != kind) {
                (entry.since, entry.calls) = (entry.last, 1);
            }
            entry.kind = Some(kind);
        }
    }
}

fn repeats_itself(name: &str, calls: usize, kind: Option<Kind>, left: Duration) -> Denied {
    let outcome = kind.map_or(String::new(), |kind| {
        format!(", each time with the outcome `{}`", kind.as_str())
    });
    let message = format!(
        "you have called `{name}` {calls} times with the same arguments{outcome}. You are repeating yourself: use the result that you have, \
         change the arguments, or ask the user. The same call is possible again in {} s.",
        left.as_secs().max(1)
    );
    let hint = format!(
        "`loop_limit` sets how often a call may be repeated; `tools.NAME.loop_limit = 0` allows polling with `{name}`"
    );
    let failure = Failure::new(Kind::LimitExceeded, message).hint(hint);
    Denied::by(AuditRule::Loop, failure.retry_after(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(arguments: &str) -> RepeatKey {
        RepeatKey::new(1, "t", &Arguments::parse(arguments).unwrap())
    }

    #[test]
    fn the_order_of_arguments_makes_no_difference() {
        assert_eq!(key(r#"{"a": 1, "b": 2}"#), key(r#"{"b":2,"a":1}"#));
        assert_ne!(key(r#"{"a": 1}"#), key(r#"{"a": 2}"#));
        assert_ne!(key("{}"), RepeatKey::new(2, "t", &Arguments::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_counters_of_many_different_calls_are_bounded() {
        let limits = CallLimits::default();
        for n in 0..3 * MAX_REPEATED {
            let key = key(&format!(r#"{{"n": {n}}}"#));
            limits.repeat(key, 1, Instant::now(), String::new).unwrap();
        }
        assert_eq!(limits.repeated.lock().len(), MAX_REPEATED);
    }
}
