//! The network transports: a listener on loopback, its handle, and connections that a test can cut.

use std::{
    io,
    net::SocketAddr,
    ops::Deref,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use axum::Router;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{http, sse, ws};
use crate::{
    control::Control,
    server::{Server, lock},
};

/// A network transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Streamable HTTP.
    Http,
    /// HTTP with SSE, as of 2024-11-05.
    Sse,
    /// WebSocket.
    WebSocket,
}

impl Wire {
    fn scheme_and_path(self) -> (&'static str, &'static str) {
        match self {
            Self::Http => ("http", "/mcp"),
            Self::Sse => ("http", "/sse"),
            Self::WebSocket => ("ws", "/mcp"),
        }
    }
}

/// A fake server on a loopback port. It stops when the handle is dropped.
pub struct NetHandle {
    control: Control,
    wire: Wire,
    address: SocketAddr,
    sessions: Arc<http::Sessions>,
    running: Mutex<Option<Running>>,
    front: Option<Front>,
}

/// What stands in front of a server: routes and checks of another part.
pub(crate) type Front = Arc<dyn Fn(Router) -> Router + Send + Sync>;

#[derive(Debug)]
struct Running {
    dead: CancellationToken,
    task: JoinHandle<()>,
}

impl NetHandle {
    pub(crate) async fn start(server: Arc<Server>, wire: Wire, address: &str) -> io::Result<Self> {
        Self::start_behind(server, wire, address, None).await
    }

    pub(crate) async fn start_behind(
        server: Arc<Server>,
        wire: Wire,
        address: &str,
        front: Option<Front>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let sessions = Arc::default();
        let handle = Self {
            control: Control { server },
            wire,
            address,
            sessions,
            running: Mutex::new(None),
            front,
        };
        handle.run(listener);
        Ok(handle)
    }

    /// The URL for clients: `http://127.0.0.1:PORT/mcp`, `…/sse` or `ws://…/mcp`.
    #[must_use]
    pub fn url(&self) -> String {
        let (scheme, path) = self.wire.scheme_and_path();
        format!("{scheme}://{}{path}", self.address)
    }

    /// The address alone.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The ids of the open sessions of streamable HTTP.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        self.sessions.ids()
    }

    /// Forgets all sessions but keeps running: the next request with an old id gets 404.
    pub fn forget_sessions(&self) {
        self.sessions.forget();
    }

    /// Cuts all connections and closes the port: from now on connections are refused.
    pub async fn stop(&self) {
        let running = lock(&self.running).take();
        if let Some(running) = running {
            running.dead.cancel();
            // A panic in the task has already failed its connection.
            let _ = running.task.await;
        }
        self.sessions.forget();
        self.control.server.forget_listeners();
    }

    /// Stops if needed, forgets all sessions, and serves again on the same port.
    ///
    /// # Errors
    /// When another process took the port.
    pub async fn restart(&self) -> io::Result<()> {
        self.stop().await;
        let listener = TcpListener::bind(self.address).await?;
        self.run(listener);
        Ok(())
    }

    /// Returns once a fault killed the server or another task stopped it.
    pub async fn died(&self) {
        let dead = lock(&self.running).as_ref().map(|running| running.dead.clone());
        if let Some(dead) = dead {
            dead.cancelled().await;
        }
    }

    fn run(&self, listener: TcpListener) {
        let dead = CancellationToken::new();
        let server = &self.control.server;
        server.start();
        let router = match self.wire {
            Wire::Http => http::router(server, &self.sessions, &dead),
            Wire::Sse => sse::router(server, &dead),
            Wire::WebSocket => ws::router(server, &dead),
        };
        let router = match &self.front {
            Some(front) => front(router),
            None => router,
        };
        let task = tokio::spawn(serve(listener, router, dead.clone()));
        *lock(&self.running) = Some(Running { dead, task });
    }
}

impl std::fmt::Debug for NetHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetHandle")
            .field("wire", &self.wire)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Drop for NetHandle {
    fn drop(&mut self) {
        if let Some(running) = lock(&self.running).take() {
            running.dead.cancel();
        }
    }
}

impl Deref for NetHandle {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.control
    }
}

async fn serve(listener: TcpListener, router: Router, dead: CancellationToken) {
    let listener = CuttableListener {
        listener,
        dead: dead.clone(),
    };
    // Cancelling drops the listener here; open connections share the token.
    let _ = dead
        .run_until_cancelled(async { axum::serve(listener, router).await })
        .await;
}

/// A loopback address that refuses connections.
///
/// # Errors
/// When no port can be bound for a moment.
pub async fn refused_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").await?.local_addr()
}

/// Starts a listener that accepts connections and never sends a byte. It ends with the returned guard.
///
/// # Errors
/// When no port can be bound.
pub async fn stalled_listener() -> io::Result<(SocketAddr, tokio_util::sync::DropGuard)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    tokio::spawn(ended.run_until_cancelled_owned(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    }));
    Ok((address, guard))
}

/// A listener whose connections fail when the server dies.
struct CuttableListener {
    listener: TcpListener,
    dead: CancellationToken,
}

impl axum::serve::Listener for CuttableListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            if let Ok((stream, address)) = self.listener.accept().await {
                // A failure makes tests slower, not wrong.
                let _ = stream.set_nodelay(true);
                let cut = Box::pin(self.dead.clone().cancelled_owned());
                return (Connection { stream, cut }, address);
            }
            tokio::task::yield_now().await;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once the server is dead.
struct Connection {
    stream: TcpStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => {
                // The client then sees a reset and not an orderly close.
                let _ = self.stream.set_zero_linger();
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
