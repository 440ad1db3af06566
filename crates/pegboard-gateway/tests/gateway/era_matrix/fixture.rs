//! A fake server, a board with it, and a gateway in front.

use std::{path::PathBuf, time::Duration};

use pegboard::{Config, Env, Format, Pegboard, ServerName};
use pegboard_gateway::{BoardPart, Gateway, GatewayBuilder, GatewayHost, InMemory, SignInLinks, board_service};
use pegboard_testkit::{FakeServer, NetHandle, Received, everything, read_log};
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::AbortHandle};

use crate::era_matrix::client::{Client, Era};

/// The path of the server `s` behind the gateway.
pub(crate) const SERVER: &str = "/mcp/s";

/// How one side reaches the gateway, or the gateway a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Http,
    /// A process for a server. For a client, the connection that `pegboard mcp` serves, in memory.
    Stdio,
}

/// The server behind the gateway.
pub(crate) enum Upstream {
    Http(NetHandle),
    /// A process that the board starts, and its log.
    Process {
        log: PathBuf,
        _folder: TempDir,
    },
}

impl Upstream {
    /// Starts a server, or prepares its process. Returns its entry in the config, too.
    async fn new(fake: FakeServer, link: Link) -> (Self, String) {
        if link == Link::Http {
            let server = fake.serve_http().await.expect("a server");
            let config = format!("url = \"{}\"\n", server.url());
            return (Self::Http(server), config);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let script = folder.path().join("script.json");
        let (program, args) = fake.log(&log).command_with_file(&script).expect("a script");
        let config = format!("command = {}\nargs = {}\n", json!(program), json!(args));
        (Self::Process { log, _folder: folder }, config)
    }

    /// The messages that the server has received.
    pub(crate) fn requests(&self) -> Vec<Received> {
        match self {
            Self::Http(server) => server.requests(),
            Self::Process { log, .. } => read_log(log).expect("a log").requests,
        }
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests()
            .iter()
            .filter(|received| received.method == method)
            .count()
    }

    /// Lets the calls continue that wait at a gate of the server.
    pub(crate) fn open_gate(&self, gate: &str) {
        match self {
            Self::Http(server) => server.open_gate(gate),
            Self::Process { .. } => unreachable!("the gates of processes stay closed"),
        }
    }

    /// Waits until the server has received a message with one of these methods.
    pub(crate) async fn wait_for(&self, methods: &[&str]) {
        let received = async {
            while methods.iter().all(|method| self.count(method) == 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let received = tokio::time::timeout(crate::era_matrix::http::PATIENCE, received).await;
        received.unwrap_or_else(|_| panic!("the server receives none of {methods:?}"));
    }
}

pub(crate) struct Fixture {
    pub(crate) server: Upstream,
    pub(crate) board: Pegboard,
    pub(crate) address: String,
    serving: AbortHandle,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The server that does everything, in one era.
pub(crate) fn server(era: Era) -> FakeServer {
    let era = match era {
        Era::Legacy => pegboard_testkit::Era::Legacy,
        Era::Modern => pegboard_testkit::Era::Modern,
    };
    everything("everything", era).streams()
}

impl Fixture {
    pub(crate) async fn new(era: Era) -> Self {
        Self::with(server(era), |gateway| gateway).await
    }

    pub(crate) async fn with(fake: FakeServer, configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        Self::behind(Link::Http, fake, configure).await
    }

    /// A gateway in front of a server behind this link.
    pub(crate) async fn behind(
        link: Link,
        fake: FakeServer,
        configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
    ) -> Self {
        let (server, entry) = Upstream::new(fake, link).await;
        let (board, address, serving) = serve(&format!("[servers.s]\n{entry}"), configure).await;
        Self {
            server,
            board,
            address,
            serving,
        }
    }

    /// Connects a client that can answer everything.
    pub(crate) async fn client(&self, link: Link, era: Era) -> Client {
        let capabilities = crate::era_matrix::everything_of(era);
        match link {
            Link::Http => Client::connect(&self.address, SERVER, era, capabilities).await,
            Link::Stdio => {
                let part = BoardPart::Server(ServerName::parse("s").expect("a name"));
                let service = board_service(self.board.clone(), part, SignInLinks::default());
                let connection = InMemory::connect(service).expect("randomness");
                Client::connect_directly(connection, era, capabilities).await
            }
        }
    }
}

/// Opens a board with this config, and serves it.
pub(crate) async fn serve(
    config: &str,
    configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) -> (Pegboard, String, AbortHandle) {
    let loaded = Config::from_text(config, Format::Toml, &Env::process());
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let board = Pegboard::builder(loaded.config).host(GatewayHost).open();
    let gateway = configure(Gateway::for_board(board.clone()).expect("randomness")).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let serving = tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
    (board, address, serving.abort_handle())
}
