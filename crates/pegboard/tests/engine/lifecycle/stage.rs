//! A board with one server, `fx`, under one preset and scope: its processes, two views and a call in flight.

use std::{
    collections::BTreeMap,
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use pegboard::{
    Config, Env, Event, Events, Format, Pegboard, Reply, ServerConfig, State, ToolCall, Toolset, View,
    board::NotConnected,
    config::{Scope, Start},
    status::ServerStatus,
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool, is_alive};
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

use crate::support::*;

const PRESETS: [&str; 6] = ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"];
const SCOPES: [&str; 3] = ["shared", "session", "pool(2)"];
/// The number of boards that run at once.
const BOARDS: usize = 4;

/// Runs a test for every preset and scope.
pub(crate) async fn for_each_case<F>(test: fn(Stage) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (turns, mut cases) = (Arc::new(Semaphore::new(BOARDS)), JoinSet::new());
    for preset in PRESETS {
        for scope in SCOPES {
            let turns = turns.clone();
            cases.spawn(async move {
                let _turn = turns.acquire().await.unwrap();
                let running = tokio::spawn(async move { test(Stage::open(preset, scope, "").await).await });
                running.await.map_err(|failed| format!("{preset}, {scope}: {failed}"))
            });
        }
    }
    let failed: Vec<String> = cases.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

pub(crate) struct Stage {
    pub(crate) board: Pegboard,
    /// The view that makes the call in flight.
    pub(crate) agent: Toolset,
    /// A second view.
    pub(crate) other: Toolset,
    pub(crate) settings: ServerConfig,
    /// Events since both views have used the server.
    events: Mutex<Events>,
    folder: tempfile::TempDir,
}

impl Stage {
    /// Opens the board. Both views have used the server when this returns.
    pub(crate) async fn open(preset: &str, scope: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(
            preset,
            scope,
            more,
            &fake(&folder.path().join("log"), &folder.path().join("gate")),
        );
        let board = boards([("fx", settings.clone())]);
        let agent = board.toolset_with(View::new().name("agent"));
        let other = board.toolset_with(View::new().name("other"));
        let mut stage = Self {
            events: Mutex::new(board.events()),
            board,
            agent,
            other,
            settings,
            folder,
        };
        if stage.settings.start == Start::Explicit {
            stage.board.connect(name("fx"), stage.settings.clone()).await.unwrap();
        }
        stage.assert_serves().await;
        stage.events = Mutex::new(stage.board.events());
        stage
    }

    pub(crate) fn has_own_servers(&self) -> bool {
        self.settings.policy.scope == Scope::Session
    }

    /// Whether the server is one process, which has ended before its replacement is started.
    pub(crate) fn runs_alone(&self) -> bool {
        self.settings.policy.scope == Scope::Shared
    }

    /// Connects other settings, which waits for the calls in flight of a server that runs alone.
    pub(crate) async fn connecting(&self, settings: ServerConfig) -> JoinHandle<Result<(), NotConnected>> {
        let board = self.board.clone();
        let connecting = tokio::spawn(async move { board.connect(name("fx"), settings).await });
        self.replacement_waits().await;
        connecting
    }

    /// Waits until the replacement of a server waits for the end of the old one.
    pub(crate) async fn replacement_waits(&self) {
        until("the new one waits", || self.states() == [State::Connecting]).await;
    }

    /// The number of server instances of the two views.
    pub(crate) fn instances(&self) -> usize {
        if self.has_own_servers() { 2 } else { 1 }
    }

    /// A config with one server, `fx`.
    pub(crate) fn config(&self, change: impl FnOnce(&mut ServerConfig)) -> Config {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let mut config = Config::default();
        config.servers.insert(name("fx"), settings);
        config
    }

    /// The settings of the same server with another command.
    pub(crate) fn moved(&self) -> ServerConfig {
        let fake = fake(&self.log(), &self.folder.path().join("gate")).instructions("moved");
        reached_by(process(&fake).transport, &self.settings)
    }

    /// The settings of a server that cannot be started.
    pub(crate) fn broken(&self) -> ServerConfig {
        let program = pegboard::config::Command::new("/nonexistent/server");
        reached_by(pegboard::config::Transport::Stdio(program), &self.settings)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The live processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut pids = spawned(&self.log());
        pids.retain(|pid| is_alive(*pid));
        pids
    }

    /// The number of listings that the server received.
    pub(crate) fn listings(&self) -> usize {
        pegboard_testkit::read_log(self.log()).unwrap().count("tools/list")
    }

    /// Waits until these processes are gone.
    pub(crate) async fn gone(&self, pids: &[u32]) {
        for pid in pids {
            gone(*pid, secs(10)).await;
        }
    }

    /// Starts a call that the server has received and does not answer before [`Stage::finish_call`].
    pub(crate) async fn call_in_flight(&self) -> JoinHandle<Reply> {
        let calls = || pegboard_testkit::read_log(self.log()).unwrap().count("tools/call");
        let (before, agent) = (calls(), self.agent.clone());
        let call = tokio::spawn(async move { agent.call(ToolCall::new("fx.slow")).await });
        until("the call arrives", || calls() > before).await;
        call
    }

    /// Lets the server answer the call in flight, and asserts its answer.
    pub(crate) async fn finish_call(&self, call: JoinHandle<Reply>) {
        std::fs::write(self.folder.path().join("gate"), "").unwrap();
        assert_eq!(said(&call.await.unwrap()), "done");
    }

    pub(crate) fn views(&self) -> [&Toolset; 2] {
        [&self.agent, &self.other]
    }

    /// Asserts that both views list and call the server.
    pub(crate) async fn assert_serves(&self) {
        for view in self.views() {
            let reply = view.call(ToolCall::new("fx.hello")).await;
            assert_eq!(said(&reply), "hi");
            assert_eq!(listed(view).await, ["hello", "slow"]);
        }
    }

    /// Asserts that neither view lists the server, and that its calls end with `kind`.
    pub(crate) async fn assert_refuses(&self, kind: pegboard::Kind) {
        for view in self.views() {
            assert_eq!(listed(view).await, [""; 0]);
            let reply = view.call(ToolCall::new("fx.hello")).await;
            assert_outcome(&reply, kind, false);
        }
    }

    /// Asserts that every call has exactly one created and one completed event, and that servers reached these states in some view.
    pub(crate) fn assert_events(&self, states: &[State]) {
        let mut events = self.events.lock();
        let (mut calls, mut seen) = (BTreeMap::<String, (u32, u32)>::new(), Vec::new());
        while let Some(Some(event)) = events.next().now_or_never() {
            match event {
                Event::CallCreated { id, .. } => calls.entry(id).or_default().0 += 1,
                Event::CallCompleted { id, .. } => calls.entry(id).or_default().1 += 1,
                Event::ServerChanged { state, view, .. } => {
                    assert!(view.is_none() || self.has_own_servers(), "{view:?}");
                    seen.push(state);
                }
                _ => {}
            }
        }
        assert!(
            !calls.is_empty() && calls.values().all(|told| *told == (1, 1)),
            "{calls:?}"
        );
        for state in states {
            assert!(seen.contains(state), "{state:?} is not among {seen:?}");
        }
    }

    /// Checks the events and shuts the board down.
    pub(crate) async fn end(&self, states: &[State]) {
        self.assert_events(states);
        self.board.shutdown().await;
    }

    pub(crate) fn rows(&self) -> Vec<ServerStatus> {
        self.board.status().servers
    }

    /// The states of the servers on the board.
    pub(crate) fn states(&self) -> Vec<State> {
        let rows = self.rows().into_iter().filter(|row| !row.draining);
        rows.map(|row| row.state).collect()
    }
}

/// The tools of `fx` that a view lists.
pub(crate) async fn listed(view: &Toolset) -> Vec<String> {
    let listing = view.list(PATIENCE).await;
    let tools = listing.tools.iter().filter(|listed| listed.tool.server == name("fx"));
    tools.map(|listed| listed.tool.name.clone()).collect()
}

/// The server's text, without the fence that some presets put around it.
pub(crate) fn said(reply: &Reply) -> String {
    unfenced(&reply.text()).to_owned()
}

/// Waits until a condition holds; panics after a timeout.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, waiting).await;
    in_time.unwrap_or_else(|_| panic!("too late: {what}"));
}

fn fake(log: &Path, gate: &Path) -> FakeServer {
    FakeServer::new("fx")
        .log(log)
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("slow").answers_text("done").waits_at(gate.to_str().unwrap()))
}

/// The settings of the server as a config file with this preset gives them.
fn settings(preset: &str, scope: &str, more: &str, fake: &FakeServer) -> ServerConfig {
    let text = format!(
        "preset = '{preset}'\n[servers.fx]\ncommand = 'fake'\nscope = '{scope}'\ntransports = ['stdio']\n{more}\n"
    );
    let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    let settings = loaded.config.servers.into_values().next().unwrap();
    reached_by(process(fake).transport, &settings)
}

/// The same settings with another transport.
fn reached_by(transport: pegboard::config::Transport, settings: &ServerConfig) -> ServerConfig {
    let mut settings = settings.clone();
    settings.transport = transport;
    settings
}
