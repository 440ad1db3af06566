//! A gateway with an HTTP API in front of a server whose tools wait for the test.

use std::{
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use pegboard::{Config, Env, Format, Pegboard, config::TokenDigest};
use pegboard_daemon::{Daemon, Reloads};
use pegboard_gateway::{Gateway, GatewayHost, Listeners, Scope, Token};
use pegboard_testkit::{FakeServer, NetHandle, Tool};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;

/// The limit on every wait. Only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a call goes on without its stream.
const RESUME: Duration = Duration::from_millis(200);

/// The token of the client, and the one that it can renew it with.
pub(crate) const TOKENS: [&str; 2] = ["pgb_first", "pgb_second"];

/// Waits for what must come.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"))
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(what, waiting).await;
}

/// A listening gateway.
#[derive(Clone)]
struct Served {
    gateway: Gateway,
    address: SocketAddr,
    socket: PathBuf,
    stop: CancellationToken,
}

pub(crate) struct World {
    pub(crate) fx: NetHandle,
    board: Pegboard,
    served: Served,
    /// Serves the same board, for clients that come again.
    successor: Served,
    _folder: TempDir,
}

/// Where a client connects to.
pub(crate) trait Address {
    fn address(&self) -> SocketAddr;
    fn socket(&self) -> &PathBuf;
    fn token(&self) -> &'static str;
}

pub(crate) struct Successor<'a>(&'a Served);

impl Address for World {
    fn address(&self) -> SocketAddr {
        self.served.address
    }

    fn socket(&self) -> &PathBuf {
        &self.served.socket
    }

    fn token(&self) -> &'static str {
        TOKENS[0]
    }
}

impl Address for Successor<'_> {
    fn address(&self) -> SocketAddr {
        self.0.address
    }

    fn socket(&self) -> &PathBuf {
        &self.0.socket
    }

    fn token(&self) -> &'static str {
        TOKENS[1]
    }
}

fn token(text: &str) -> Token {
    Token::new("client", TokenDigest::compute(text).to_bytes()).scopes([Scope::Read, Scope::Call].into_iter().collect())
}

fn config(text: &str) -> Config {
    let loaded = Config::from_text(text, Format::Toml, &Env::process());
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    loaded.config
}

impl World {
    /// A gateway that waits this long for its calls when it stops.
    pub(crate) async fn new(drain: Duration) -> Self {
        Self::with(drain, 100).await
    }

    /// A gateway that handles so many requests at once.
    pub(crate) async fn with_room_for(requests: usize) -> Self {
        Self::with(Duration::from_millis(50), requests).await
    }

    async fn with(drain: Duration, requests: usize) -> Self {
        let fx = FakeServer::new("fx")
            .tool(Tool::new("act").waits_at("act").answers_text("done"))
            .tool(Tool::new("hold").waits_at("hold").answers_text("held"))
            .tool(Tool::new("report").progress(1, Duration::ZERO).after(10 * PATIENCE))
            .tool(Tool::new("brief").progress(1, Duration::ZERO).answers_text("done"))
            .streams();
        let fx = fx.serve_http().await.unwrap();
        let settings = format!("[servers.fx]\nurl = '{}'\nmax_in_flight = 1\n", fx.url());
        let board = Pegboard::builder(config(&settings)).host(GatewayHost).open();
        within("the server is ready", board.settle(PATIENCE)).await;
        let folder = tempfile::tempdir().unwrap();
        let served = serve(&board, &folder, "first", drain, requests).await;
        let successor = serve(&board, &folder, "second", drain, 100).await;
        Self {
            fx,
            board,
            served,
            successor,
            _folder: folder,
        }
    }

    pub(crate) fn successor(&self) -> Successor<'_> {
        Successor(&self.successor)
    }

    /// How often the tool of the test has run.
    pub(crate) fn runs(&self) -> usize {
        ["act", "report", "brief"].map(|tool| self.calls_of(tool)).iter().sum()
    }

    fn calls_of(&self, tool: &str) -> usize {
        let requests = self.fx.requests();
        let calls = requests.iter().filter(|one| one.method == "tools/call");
        calls.filter(|one| one.tool() == Some(tool)).count()
    }

    pub(crate) async fn until_called(&self, tool: &str) {
        until("the server has the call", || self.calls_of(tool) > 0).await;
    }

    pub(crate) async fn until_queued(&self, count: usize) {
        let queued = || self.board.status().servers.iter().map(|row| row.queued).sum::<usize>();
        until("the call is queued", || queued() == count).await;
    }

    pub(crate) async fn until_cancelled(&self) {
        let noticed = ["$cancelled", "$closed", "notifications/cancelled"];
        until("the server is told", || {
            noticed.iter().any(|method| self.fx.count(method) > 0)
        })
        .await;
    }

    /// Waits until the gateway takes no more connections.
    pub(crate) async fn until_closed(&self) {
        let closed = async {
            while TcpStream::connect(self.served.address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("the gateway stops", closed).await;
    }

    /// Lets the token expire, and waits until it is refused.
    pub(crate) async fn expire_token(&self) {
        let at = SystemTime::now() + Duration::from_millis(50);
        let tokens = vec![token(TOKENS[0]).expires(at), token(TOKENS[1])];
        assert!(self.served.gateway.set_tokens(tokens, true));
        let mut refused = false;
        while !refused {
            let mut http = crate::http_client::Http::connect(self.served.address).await;
            let bearer = format!("Bearer {}", TOKENS[0]);
            let headers = [("authorization", &*bearer)];
            refused = http.ask("GET", "/api/v1/mcp/servers", &headers, "").await.status == 401;
        }
    }

    pub(crate) fn withdraw_token(&self) {
        assert!(self.served.gateway.set_tokens(vec![token(TOKENS[1])], true));
    }

    pub(crate) fn stop(&self) {
        self.served.stop.cancel();
    }

    /// Applies a config without the server, whose calls in flight go on.
    pub(crate) async fn remove_server(&mut self) {
        let board = self.board.clone();
        tokio::spawn(async move { board.apply(config("[servers]\n")).await });
        until("the server is removed", || !self.board.has_server("fx")).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.served.stop.cancel();
        self.successor.stop.cancel();
    }
}

async fn serve(board: &Pegboard, folder: &TempDir, name: &str, drain: Duration, requests: usize) -> Served {
    let builder = Gateway::for_board(board.clone())
        .unwrap()
        .drain_time(drain)
        .resume_time(RESUME)
        .max_in_flight(requests);
    let stop = CancellationToken::new();
    let daemon = Daemon::new(board.clone(), Reloads::new().0)
        .with_monitor(builder.monitor())
        .stop_with(stop.clone());
    let builder = builder.fallback(daemon.router());
    let gateway = TOKENS
        .iter()
        .fold(builder, |builder, text| builder.token(token(text)))
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let socket = folder.path().join(name);
    let local = UnixListener::bind(&socket).unwrap();
    let uid = folder.path().metadata().unwrap().uid();
    let listeners = Listeners::from(vec![listener]).local(local, uid);
    let (serving, stopped) = (gateway.clone(), stop.clone().cancelled_owned());
    tokio::spawn(async move { serving.serve(listeners, stopped).await.unwrap() });
    Served {
        gateway,
        address,
        socket,
        stop,
    }
}
