//! Recorded calls: their outcomes are compared with the server's ledger, the file in which it records every execution.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard::{Outcome, Pegboard, ServerConfig, Toolset, config::RetryClass};
use pegboard_testkit::{ErrorClass, FakeServer, History, Tool, Violation};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::support::*;

/// How much longer than its own timeout a call may take on a busy machine.
const MARGIN: Duration = Duration::from_secs(10);

/// The recorded calls of one run.
#[derive(Clone)]
pub(crate) struct RecordedCalls {
    folder: Arc<TempDir>,
    history: History,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    next: AtomicU64,
    ok: AtomicU64,
    not_executed: AtomicU64,
    may_have_executed: AtomicU64,
    retried: AtomicU64,
}

impl RecordedCalls {
    pub(crate) fn new() -> Self {
        Self {
            folder: Arc::new(tempfile::tempdir().unwrap()),
            history: History::new(),
            counts: Arc::default(),
        }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// A server with a tool that must not run twice, `pay`, and one that may, `read`.
    pub(crate) fn fake(&self) -> FakeServer {
        FakeServer::new("fx")
            .ledger(self.path("ledger"))
            .tool(Tool::new("pay").destructive().echoes_nonce())
            .tool(Tool::new("read").read_only().echoes_nonce())
    }

    /// The number of calls that have succeeded so far.
    pub(crate) fn ok(&self) -> u64 {
        self.counts.ok.load(Ordering::Relaxed)
    }

    /// Makes a call and records its outcome.
    pub(crate) async fn call(&self, tools: &Toolset, reads: bool, work: Duration) -> Outcome {
        let nonce = format!("n{}", self.counts.next.fetch_add(1, Ordering::Relaxed));
        let tool = if reads {
            self.history.invoke_repeatable(nonce.as_str());
            "fx.read"
        } else {
            self.history.invoke(nonce.as_str());
            "fx.pay"
        };
        let began = Instant::now();
        let arguments = json!({"nonce": nonce, "delay_ms": u64::try_from(work.as_millis()).unwrap()});
        let reply = tokio::time::timeout(LIMIT + MARGIN, call(tools, tool, arguments))
            .await
            .unwrap_or_else(|_| panic!("call {nonce} has not ended after {:?}", began.elapsed()));
        let counts = &self.counts;
        match &reply.outcome {
            Outcome::Done(answer) => {
                self.history.ok(nonce.as_str(), answer.text());
                counts.ok.fetch_add(1, Ordering::Relaxed);
                counts
                    .retried
                    .fetch_add(u64::from(reply.attempts > 1), Ordering::Relaxed);
            }
            outcome if outcome.may_have_executed() => {
                self.history.unknown(nonce.as_str());
                counts.may_have_executed.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                self.history.error(nonce.as_str(), ErrorClass::NotSent);
                counts.not_executed.fetch_add(1, Ordering::Relaxed);
            }
        }
        reply.outcome
    }

    /// Compares the recorded outcomes with the ledger.
    pub(crate) fn figures(&self) -> Figures {
        let checked = self.history.check(self.path("ledger"));
        let violations = checked.as_ref().err().cloned().unwrap_or_default();
        let count = |is_such: fn(&Violation) -> bool| violations.iter().filter(|v| is_such(v)).count() as u64;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            calls: load(&self.counts.next),
            ok: self.ok(),
            not_executed: load(&self.counts.not_executed),
            may_have_executed: load(&self.counts.may_have_executed),
            retried: load(&self.counts.retried),
            lost: count(|v| matches!(v, Violation::Lost(_))),
            crossed: count(|v| matches!(v, Violation::Crossed { .. })),
            doubled: count(|v| {
                matches!(
                    v,
                    Violation::Executed { times: 2.., .. } | Violation::CompletedTwice { .. }
                )
            }),
            told_wrongly: count(|v| matches!(v, Violation::Executed { times: 0 | 1, .. })),
            violations: violations.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The total timeout of one call.
pub(crate) const LIMIT: Duration = Duration::from_millis(1_000);

/// The counts of a run.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) calls: u64,
    pub(crate) ok: u64,
    pub(crate) not_executed: u64,
    pub(crate) may_have_executed: u64,
    /// Calls that succeeded after a retry.
    pub(crate) retried: u64,
    pub(crate) lost: u64,
    pub(crate) crossed: u64,
    pub(crate) doubled: u64,
    pub(crate) told_wrongly: u64,
    pub(crate) violations: Vec<String>,
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} calls: {} ok ({} of them made again), {} not executed, {} may have executed; {} lost, {} crossed, {} doubled, {} told wrongly",
            self.calls,
            self.ok,
            self.retried,
            self.not_executed,
            self.may_have_executed,
            self.lost,
            self.crossed,
            self.doubled,
            self.told_wrongly
        )
    }
}

/// A board with one server, `fx`, with short timeouts and immediate restarts. Calls of `read` may be retried.
pub(crate) fn opened(mut server: ServerConfig, change: impl FnOnce(&mut ServerConfig)) -> Pegboard {
    let limits = &mut server.limits;
    limits.connect_timeout = Duration::from_millis(1_000);
    limits.list_timeout = Duration::from_millis(1_000);
    limits.call_timeout = Duration::from_millis(700);
    limits.call_total_timeout = LIMIT;
    limits.write_timeout = Duration::from_millis(500);
    limits.era_silence = Duration::from_millis(400);
    limits.stop_timeout = Duration::from_millis(300);
    server.policy.tool_retry.insert("read".to_owned(), RetryClass::Safe);
    change(&mut server);
    restarting_board(server)
}

/// Waits at most for `limit` until a condition holds. Returns whether it does.
pub(crate) async fn comes_true(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    true
}
