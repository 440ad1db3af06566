//! [`RecentCalls`]: a bounded ring of the calls that have ended.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{sync::watch, time::Instant};

use pegboard_base::{caller::Principal, name::ServerName, sync::Mutex, timestamp::Timestamp};
use pegboard_mask::Masker;
use pegboard_tools::outcome::Reply;
use pegboard_tools::tool_call::{CallTimes, ToolCall};

use super::recent_call::{Begun, RecentCall, keeps_arguments};

/// The most calls that are kept: more than a person looks through.
const MAX_CALLS: usize = 2_000;
/// The most bytes that they take together.
const MAX_BYTES: usize = 16 << 20;

/// The last calls of a board. Clones share them. Before a program asks for them, a call costs one load of a flag.
#[derive(Debug, Clone, Default)]
pub struct RecentCalls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    is_on: AtomicBool,
    ring: Mutex<Ring>,
    /// The number of the newest call.
    newest: watch::Sender<u64>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            ring: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }
}

#[derive(Debug, Default)]
struct Ring {
    calls: VecDeque<Arc<RecentCall>>,
    bytes: usize,
    /// How many were recorded so far.
    recorded: u64,
}

impl RecentCalls {
    /// Begins or ends the recording. What was recorded is forgotten at the end.
    pub fn record(&self, is_on: bool) {
        let mut ring = self.0.ring.lock();
        self.0.is_on.store(is_on, Ordering::Relaxed);
        if !is_on {
            ring.calls = VecDeque::new();
            ring.bytes = 0;
        }
    }

    /// Whether calls are recorded now.
    pub fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::Relaxed)
    }

    /// The recorded calls, the newest first.
    pub fn all(&self) -> Vec<Arc<RecentCall>> {
        self.0.ring.lock().calls.iter().rev().cloned().collect()
    }

    /// The call with this number, if it is still there.
    pub fn find(&self, number: u64) -> Option<Arc<RecentCall>> {
        let ring = self.0.ring.lock();
        let first = ring.calls.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        ring.calls.get(at).cloned()
    }

    /// Notices calls that end from now on: the number of the newest one.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    fn push(&self, mut call: RecentCall) {
        let mut ring = self.0.ring.lock();
        // It may have ended since the call began.
        if !self.is_on() {
            return;
        }
        ring.recorded += 1;
        call.number = ring.recorded;
        ring.bytes += call.size();
        ring.calls.push_back(Arc::new(call));
        while ring.calls.len() > MAX_CALLS || ring.bytes > MAX_BYTES {
            match ring.calls.pop_front() {
                Some(gone) => ring.bytes -= gone.size(),
                None => break,
            }
        }
        let newest = ring.recorded;
        drop(ring);
        self.0.newest.send_replace(newest);
    }
}

/// A call that is being recorded. Dropping it records a cancellation.
#[derive(Debug)]
pub(crate) struct Recording {
    calls: RecentCalls,
    begun: Option<Begun>,
    id: String,
    name: String,
    times: Arc<CallTimes>,
    started: Instant,
}

impl Recording {
    /// Begins to record a call of a tool of this server, with its masker. The arguments of a tool that is not known are not kept.
    pub(crate) fn begin(
        calls: &RecentCalls,
        call: &mut ToolCall,
        target: Option<(ServerName, Arc<Masker>)>,
        view: Option<&str>,
        principal: Option<&Principal>,
    ) -> Self {
        let given = call.text.as_deref().unwrap_or_else(|| call.arguments.as_str());
        let argument_bytes = given.len();
        let mask = |(_, masker): &(ServerName, Arc<Masker>)| masker.text(given).text.into_owned();
        let arguments = target.as_ref().filter(|_| keeps_arguments(argument_bytes)).map(mask);
        let begun = Begun {
            at: Timestamp::now(),
            server: target.map(|(server, _)| server),
            view: view.map(str::to_owned),
            principal: principal.cloned(),
            arguments: arguments.unwrap_or_default(),
            argument_bytes,
        };
        let times = call.times.get_or_insert_default().clone();
        Self {
            calls: calls.clone(),
            begun: Some(begun),
            id: call.id.clone(),
            name: call.name.clone(),
            times,
            started: Instant::now(),
        }
    }

