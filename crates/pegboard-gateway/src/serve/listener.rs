//! The accept loops of all listeners, and shutdown in order: no new connections, then the requests in flight, then the rest.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    connection,
    listeners::{Accept, Arrival, Listeners},
    site::Site,
};

/// The pause after a failed accept, whose usual cause is a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the errors for requests that were cancelled may take to be sent.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The most connections of other replicas. A request has one of its own while it is forwarded.
const MAX_OF_REPLICAS: usize = 4096;

/// The limits of the listeners.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListenLimits {
    /// The limit on open connections. Further ones wait in the kernel's backlog.
    pub(super) connections: usize,
    /// How long requests in flight may take to end at shutdown.
    pub(super) drain: Duration,
}

/// Accepts connections until `shutdown`, then drains them.
pub(super) async fn serve(
    listeners: Listeners,
    site: &Arc<Site>,
    limits: ListenLimits,
    shutdown: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let closing = CancellationToken::new();
    let mut accepting = JoinSet::new();
    for listener in listeners.tcp {
        accepting.spawn(accept(listener, site.clone(), permits.clone(), closing.clone()));
    }
    #[cfg(unix)]
    for listener in listeners.local {
        // Its own permits: an accept loop holds one while it waits, and the user's commands must get in however busy the addresses are.
        let permits = Arc::new(Semaphore::new(limits.connections));
        accepting.spawn(accept(listener, site.clone(), permits, closing.clone()));
    }
    if let Some(listener) = listeners.replicas {
        // Its own permits, so that replicas get in however many clients there are.
        let permits = Arc::new(Semaphore::new(limits.connections.min(MAX_OF_REPLICAS)));
        accepting.spawn(accept(listener, site.clone(), permits, closing.clone()));
    }
    shutdown.await;
    if let Some(replicas) = &site.replicas {
        // Others go on with its sessions. The store has a limit on time.
        replicas.leave().await;
    }
    closing.cancel();
    site.begin_to_stop();
    if timeout(limits.drain, drain(&mut accepting, site)).await.is_err() {
        tracing::warn!("requests in flight were cancelled by the shutdown");
        site.endpoints.halt();
        site.halt.set();
        site.sse.halt();
        site.websocket.connections.halt();
        site.lines.connections.halt();
        // The clients are told. One that does not read is not waited for.
        let _ = timeout(LAST_ANSWERS, drain(&mut accepting, site)).await;
    }
    // Aborts what is left, with its connections.
    accepting.shutdown().await;
    site.http.end();
}

/// Waits until all connections have ended.
async fn drain(accepting: &mut JoinSet<()>, site: &Site) {
    while accepting.join_next().await.is_some() {}
    site.websocket.connections.ended().await;
    site.lines.connections.ended().await;
}

/// Accepts until `closing`, then waits for the connections.
async fn accept<A: Accept>(listener: A, site: Arc<Site>, permits: Arc<Semaphore>, closing: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(closing.cancelled());
    loop {
        let next = next(&listener, &permits);
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = next => match accepted {
                Ok((Some((stream, arrival)), permit)) => {
                    // A token of its own, because all connections would lock a common one each time that they are polled.
                    let closing = closing.child_token();
                    connections.spawn(connection::serve(stream, arrival, site.clone(), closing, permit));
                }
                Ok((None, _)) => {}
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn next<A: Accept>(
    listener: &A,
    permits: &Arc<Semaphore>,
) -> io::Result<(Option<(A::Stream, Arrival)>, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    Ok((listener.accept().await?, permit))
}
