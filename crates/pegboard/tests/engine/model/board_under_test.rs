//! The real board under the steps of the model, compared with the model after each of them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use pegboard::{
    Config, Kind, Outcome, Pegboard, Reply, ServerConfig, ToolCall, Toolset, View,
    config::{Command, Misconfigured, Probe, Scope, Start, Transport},
    in_process::{ByteSink, ByteSource, DialContext, Dialer, DialerError},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, MemoryHandle, Tool as FakeTool};
use proptest_state_machine::StateMachineTest;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::Instant,
};

use crate::{
    model::{
        reference::{Board, CallId, Ending, Name, Place, RESTART, Row, SLOW, Settings, Step, Tool, ViewId},
        steps::Steps,
    },
    support::{PATIENCE, name},
};

/// An in-memory server that can be made to reject its start.
struct Fake {
    handle: MemoryHandle,
    refuses: AtomicBool,
}

impl Fake {
    fn new() -> Self {
        let fake = FakeServer::new("fx")
            .tool(FakeTool::new("hello").answers_text("hi"))
            .tool(FakeTool::new("fails").fails_with("no"))
            .tool(
                FakeTool::new("slow")
                    .after(Duration::from_millis(SLOW))
                    .answers_text("done"),
            )
            .tool(FakeTool::new("secret").answers_text("hush"));
        // The first connection is not used, so that the server is started only when the board dials.
        let (_unused, handle) = fake.connect();
        Self {
            handle,
            refuses: AtomicBool::new(false),
        }
    }
}

impl Dialer for Fake {
    fn dial(&self, _context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        Box::pin(async {
            let (client, server) = tokio::io::duplex(1);
            drop(server);
            let stream = if self.refuses.load(Ordering::Relaxed) {
                client
            } else {
                self.handle.connect()
            };
            let (read, write) = tokio::io::split(stream);
            Ok((Box::new(read) as ByteSource, Box::new(write) as ByteSink))
        })
    }
}

type Fakes = Arc<Mutex<BTreeMap<(String, String), Arc<Fake>>>>;

fn fake_at(fakes: &Fakes, name: &str, place: &str) -> Arc<Fake> {
    let mut fakes = fakes.lock();
    let fake = fakes.entry((name.to_owned(), place.to_owned()));
    fake.or_insert_with(|| Arc::new(Fake::new())).clone()
}

/// A board, its views and its calls.
pub(crate) struct BoardUnderTest {
    runtime: Arc<Runtime>,
    origin: Instant,
    board: Pegboard,
    fakes: Fakes,
    views: BTreeMap<ViewId, Toolset>,
    calls: BTreeMap<CallId, JoinHandle<Reply>>,
    /// Calls that have ended, including cancelled ones.
    ended: BTreeMap<CallId, Ending>,
    /// The model's config before the step.
    before: BTreeMap<Name, Option<Settings>>,
}

impl StateMachineTest for BoardUnderTest {
    type SystemUnderTest = Self;
    type Reference = Steps;

