//! The stage on which one cell runs: a board with a faulty server `fx` and a healthy one `ok`, both on the wire of the cell.
//!
//! The faulty server appends each executed call to its ledger, a file. Every call has a nonce, so the ledger shows how often it ran.

mod neighbour;
mod open;

use std::{any::Any, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use pegboard::{Outcome, Pegboard, Reply, ToolCall, config::Limits, status::ServerStatus};
use pegboard_testkit::{
    Control, ErrorClass, FakeServer, Fault, History, MemoryHandle, NetHandle, Tool, When, read_log,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{runtime::Handle, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use self::neighbour::Neighbour;
use crate::{
    matrix::case::{Cell, Era},
    support::*,
};

/// The limit on the size of a message.
pub(crate) const MESSAGE: usize = 256 << 10;

/// The test's handle of the faulty server.
enum Faulty {
    Process,
    Memory(MemoryHandle),
    Net(Arc<NetHandle>),
}

/// The board of one cell, its servers, and the history of its calls.
pub(crate) struct Stage {
    pub(crate) cell: Cell,
    pub(crate) folder: TempDir,
    /// The runtime of the servers, so that all tasks of the cell's own runtime belong to the library.
    servers: Handle,
    /// The duration of the slowest call with the fault.
    pub(crate) took: Duration,
    /// The addresses of the board's servers.
    pub(crate) addresses: Vec<SocketAddr>,
    limits: Limits,
    history: History,
    calls: u32,
    board: Option<Pegboard>,
    faulty: Option<Faulty>,
    neighbour: Option<(CancellationToken, JoinHandle<Neighbour>)>,
    /// Handles and guards that keep the servers running.
    kept: Vec<Box<dyn Any + Send>>,
}

impl Stage {
    pub(crate) fn new(cell: Cell, servers: Handle) -> Self {
        let mut limits = Limits::default();
        limits.connect_timeout = Duration::from_millis(2_500);
        limits.list_timeout = Duration::from_millis(2_000);
        limits.call_timeout = Duration::from_millis(1_000);
        limits.call_total_timeout = Duration::from_millis(1_800);
        limits.write_timeout = Duration::from_millis(1_000);
        limits.era_silence = Duration::from_millis(600);
        limits.stop_timeout = Duration::from_millis(500);
        limits.max_message = MESSAGE;
        Self {
            cell,
            folder: tempfile::tempdir().unwrap(),
            servers,
            took: Duration::ZERO,
            addresses: Vec::new(),
            limits,
            history: History::new(),
            calls: 0,
            board: None,
            faulty: None,
            neighbour: None,
            kept: Vec::new(),
        }
    }

    pub(crate) fn limit(&mut self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.limits);
    }

    /// Raises the timeouts of calls to ten seconds.
    pub(crate) fn allow_long_calls(&mut self) {
        self.limit(|limits| (limits.call_timeout, limits.call_total_timeout) = (secs(10), secs(10)));
    }

    pub(crate) fn servers(&self) -> &Handle {
        &self.servers
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn board(&self) -> &Pegboard {
        self.board.as_ref().unwrap()
    }

    /// A healthy server of the cell's era, with a tool that must not run twice.
    pub(crate) fn fake(&self) -> FakeServer {
        let era = match self.cell.era {
            Era::Legacy => pegboard_testkit::Era::Legacy,
            Era::Modern => pegboard_testkit::Era::Modern,
        };
        self.fake_of(era)
    }

    pub(crate) fn fake_of(&self, era: pegboard_testkit::Era) -> FakeServer {
        FakeServer::new("fx")
            .era(era)
            .ledger(self.path("ledger"))
            .log(self.path("log"))
            .tool(Tool::new("pay").destructive().echoes_nonce())
    }

    /// A server that has this fault on the first matching request, and none after a restart.
    pub(crate) fn faulty(&self, when: When, fault: Fault) -> FakeServer {
        self.fake().fault_on(when.first(1), fault).then_after(1, self.fake())
    }

    /// Waits until the faulty server has been listed.
    pub(crate) async fn until_listed(&self) {
        let listing = self.board().toolset().list(PATIENCE).await;
        assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    }

    /// Calls `pay` and describes the outcome.
    pub(crate) async fn call(&mut self) -> String {
        let reply = self.reply().await;
        self.describe(&reply)
    }

    /// Calls `pay`. The duration counts towards the bound of the cell.
    pub(crate) async fn reply(&mut self) -> Reply {
        let began = Instant::now();
        let (nonce, call) = self.prepare();
        let reply = self.board().toolset().call(call).await;
        self.took = self.took.max(began.elapsed());
        record(&self.history, &nonce, &reply);
        reply
    }

    /// Calls `pay` after the fault and describes the outcome. The duration does not count.
    pub(crate) async fn next_call(&mut self) -> String {
        // A request that is written while its connection is being closed may rightly be lost.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let took = self.took;
        let outcome = self.call().await;
        self.took = took;
        format!("then {outcome}")
    }

    /// Makes `count` concurrent calls of `pay` and returns their replies.
    pub(crate) async fn calls(&mut self, count: usize, arguments: serde_json::Value) -> Vec<Reply> {
        let began = Instant::now();
        let tools = self.board().toolset();
        let calls: Vec<_> = (0..count)
            .map(|_| {
                let (nonce, _) = self.prepare();
                let mut arguments = arguments.clone();
                arguments["nonce"] = nonce.as_str().into();
                (nonce, tools.clone(), arguments)
            })
            .collect();
        let history = self.history.clone();
        let replies = futures_util::future::join_all(calls.into_iter().map(|(nonce, tools, arguments)| {
            let history = history.clone();
            async move {
                let reply = call(&tools, "fx.pay", arguments).await;
                record(&history, &nonce, &reply);
                reply
            }
        }))
        .await;
        self.took = self.took.max(began.elapsed());
        replies
    }

    fn prepare(&mut self) -> (String, ToolCall) {
        self.calls += 1;
        let nonce = format!("n{}", self.calls);
        self.history.invoke(nonce.as_str());
        let arguments = pegboard::Arguments::try_from(json!({ "nonce": nonce })).unwrap();
        let call = ToolCall::new("fx.pay").id(nonce.as_str()).arguments(arguments);
        (nonce, call)
    }

    /// Describes the outcome of a call, whether it may have run, and how often it ran.
    pub(crate) fn describe(&self, reply: &Reply) -> String {
        let ran = self.executed(&reply.id);
        let kind = reply.outcome.kind().as_str();
        let may = if reply.outcome.may_have_executed() {
            ", may have run"
        } else {
            ""
        };
        match &reply.outcome {
            Outcome::Done(_) => format!("ok, ran {ran}"),
            Outcome::ToolFailed(_) => format!("failed{may}, ran {ran}"),
            Outcome::Refused(_) => format!("refused {kind}{may}, ran {ran}"),
            Outcome::Lost(_) => format!("lost {kind}{may}, ran {ran}"),
        }
    }

    /// How often the server executed the call with this nonce.
    pub(crate) fn executed(&self, nonce: &str) -> usize {
        let ledger = std::fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let line = format!("executed {nonce}");
        ledger.lines().filter(|known| *known == line).count()
    }

    /// Outcomes that contradict the ledger of the server.
    pub(crate) fn violations(&self) -> Option<String> {
        let violations = self.history.check(self.path("ledger")).err()?;
        let told: Vec<_> = violations.iter().map(ToString::to_string).collect();
        Some(told.join("; "))
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let servers = self.board().status().servers;
        servers.into_iter().find(|server| server.name == name("fx")).unwrap()
    }

    /// The number of messages with this method that the faulty server received.
    pub(crate) fn count(&self, method: &str) -> usize {
        match self.control() {
            Some(control) => control.count(method),
            None => read_log(self.path("log")).unwrap().count(method),
        }
    }

    pub(crate) fn control(&self) -> Option<&Control> {
        match self.faulty.as_ref()? {
            Faulty::Process => None,
            Faulty::Memory(handle) => Some(handle),
            Faulty::Net(net) => Some(net),
        }
    }

    /// Kills the faulty server; one on the network is restarted at once.
    pub(crate) async fn kill(&self) {
        match self.faulty.as_ref().unwrap() {
            Faulty::Process => self.status().pid.into_iter().for_each(pegboard_testkit::kill),
            Faulty::Memory(handle) => handle.kill(),
            Faulty::Net(net) => {
                let net = net.clone();
                self.servers.spawn(async move { net.stop().await }).await.unwrap();
            }
        }
    }

    /// Waits at most for `limit` until a condition holds. Returns whether it does.
    pub(crate) async fn until(&self, limit: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    /// Calls the healthy server once more and returns the results of its calls. `None` without a board.
    pub(crate) async fn neighbour(&mut self) -> Option<Neighbour> {
        let (ended, asking) = self.neighbour.take()?;
        ended.cancel();
        Some(asking.await.unwrap())
    }

    /// Closes the board, if it is open. Returns `false` if that takes too long.
    pub(crate) async fn close(&mut self) -> bool {
        let Some(board) = self.board.take() else { return true };
        tokio::time::timeout(secs(10), board.shutdown()).await.is_ok()
    }

    /// Takes the board out of the stage, which then neither calls nor closes it.
    pub(crate) async fn take_board(&mut self) -> Pegboard {
        self.neighbour().await;
        self.board.take().unwrap()
    }
}

fn record(history: &History, nonce: &str, reply: &Reply) {
    match &reply.outcome {
        Outcome::Done(answer) => history.ok(nonce, unfenced(&answer.text())),
        Outcome::ToolFailed(_) if reply.outcome.may_have_executed() => history.error(nonce, ErrorClass::Other),
        Outcome::ToolFailed(_) => history.error(nonce, ErrorClass::Rejected),
        outcome if outcome.may_have_executed() => history.unknown(nonce),
        _ => history.error(nonce, ErrorClass::NotSent),
    }
}
