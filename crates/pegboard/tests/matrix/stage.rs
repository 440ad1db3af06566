//! One cell at work: a board with a faulty server `fx` and a healthy one `ok`, both on the wire of the cell, and what is seen of them.

use std::{any::Any, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use pegboard::{
    Config, Endpoint, Limits, Outcome, Pegboard, Reply, ServerConfig, ServerStatus, Tls, ToolCall, Transport,
};
use pegboard_testkit::{
    Control, ErrorClass, FakeServer, Fault, History, MemoryHandle, NetHandle, Tool, When, read_log,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{runtime::Handle, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    case::{Cell, Era, Wire},
    raw::{self, Step},
    secure::{self, Clients},
    support::*,
};

/// The time between two calls of the healthy server.
const BEAT: Duration = Duration::from_millis(25);
/// The largest message that servers may send.
pub(crate) const MESSAGE: usize = 256 << 10;

/// How the healthy server fared.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    pub(crate) answered: u32,
    pub(crate) failed: u32,
    pub(crate) slowest: Duration,
}

/// The faulty server, as far as the test can reach it.
enum Faulty {
    Process,
    Memory(MemoryHandle),
    Net(Arc<NetHandle>),
}

pub(crate) struct Stage {
    pub(crate) cell: Cell,
    pub(crate) folder: TempDir,
    /// Where the servers run, so that the tasks of the cell's own runtime are those of the library.
    servers: Handle,
    /// How long the slowest call under the fault took.
    pub(crate) took: Duration,
    /// Where the board's servers listen.
    pub(crate) addresses: Vec<SocketAddr>,
    limits: Limits,
    history: History,
    calls: u32,
    board: Option<Pegboard>,
    faulty: Option<Faulty>,
    neighbour: Option<(CancellationToken, JoinHandle<Neighbour>)>,
    kept: Vec<Box<dyn Any + Send>>,
}

impl Stage {
    pub(crate) fn new(cell: Cell, servers: Handle) -> Self {
        let mut limits = Limits::default();
        limits.connect = Duration::from_millis(2_500);
        limits.list = Duration::from_millis(2_000);
        limits.call_idle = Duration::from_millis(1_000);
        limits.call_total = Duration::from_millis(1_800);
        limits.write = Duration::from_millis(1_000);
        limits.era_silence = Duration::from_millis(600);
        limits.stop = Duration::from_millis(500);
        limits.message_bytes = MESSAGE;
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

    /// A server that has this fault on the first such request, and none after it was started again.
    pub(crate) fn faulty(&self, when: When, fault: Fault) -> FakeServer {
        self.fake().fault_on(when.first(1), fault).then_after(1, self.fake())
    }

    /// Opens the board with this server, and the healthy one beside it.
    pub(crate) async fn open(&mut self, fake: &FakeServer) {
        let wire = self.cell.wire;
        if wire == Wire::Memory {
            let (first, handle) = self.servers.block_in(|| fake.connect());
            let dialer = dialer(self.servers.clone(), handle.clone(), Some(first));
            self.faulty = Some(Faulty::Memory(handle));
            let builder = self.builder(None).await;
            let settings = with_limits(in_process_settings(), |limits| *limits = self.limits);
            return self.start(builder.in_process_with(name("fx"), dialer, settings));
        }
        let config = match wire {
            Wire::Stdio => {
                self.faulty = Some(Faulty::Process);
                process(fake)
            }
            _ => {
                let net = Arc::new(self.serve(fake).await);
                self.faulty = Some(Faulty::Net(net.clone()));
                self.kept.push(Box::new(revive(&self.servers, net.clone())));
                self.reach(net.address()).await
            }
        };
        self.open_at(config).await;
    }

    /// Opens the board with these settings of the faulty server.
    pub(crate) async fn open_at(&mut self, config: ServerConfig) {
        let limits = self.limits;
        let builder = self.builder(Some(with_limits(config, |known| *known = limits))).await;
        self.start(builder);
    }

    /// Opens the board with a server that says what it likes over HTTP/1.
    pub(crate) async fn open_raw(&mut self, act: fn(&str) -> Vec<Step>) {
        let server = self.raw();
        let (address, guard) = self.servers.spawn(raw::http(server, act)).await.unwrap();
        self.kept.push(Box::new(guard));
        let config = self.reach(address).await;
        self.open_at(config).await;
    }

    /// The same over a WebSocket.
    pub(crate) async fn open_socket(&mut self, act: fn(&str) -> Vec<tokio_tungstenite::tungstenite::Message>) {
        let server = self.raw();
        let (address, guard) = self.servers.spawn(raw::socket(server, act)).await.unwrap();
        self.kept.push(Box::new(guard));
        let config = self.reach(address).await;
        self.open_at(config).await;
    }

    fn raw(&self) -> raw::Server {
        raw::Server {
            era: self.cell.era,
            ledger: self.path("ledger"),
        }
    }

    pub(crate) async fn serve(&self, fake: &FakeServer) -> NetHandle {
        let (fake, wire) = (fake.clone(), self.cell.wire);
        let serving = self.servers.spawn(async move {
            match wire {
                Wire::Sse => fake.serve_sse().await,
                Wire::WebSocket => fake.serve_ws().await,
                Wire::Stdio | Wire::Memory | Wire::Http1 | Wire::Http2 => fake.serve_http().await,
            }
        });
        serving.await.unwrap().unwrap()
    }

    /// The settings for a server at this address; over HTTP/2 with TLS in front of it.
    pub(crate) async fn reach(&mut self, address: SocketAddr) -> ServerConfig {
        if self.cell.wire == Wire::Http2 {
            return self.reach_secure(address, Clients::Anyone, true).await;
        }
        self.addresses.push(address);
        let (scheme, path) = match self.cell.wire {
            Wire::Sse => ("http", "/sse"),
            Wire::WebSocket => ("ws", "/mcp"),
            Wire::Stdio | Wire::Memory | Wire::Http1 | Wire::Http2 => ("http", "/mcp"),
        };
        self.at(endpoint(&format!("{scheme}://{address}{path}")))
    }

    /// The settings for a server at this address with TLS in front of it.
    pub(crate) async fn reach_secure(&mut self, address: SocketAddr, clients: Clients, http_2: bool) -> ServerConfig {
        let front = self.servers.spawn(secure::front(address, clients, http_2));
        let (address, guard) = front.await.unwrap();
        self.kept.push(Box::new(guard));
        self.addresses.push(address);
        let (scheme, path) = match self.cell.wire {
            Wire::Sse => ("https", "/sse"),
            Wire::WebSocket => ("wss", "/mcp"),
            Wire::Stdio | Wire::Memory | Wire::Http1 | Wire::Http2 => ("https", "/mcp"),
        };
        let mut endpoint = endpoint(&format!("{scheme}://localhost:{}{path}", address.port()));
        endpoint.tls = Tls::default();
        endpoint.tls.insecure = true;
        self.at(endpoint)
    }

    /// The settings for an endpoint on the wire of the cell.
    pub(crate) fn at(&self, endpoint: Endpoint) -> ServerConfig {
        ServerConfig::new(match self.cell.wire {
            Wire::Sse => Transport::Sse(endpoint),
            Wire::WebSocket => Transport::WebSocket(endpoint),
            Wire::Stdio | Wire::Memory | Wire::Http1 | Wire::Http2 => Transport::Http(endpoint),
        })
    }

    /// A board with the healthy server, and the faulty one unless it lives in this process.
    async fn builder(&mut self, faulty: Option<ServerConfig>) -> pegboard::Builder {
        let healthy = FakeServer::new("ok")
            .log(self.path("neighbour"))
            .tool(Tool::new("hello").answers_text("hi"));
        let mut config = Config::default();
        config.servers.extend(faulty.map(|faulty| (name("fx"), faulty)));
        let healthy = match self.cell.wire {
            Wire::Stdio => process(&healthy),
            Wire::Memory => {
                let (first, handle) = self.servers.block_in(|| healthy.connect());
                let dialer = dialer(self.servers.clone(), handle, Some(first));
                return schedule(Pegboard::builder(config)).in_process(name("ok"), dialer);
            }
            _ => {
                let net = self.serve(&healthy).await;
                let config = self.reach(net.address()).await;
                self.kept.push(Box::new(net));
                config
            }
        };
        config.servers.insert(name("ok"), healthy);
        schedule(Pegboard::builder(config))
    }

    fn start(&mut self, builder: pegboard::Builder) {
        let board = builder.open();
        let ended = CancellationToken::new();
        let asking = tokio::spawn(ask(board.clone(), ended.clone()));
        self.neighbour = Some((ended, asking));
        self.board = Some(board);
    }

    /// Waits until the faulty server has been listed.
    pub(crate) async fn warm(&self) {
        let listing = self.board().toolset().list(PATIENCE).await;
        assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    }

    /// Calls `pay` and says how that ended.
    pub(crate) async fn call(&mut self) -> String {
        let reply = self.reply().await;
        self.word(&reply)
    }

    /// Calls `pay`; the time counts.
    pub(crate) async fn reply(&mut self) -> Reply {
        let began = Instant::now();
        let (nonce, call) = self.prepare();
        let reply = self.board().toolset().call(call).await;
        self.took = self.took.max(began.elapsed());
        record(&self.history, &nonce, &reply);
        reply
    }

    /// Calls `pay` when the fault is over, however long that takes, and says how it ended.
    pub(crate) async fn then(&mut self) -> String {
        // A request that is written while the end of its connection is on its way may be lost, and is told as such.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let took = self.took;
        let word = self.call().await;
        self.took = took;
        format!("then {word}")
    }

    /// Calls `pay` so many times at once and says how often each ending was seen.
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

    /// How a call ended: as what, whether it may have run, and how often it did.
    pub(crate) fn word(&self, reply: &Reply) -> String {
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
            other => format!("{other:?}"),
        }
    }

    /// How often the server carried out the call with this nonce.
    pub(crate) fn executed(&self, nonce: &str) -> usize {
        let ledger = std::fs::read_to_string(self.path("ledger")).unwrap_or_default();
        let line = format!("executed {nonce}");
        ledger.lines().filter(|known| *known == line).count()
    }

    /// What contradicts the ledger of the server.
    pub(crate) fn violations(&self) -> Option<String> {
        let violations = self.history.check(self.path("ledger")).err()?;
        let told: Vec<_> = violations.iter().map(ToString::to_string).collect();
        Some(told.join("; "))
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let servers = self.board().status().servers;
        servers.into_iter().find(|server| server.name == name("fx")).unwrap()
    }

    /// How often the faulty server received a message with this method.
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

    /// Ends the faulty server as a crash would; one on the network is started again at once.
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

    /// Waits until something is so; says whether it came to that.
    pub(crate) async fn until(&self, limit: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    /// Asks the healthy server once more and says how it fared. `None` without a board.
    pub(crate) async fn neighbour(&mut self) -> Option<Neighbour> {
        let (ended, asking) = self.neighbour.take()?;
        ended.cancel();
        Some(asking.await.unwrap())
    }

    /// Closes the board, if it is open. `false` when that takes too long.
    pub(crate) async fn close(&mut self) -> bool {
        let Some(board) = self.board.take() else { return true };
        tokio::time::timeout(secs(10), board.shutdown()).await.is_ok()
    }

    /// Gives the board away.
    pub(crate) async fn part(&mut self) -> Pegboard {
        self.neighbour().await;
        self.board.take().unwrap()
    }
}

/// Calls the healthy server until the end, and once after it.
async fn ask(board: Pegboard, ended: CancellationToken) -> Neighbour {
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let mut seen = Neighbour::default();
    loop {
        let is_last = ended.is_cancelled();
        let began = Instant::now();
        let reply = tools.call(ToolCall::new("ok.hello").timeout(secs(5))).await;
        seen.slowest = seen.slowest.max(began.elapsed());
        match reply.outcome {
            Outcome::Done(_) => seen.answered += 1,
            _ => seen.failed += 1,
        }
        if is_last {
            return seen;
        }
        tokio::select! {
            () = ended.cancelled() => {}
            () = tokio::time::sleep(BEAT) => {}
        }
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

fn schedule(builder: pegboard::Builder) -> pegboard::Builder {
    let waits = vec![Duration::from_millis(50)];
    builder.restart_schedule(waits).unwrap().without_jitter()
}

fn dialer(servers: Handle, handle: MemoryHandle, first: Option<tokio::io::DuplexStream>) -> impl pegboard::Dialer {
    let first = std::sync::Mutex::new(first);
    move || {
        let stream = first.lock().unwrap().take();
        let stream = stream.unwrap_or_else(|| servers.block_in(|| handle.connect()));
        let (read, write) = tokio::io::split(stream);
        (
            Box::new(read) as pegboard::ByteSource,
            Box::new(write) as pegboard::ByteSink,
        )
    }
}

/// Starts a server on the network again whenever it has died.
fn revive(servers: &Handle, net: Arc<NetHandle>) -> tokio_util::sync::DropGuard {
    let ended = CancellationToken::new();
    servers.spawn(ended.clone().run_until_cancelled_owned(async move {
        loop {
            net.died().await;
            if net.restart().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }));
    ended.drop_guard()
}

/// Does something in the context of a runtime.
trait BlockIn {
    fn block_in<T>(&self, act: impl FnOnce() -> T) -> T;
}

impl BlockIn for Handle {
    fn block_in<T>(&self, act: impl FnOnce() -> T) -> T {
        let _inside = self.enter();
        act()
    }
}