    fn init_test(_: &Board) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let fakes = Fakes::default();
        let known = fakes.clone();
        let (board, origin) = runtime.block_on(async {
            let board = Pegboard::builder(Config::default())
                .tools_only()
                .without_breaker()
                .without_jitter()
                .stand_ins(move |name, config| fake_at(&known, name.as_str(), place_of(config)))
                .open();
            (board, Instant::now())
        });
        Self {
            runtime: Arc::new(runtime),
            origin,
            board,
            fakes,
            views: BTreeMap::new(),
            calls: BTreeMap::new(),
            ended: BTreeMap::new(),
            before: BTreeMap::new(),
        }
    }

    fn apply(mut played: Self, model: &Board, step: Step) -> Self {
        let runtime = played.runtime.clone();
        runtime.block_on(async {
            played.take(model, step).await;
            tokio::time::sleep_until(played.origin + Duration::from_millis(model.now)).await;
            played.gather();
        });
        played.before = model
            .servers
            .iter()
            .map(|(name, server)| (*name, server.settings))
            .collect();
        played
    }

    fn check_invariants(played: &Self, model: &Board) {
        let status = played.board.status();
        let mut rows: Vec<Row> = status
            .servers
            .iter()
            .map(|row| Row {
                name: row.name.to_string(),
                view: row.view.clone(),
                draining: row.draining,
                state: row.state.as_str(),
                in_flight: row.in_flight,
            })
            .collect();
        rows.sort();
        assert_eq!(
            rows,
            model.rows(),
            "the rows of the status (left: the board, right: the model)"
        );
        assert_eq!(played.ended, model.ended, "the calls that have ended");
        assert_eq!(status.healthy, model.is_healthy(), "healthy");
        assert_eq!(status.ready, model.is_ready(), "ready");
        played.the_counts_add_up(model);
    }

    fn teardown(played: Self, _: Board) {
        let Self {
            runtime,
            board,
            views,
            calls,
            ..
        } = played;
        runtime.block_on(async {
            board.shutdown().await;
            assert_eq!(board.metrics().total.in_flight, 0, "no call outlives a shutdown");
            for call in calls.into_values() {
                assert!(call.now_or_never().is_some(), "a call outlives a shutdown");
            }
            drop((board, views));
            // In-memory servers end when they read EOF.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            assert_eq!(left, 0, "tasks are left after a shutdown");
        });
    }
}

impl BoardUnderTest {
    async fn take(&mut self, model: &Board, step: Step) {
        let board = self.board.clone();
        let returned = match step {
            Step::OpenView => {
                self.views.insert(model.last_view(), board.toolset_with(View::new()));
                None
            }
            Step::CloseView(view) => {
                self.views.remove(&view).unwrap().close().await;
                None
            }
            Step::Call(view, server, tool) => {
                self.call(model.last_call(), view, server, tool);
                None
            }
            Step::Cancel(id) => {
                self.calls.remove(&id).unwrap().abort();
                self.ended.insert(id, Ending::Cancelled);
                None
            }
            Step::List(view) => {
                let listed = listed(&self.views[&view]).await;
                assert_eq!(Some(listed), model.listed, "the tools that are listed");
                None
            }
            Step::Apply(server, settings) => {
                let mut config = self.config();
                config.misconfigured.remove(&name(server));
                config.servers.insert(name(server), config_of(settings));
                board.apply(config).await;
                None
            }
            Step::ApplyWithout(server) => {
                let mut config = self.config();
                config.misconfigured.remove(&name(server));
                config.servers.remove(&name(server));
                board.apply(config).await;
                None
            }
            Step::ApplyMisconfigured(server) => {
                let mut config = self.config();
                config.servers.remove(&name(server));
                config.misconfigured.insert(name(server), misconfigured());
                board.apply(config).await;
                None
            }
            Step::Connect(server, settings) => Some(board.connect(name(server), config_of(settings)).await.is_ok()),
            Step::Disconnect(server) => Some(board.disconnect(&name(server)).await),
            Step::Enable(server) => Some(board.enable(&name(server)).await),
            Step::Disable(server) => Some(board.disable(&name(server)).await),
            Step::Reconnect(server) => Some(board.reconnect(&name(server)).await),
            Step::Crash(server, place) => {
                fake_at(&self.fakes, server, word(place)).handle.kill();
                None
            }
            Step::RefuseStarts(server, place) => {
                fake_at(&self.fakes, server, word(place))
                    .refuses
                    .store(true, Ordering::Relaxed);
                None
            }
            Step::AcceptStarts(server, place) => {
                fake_at(&self.fakes, server, word(place))
                    .refuses
                    .store(false, Ordering::Relaxed);
                None
            }
            Step::Wait { .. } => None,
            Step::Drain => Some(board.drain(Duration::ZERO).await),
            Step::Shutdown => {
                board.shutdown().await;
                None
            }
        };
        assert_eq!(returned, model.returned, "what the step returned");
    }

    fn call(&mut self, id: CallId, view: ViewId, server: Name, tool: Tool) {
        let tool = match tool {
            Tool::Hello => "hello",
            Tool::Fails => "fails",
            Tool::Slow => "slow",
            Tool::Secret => "secret",
            Tool::Unknown => "unknown",
        };
        let (toolset, call) = (self.views[&view].clone(), ToolCall::new(format!("{server}.{tool}")));
        self.calls
            .insert(id, tokio::spawn(async move { toolset.call(call).await }));
    }