    /// Records the end of the call.
    pub(crate) fn finish(mut self, reply: &Reply) {
        if let Some(begun) = self.begun.take() {
            self.calls.push(RecentCall::from_reply(reply, begun, &self.times));
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            let (id, took) = (std::mem::take(&mut self.id), self.started.elapsed());
            let call = RecentCall::cancelled(id, &self.name, begun, &self.times, took);
            self.calls.push(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pegboard_mask::Masking;
    use pegboard_tools::outcome::{Answer, Outcome};

    use super::*;

    fn target() -> Option<(ServerName, Arc<Masker>)> {
        let masker = Masker::new(&Masking::default(), []).unwrap();
        Some((ServerName::parse("fx").unwrap(), Arc::new(masker)))
    }

    fn reply(text: &str) -> Reply {
        Reply::unanswered("1", "fx.echo", Outcome::Done(Answer::from_text(text)), Duration::ZERO)
    }

    fn end(calls: &RecentCalls, arguments: &str, text: &str) {
        let mut call = ToolCall::new("fx.echo").text(arguments);
        Recording::begin(calls, &mut call, target(), Some("agent"), None).finish(&reply(text));
    }

    #[tokio::test]
    async fn nothing_is_kept_before_the_recording_begins_or_after_it_ends() {
        let calls = RecentCalls::default();
        end(&calls, "{}", "early");
        assert!(calls.all().is_empty());
        calls.record(true);
        end(&calls, "{}", "one");
        let newest = calls.newest();
        end(&calls, "{}", "two");
        assert!(newest.has_changed().unwrap());
        let texts: Vec<String> = calls.all().iter().map(|call| call.result.clone()).collect();
        assert_eq!(texts, ["two", "one"]);
        assert_eq!(calls.find(1).unwrap().result, "one");
        calls.record(false);
        end(&calls, "{}", "late");
        assert!(calls.all().is_empty() && calls.find(1).is_none());
    }

    #[tokio::test]
    async fn arguments_are_masked_and_what_is_too_long_is_not_kept() {
        let calls = RecentCalls::default();
        calls.record(true);
        end(&calls, r#"{"token": "ghp_0123456789abcdefghijABCDEFGHIJ456789"}"#, "x");
        let call = calls.find(1).unwrap();
        assert!(
            !call.arguments.contains("ghp_0123456789") && call.arguments.contains("token"),
            "{call:?}"
        );
        end(&calls, &"x".repeat(100_000), &"é".repeat(100_000));
        let call = calls.find(2).unwrap();
        assert_eq!((call.arguments.as_str(), call.argument_bytes), ("", 100_000));
        assert!(call.is_cut && call.result.len() <= 8 * 1024);
        let mut unknown = ToolCall::new("nowhere").text(r#"{"a": 1}"#);
        drop(Recording::begin(&calls, &mut unknown, None, None, None));
        let call = calls.find(3).unwrap();
        assert_eq!((call.arguments.as_str(), call.kind.as_str()), ("", "cancelled"));
    }

    #[tokio::test]
    async fn the_ring_is_bounded_by_count_and_by_bytes() {
        let calls = RecentCalls::default();
        calls.record(true);
        for _ in 0..MAX_CALLS + 5 {
            end(&calls, "{}", "small");
        }
        assert_eq!(calls.all().len(), MAX_CALLS);
        assert!(calls.find(5).is_none() && calls.find(6).is_some());
        for _ in 0..MAX_CALLS {
            end(&calls, &"x".repeat(8_000), &"y".repeat(8_000));
        }
        assert!(calls.all().len() < MAX_CALLS);
        assert!(calls.0.ring.lock().bytes <= MAX_BYTES);
    }
}
