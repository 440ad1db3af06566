//! The listener of the network transports: limits on connections and on slow clients, and graceful shutdown.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::middleware::from_fn_with_state;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dns_rebinding::{self, Bound};

/// The limit on open connections. A client needs one or two; further ones wait in the kernel's backlog.
const MAX_CONNECTIONS: usize = 1024;

/// How long a client may take to send the head of a request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long open connections may take to end at shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// The pause after a failed accept, whose usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The interval of the comments that keep proxies from closing an idle event stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Binds, prints the address on stdout, and serves until `stop` is cancelled.
pub(super) async fn serve(
    listen: SocketAddr,
    scheme: &str,
    path: &str,
    router: Router,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}; choose another address with --listen"))?;
    let address = listener
        .local_addr()
        .context("cannot tell the address that was bound")?;
    let router = router.layer(from_fn_with_state(Bound(address.ip()), dns_rebinding::check));
    announce(&format!("listening on {scheme}://{address}{path}")).context("cannot write to stdout")?;
    accept(listener, router, stop).await;
    Ok(())
}

/// Prints and flushes the line with the address. Scripts read it, so it goes to stdout.
fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

async fn accept(listener: TcpListener, router: Router, stop: &CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let accepting = async {
        // The semaphore is never closed, so this loop ends only with `stop`.
        while let Ok(permit) = permits.clone().acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (router, stop) = (router.clone(), stop.clone());
                    connections.spawn(async move {
                        connection(stream, router, stop).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
    connections.close();
    let _ = tokio::time::timeout(SHUTDOWN_TIME, connections.wait()).await;
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Without Nagle's algorithm a small response does not wait for the previous acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut serving = pin!(serving);
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        outcome = serving.as_mut() => outcome,
    };
    if let Err(error) = outcome {
        tracing::debug!(error, "connection ended badly");
    }
}