    /// Records the outcome of calls that have ended.
    fn gather(&mut self) {
        for (id, call) in std::mem::take(&mut self.calls) {
            if call.is_finished() {
                let reply = call.now_or_never().unwrap().unwrap();
                self.ended.insert(id, ending(&reply));
            } else {
                self.calls.insert(id, call);
            }
        }
    }

    /// The config as it was before the step.
    fn config(&self) -> Config {
        let mut config = Config::default();
        for (server, settings) in &self.before {
            match settings {
                Some(settings) => drop(config.servers.insert(name(server), config_of(*settings))),
                None => drop(config.misconfigured.insert(name(server), misconfigured())),
            }
        }
        config
    }

    fn the_counts_add_up(&self, model: &Board) {
        let metrics = self.board.metrics();
        let counted = metrics.total.calls.total + metrics.unrouted.total;
        assert_eq!(counted, model.ended.len() as u64, "calls that are counted as ended");
        assert_eq!(
            metrics.total.in_flight,
            model.in_flight.len() as u64,
            "calls that are counted as under way"
        );
        assert_eq!(metrics.views_open, model.views.len() as u64, "views that are open");
        let of_servers: u64 = metrics.servers.values().map(|server| server.calls.total).sum();
        assert_eq!(of_servers, metrics.total.calls.total, "the calls of all servers");
        let by_kind: u64 = metrics.total.calls.by_kind.values().sum();
        assert_eq!(by_kind, metrics.total.calls.total, "the calls of all kinds");
    }
}

/// The servers that a view lists, and whether their tool `secret` is listed.
async fn listed(view: &Toolset) -> Vec<(Name, bool)> {
    let listing = view.list(PATIENCE).await;
    let has = |server: &str, tool: &str| {
        let mut tools = listing.tools.iter();
        tools.any(|listed| listed.tool.server.as_str() == server && listed.tool.name == tool)
    };
    let servers = ["a", "b", "c"].into_iter().filter(|server| has(server, "hello"));
    servers.map(|server| (server, has(server, "secret"))).collect()
}

fn ending(reply: &Reply) -> Ending {
    match (&reply.outcome, reply.outcome.kind()) {
        (Outcome::Done(_), _) => Ending::Ok,
        (Outcome::ToolFailed(_), _) => Ending::ToolError,
        (Outcome::Lost(_), _) if reply.outcome.may_have_executed() => Ending::Lost,
        (Outcome::Refused(_), Kind::UnknownTool) => Ending::UnknownTool,
        (Outcome::Refused(_), Kind::NotPermitted) => Ending::NotPermitted,
        (Outcome::Refused(_), Kind::Unavailable | Kind::RestartFailed | Kind::RestartInProgress) => Ending::Unavailable,
        (other, _) => panic!("a call ended as {other:?}"),
    }
}

fn word(place: Place) -> &'static str {
    match place {
        Place::Here => "here",
        Place::There => "there",
    }
}

fn place_of(config: &ServerConfig) -> &str {
    match &config.transport {
        Transport::Stdio(command) => &command.program,
        other @ Transport::Remote { .. } => panic!("the servers of the model are not reached by {other:?}"),
    }
}

fn config_of(settings: Settings) -> ServerConfig {
    let mut config = ServerConfig::new(Transport::Stdio(Command::new(word(settings.place))));
    config.enabled = settings.enabled;
    config.required = settings.required;
    config.start = if settings.lazy { Start::Lazy } else { Start::Eager };
    config.deny = if settings.denies {
        vec!["secret".to_owned()]
    } else {
        Vec::new()
    };
    config.policy.scope = if settings.per_view {
        Scope::Session
    } else {
        Scope::Shared
    };
    config.policy.restart.backoff = vec![Duration::from_millis(RESTART)];
    config.policy.restart.wait = Duration::ZERO;
    config.policy.health.probe = Probe::Never;
    config
}

fn misconfigured() -> Misconfigured {
    let mut misconfigured = Misconfigured::default();
    misconfigured.why = "it is written wrongly".to_owned();
    misconfigured
}
