//! Opens the board of a cell: the faulty server and the healthy one, on the wire of the cell.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use pegboard::{
    Config, Pegboard, ServerConfig,
    config::{Endpoint, Tls, Transport},
};
use pegboard_testkit::{FakeServer, MemoryHandle, NetHandle, Tool};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Faulty, Stage, neighbour};
use crate::{
    matrix::{
        case::Wire,
        raw::{self, Step},
    },
    support::*,
    tls_front::{self, Clients},
};

impl Stage {
    /// Opens the board with this server and the healthy one.
    pub(crate) async fn open(&mut self, fake: &FakeServer) {
        let wire = self.cell.wire;
        if wire == Wire::Memory {
            let (first, handle) = self.servers.in_context(|| fake.connect());
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

    /// Opens the board and waits until the faulty server has been listed.
    pub(crate) async fn open_listed(&mut self, fake: &FakeServer) {
        self.open(fake).await;
        self.until_listed().await;
    }

    /// Opens the board with these settings for the faulty server.
    pub(crate) async fn open_at(&mut self, config: ServerConfig) {
        let limits = self.limits;
        let builder = self.builder(Some(with_limits(config, |known| *known = limits))).await;
        self.start(builder);
    }

    /// Opens the board with an HTTP/1 server that answers the first call with the steps of `act`.
    pub(crate) async fn open_raw(&mut self, act: fn(&str) -> Vec<Step>) {
        let serving = self.servers.spawn(raw::http(self.raw(), act));
        self.open_spawned(serving).await;
    }

    /// Opens the board with a WebSocket server that answers the first call with the messages of `act`.
    pub(crate) async fn open_socket(&mut self, act: fn(&str) -> Vec<Message>) {
        let serving = self.servers.spawn(raw::socket(self.raw(), act));
        self.open_spawned(serving).await;
    }

    async fn open_spawned(&mut self, serving: JoinHandle<(SocketAddr, DropGuard)>) {
        let (address, guard) = serving.await.unwrap();
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

    /// The settings for a server at this address; for HTTP/2 with a TLS proxy in front of it.
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

    /// The settings for a server at this address with a TLS proxy in front of it.
    pub(crate) async fn reach_secure(&mut self, address: SocketAddr, clients: Clients, http_2: bool) -> ServerConfig {
        let front = self.servers.spawn(tls_front::front(address, clients, http_2));
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
            Wire::Sse => Transport::sse(endpoint),
            Wire::WebSocket => Transport::websocket(endpoint),
            Wire::Stdio | Wire::Memory | Wire::Http1 | Wire::Http2 => Transport::http(endpoint),
        })
    }

    /// A board with the healthy server, and with the faulty one unless it is in-process.
    async fn builder(&mut self, faulty: Option<ServerConfig>) -> pegboard::Builder {
        let healthy = FakeServer::new("ok")
            .log(self.path("neighbour"))
            .tool(Tool::new("hello").answers_text("hi"));
        let mut config = Config::default();
        config.servers.extend(faulty.map(|faulty| (name("fx"), faulty)));
        let healthy = match self.cell.wire {
            Wire::Stdio => process(&healthy),
            Wire::Memory => {
                let (first, handle) = self.servers.in_context(|| healthy.connect());
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
        let asking = tokio::spawn(neighbour::call_repeatedly(board.clone(), ended.clone()));
        self.neighbour = Some((ended, asking));
        self.board = Some(board);
    }
}

fn schedule(builder: pegboard::Builder) -> pegboard::Builder {
    let waits = vec![Duration::from_millis(50)];
    builder.restart_schedule(waits).unwrap().without_jitter()
}

fn dialer(
    servers: Handle,
    handle: MemoryHandle,
    first: Option<tokio::io::DuplexStream>,
) -> impl pegboard::in_process::Dialer {
    let first = pegboard_base::sync::Mutex::new(first);
    move || {
        let stream = first.lock().take();
        let stream = stream.unwrap_or_else(|| servers.in_context(|| handle.connect()));
        halves(stream)
    }
}

/// Restarts a server on the network whenever it dies.
fn revive(servers: &Handle, net: Arc<NetHandle>) -> DropGuard {
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

/// Runs a function in the context of a runtime.
trait EnterRuntime {
    fn in_context<T>(&self, act: impl FnOnce() -> T) -> T;
}

impl EnterRuntime for Handle {
    fn in_context<T>(&self, act: impl FnOnce() -> T) -> T {
        let _inside = self.enter();
        act()
    }
}
