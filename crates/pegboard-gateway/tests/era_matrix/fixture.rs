//! A fake server, a board with it, and a gateway in front, each on a socket of its own.

use pegboard::{Config, Env, Format, Pegboard};
use pegboard_gateway::{Gateway, GatewayBuilder, GatewayHost};
use pegboard_testkit::{FakeServer, NetHandle, everything};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::client::Era;

/// The path of the server `s` behind the gateway.
pub(crate) const SERVER: &str = "/mcp/s";

pub(crate) struct Fixture {
    pub(crate) server: NetHandle,
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
        let server = fake.serve_http().await.expect("a server");
        let config = format!("[servers.s]\nurl = \"{}\"\n", server.url());
        let (board, address, serving) = serve(&config, configure).await;
        Self {
            server,
            board,
            address,
            serving,
        }
    }

    /// Waits until the server notices that a client has cancelled a call.
    pub(crate) async fn cancelled(&self) {
        let noticed = async {
            tokio::select! {
                () = self.server.wait_for("$cancelled", 1) => {}
                () = self.server.wait_for("$closed", 1) => {}
                () = self.server.wait_for("notifications/cancelled", 1) => {}
            }
        };
        let noticed = tokio::time::timeout(crate::http::PATIENCE, noticed).await;
        noticed.expect("the server notices the cancellation");
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
    let gateway = configure(Gateway::of_board(board.clone()).expect("randomness")).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let serving = tokio::spawn(async move { gateway.serve(vec![listener], std::future::pending()).await });
    (board, address, serving.abort_handle())
}
