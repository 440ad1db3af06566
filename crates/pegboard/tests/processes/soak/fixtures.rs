//! Fixtures of long runs: their length and random numbers, callers that record outcomes, and checks for leftover processes.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard::{Outcome, Pegboard, Reply, State};
use pegboard_testkit::{ErrorClass, FakeServer, History, Summary, Tool};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::Instant,
};

pub(crate) use crate::support::rng::{Rng, number};
use crate::support::*;

/// The number of concurrent callers.
const CALLERS: u64 = 8;

/// Serialises the tests: they count the resources of the whole process, and need all its processors.
pub(crate) async fn alone() -> SemaphorePermit<'static> {
    static ALONE: Semaphore = Semaphore::const_new(1);
    ALONE.acquire().await.expect("it is never closed")
}

/// The length of a run: from the environment, or `usual`.
pub(crate) fn length(usual: u64) -> u64 {
    number("PEGBOARD_SOAK").unwrap_or(usual)
}

/// The files of a run and the outcomes of its calls.
pub(crate) struct Run {
    folder: TempDir,
    history: History,
    slowest: Arc<AtomicU64>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            history: History::new(),
            slowest: Arc::default(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn ledger(&self) -> PathBuf {
        self.folder().join("ledger")
    }

    /// A server with a tool that must not run twice.
    pub(crate) fn fake(&self) -> FakeServer {
        FakeServer::new("fx")
            .ledger(self.ledger())
            .tool(Tool::new("pay").destructive().echoes_nonce())
    }

    /// Makes `total` calls from several concurrent callers and records their outcomes.
    pub(crate) async fn call(&self, board: &Pegboard, total: u64, rng: &mut Rng) {
        let next = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (board, next, mut rng) = (board.clone(), next.clone(), rng.split());
            let (history, slowest) = (self.history.clone(), self.slowest.clone());
            callers.spawn(async move {
                let tools = board.toolset();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= total {
                        break;
                    }
                    let nonce = format!("n{number}");
                    history.invoke(nonce.as_str());
                    let began = Instant::now();
                    let arguments = json!({"nonce": nonce, "delay_ms": rng.below(8)});
                    // A call that does not end in time has no completion, which the history checker reports.
                    if let Ok(reply) = tokio::time::timeout(PATIENCE, call(&tools, "fx.pay", arguments)).await {
                        record(&history, &nonce, &reply);
                        if matches!(reply.outcome, Outcome::Refused(_)) {
                            ready(&board).await;
                        }
                    }
                    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
                    slowest.fetch_max(took, Ordering::Relaxed);
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.expect("no caller panics");
        }
    }

    /// Makes concurrent calls and returns their replies.
    pub(crate) async fn together(&self, board: &Pegboard, nonces: impl Iterator<Item = String>) -> Vec<Reply> {
        let tools = board.toolset();
        let calls = nonces.map(|nonce| {
            let (history, tools) = (self.history.clone(), tools.clone());
            async move {
                history.invoke(nonce.as_str());
                let reply = call(&tools, "fx.pay", json!({"nonce": nonce})).await;
                record(&history, &nonce, &reply);
                reply
            }
        });
        futures_util::future::join_all(calls).await
    }

    /// Asserts that no call was lost, crossed or executed twice, and that none took too long.
    #[expect(clippy::print_stderr, reason = "the numbers are the result of a long run")]
    pub(crate) fn check(&self) -> Summary {
        let summary = self.history.check(self.ledger()).unwrap_or_else(|violations| {
            let told: Vec<_> = violations.iter().map(ToString::to_string).collect();
            panic!("{} violations:\n{}", told.len(), told.join("\n"));
        });
        let slowest = self.slowest.load(Ordering::Relaxed);
        eprintln!("{summary:?}, the slowest call took {slowest} ms");
        assert!(slowest < 20_000, "a call took {slowest} ms");
        summary
    }

    /// Asserts that no process of this run is left. Their command lines contain its folder.
    pub(crate) async fn assert_no_process_left(&self) {
        let began = Instant::now();
        loop {
            let left = processes_with(self.folder());
            if left.is_empty() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "processes are left: {left:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn record(history: &History, nonce: &str, reply: &Reply) {
    match &reply.outcome {
        Outcome::Done(answer) => history.ok(nonce, answer.text()),
        Outcome::Lost(_) => history.unknown(nonce),
        Outcome::Refused(_) => history.error(nonce, ErrorClass::NotSent),
        Outcome::ToolFailed(answer) => panic!("{nonce}: the tool never fails: {}", answer.text()),
    }
}

/// Reconnects a server that is down or in a crash loop.
pub(crate) async fn revive(board: &Pegboard) {
    let began = Instant::now();
    board.reconnect(&name("fx")).await;
    while matches!(board.status().servers[0].state, State::Down | State::CrashLooping) {
        assert!(
            began.elapsed() < PATIENCE,
            "it does not come back: {:?}",
            board.status()
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
