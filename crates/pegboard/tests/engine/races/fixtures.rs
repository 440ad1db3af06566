//! Boards, configs and checks that the races share.

use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use pegboard::{
    approval::{Decision, Question},
    board::Applied,
    config::{Approval, Command, Scope, Start, Transport},
    *,
};
use pegboard_testkit::{FakeServer, Tool as FakeTool, is_alive, read_log};
use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::Notify, task::JoinHandle};

use crate::support::{PATIENCE, board, call, name, process, secs, spawned};

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits until a condition holds; panics after 60 s.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(secs(60), waiting)
        .await
        .unwrap_or_else(|_| panic!("too late: {what}"));
}

/// A temporary folder, and the paths of files in it.
pub(crate) fn files<const N: usize>(names: [&str; N]) -> (TempDir, [PathBuf; N]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = names.map(|name| folder.path().join(name));
    (folder, paths)
}

/// A healthy server that logs to `log`, with two tools that answer `text`.
pub(crate) fn good(log: &Path, text: &str) -> FakeServer {
    FakeServer::new("fx")
        .log(log)
        .tool(FakeTool::new("hello").answers_text(text))
        .tool(FakeTool::new("other").answers_text(text))
}

/// The same with a tool `slow` that answers when the file `gate` exists.
pub(crate) fn gated(log: &Path, gate: &Path, text: &str) -> FakeServer {
    good(log, text).tool(
        FakeTool::new("slow")
            .answers_text("done")
            .waits_at(gate.to_str().unwrap()),
    )
}

/// A stdio server that each view starts for itself, at its first use.
pub(crate) fn per_view(fake: &FakeServer) -> ServerConfig {
    let mut config = process(fake);
    config.policy.scope = Scope::Session;
    config.start = Start::Lazy;
    config
}

/// A stdio server whose program does not exist.
pub(crate) fn missing_program(file: &str) -> ServerConfig {
    ServerConfig::new(Transport::Stdio(Command::new(format!("/nonexistent/{file}"))))
}

/// A config with one server, `x`, that is invalid.
pub(crate) fn misconfigured() -> Config {
    let text = "[servers.x]\ncommand = 'a'\ncall_timeout = 'soon'\n";
    Config::from_text(text, Format::Toml, &Env::new(|_| None)).config
}

/// A config with one server, `fx`.
pub(crate) fn one(config: ServerConfig) -> Config {
    let mut all = Config::default();
    all.servers.insert(name("fx"), config);
    all
}

/// A board with one server, `fx`, whose start is over.
pub(crate) async fn settled(config: ServerConfig) -> Pegboard {
    let board = board(config);
    board.settle(PATIENCE).await;
    board
}

pub(crate) async fn hello(view: &Toolset) -> Reply {
    call(view, "fx.hello", json!({})).await
}

/// The processes that logged their start to `log` and are alive.
pub(crate) fn alive(log: &Path) -> Vec<u32> {
    let mut pids = spawned(log);
    pids.retain(|pid| is_alive(*pid));
    pids
}

/// The number of calls that reached the server with this log.
pub(crate) fn calls(log: &Path) -> usize {
    read_log(log).map(|log| log.count("tools/call")).unwrap_or(0)
}

pub(crate) fn states(board: &Pegboard) -> Vec<State> {
    board.status().servers.iter().map(|row| row.state).collect()
}

/// The pending state changes: from, to and the view.
pub(crate) fn state_changes(events: &mut Events) -> Vec<(State, State, Option<String>)> {
    let mut seen = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        if let Event::ServerChanged { from, state, view, .. } = event {
            seen.push((from, state, view));
        }
    }
    seen
}

/// The pending events of calls: how often each call was created and completed, by id.
pub(crate) fn call_events(events: &mut Events) -> BTreeMap<String, (u32, u32)> {
    let mut seen = BTreeMap::<String, (u32, u32)>::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        match event {
            Event::CallCreated { id, .. } => seen.entry(id).or_default().0 += 1,
            Event::CallCompleted { id, .. } => seen.entry(id).or_default().1 += 1,
            _ => {}
        }
    }
    seen
}

/// Counts a reply by its kind, and by its text if it is an error.
pub(crate) fn count(kinds: &mut BTreeMap<String, usize>, reply: &Reply) {
    let kind = reply.outcome.kind().as_str().to_owned();
    let kind = if kind == "ok" {
        kind
    } else {
        format!("{kind}: {}", reply.text())
    };
    *kinds.entry(kind).or_default() += 1;
}

/// Opens views on four threads until `stop` is set, at most `most` on each.
pub(crate) fn open_views(board: &Pegboard, stop: &Arc<AtomicBool>, most: usize) -> Vec<JoinHandle<Vec<Toolset>>> {
    let open = |_| {
        let (board, stop) = (board.clone(), stop.clone());
        tokio::task::spawn_blocking(move || {
            let mut views = Vec::new();
            while !stop.load(Ordering::SeqCst) && views.len() < most {
                views.push(board.toolset());
            }
            views
        })
    };
    (0..4).map(open).collect()
}

/// Applies a config with this replacement of `fx` in the background, and waits until the new process runs.
pub(crate) async fn replacing(board: &Pegboard, replacement: &FakeServer, log: &Path) -> JoinHandle<Applied> {
    let (board, config) = (board.clone(), one(process(replacement)));
    let applying = tokio::spawn(async move { board.apply(config).await });
    until("the new one is started", || !alive(log).is_empty()).await;
    applying
}

/// An approver that waits for a signal before it approves.
#[derive(Clone, Default)]
struct HeldApprover {
    questions: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl Approver for HeldApprover {
    fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.go.notified().await;
            Decision::Once
        })
    }
}

pub(crate) fn needs_approval(mut config: ServerConfig) -> ServerConfig {
    config.policy.approval = Approval::Always;
    config
}

/// A board with one server, `fx`, and a call of it that waits for approval.
pub(crate) struct HeldCall {
    pub(crate) board: Pegboard,
    pub(crate) view: Toolset,
    approver: HeldApprover,
    calling: JoinHandle<Reply>,
}

impl HeldCall {
    pub(crate) async fn start(config: ServerConfig) -> Self {
        let board = settled(needs_approval(config)).await;
        let approver = HeldApprover::default();
        let view = board.toolset_with(View::new().approver(approver.clone()));
        let caller = view.clone();
        let calling = tokio::spawn(async move { caller.call(ToolCall::new("fx.hello")).await });
        let questions = approver.questions.clone();
        until("the approver is asked", || questions.load(Ordering::SeqCst) > 0).await;
        Self {
            board,
            view,
            approver,
            calling,
        }
    }

    /// Approves the call.
    pub(crate) fn release(&self) {
        self.approver.go.notify_one();
    }

    /// Waits for the reply.
    pub(crate) async fn reply(&mut self) -> Reply {
        (&mut self.calling).await.unwrap()
    }

    /// Approves the call and waits for the reply.
    pub(crate) async fn approve(&mut self) -> Reply {
        self.release();
        self.reply().await
    }
}
