//! [`Listeners`]: what a gateway accepts connections on, and where each connection comes from.

use std::{future::Future, io, net::SocketAddr};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

use crate::door::TcpPeer;

/// What a gateway listens on: addresses, and on Unix also sockets for the processes of one user.
#[derive(Debug, Default)]
pub struct Listeners {
    pub(super) tcp: Vec<TcpListener>,
    #[cfg(unix)]
    pub(super) local: Vec<LocalListener>,
    pub(super) replicas: Option<ReplicaListener>,
}

impl From<Vec<TcpListener>> for Listeners {
    fn from(tcp: Vec<TcpListener>) -> Self {
        Self { tcp, ..Self::default() }
    }
}

impl Listeners {
    /// Adds the listener for the other [replicas](crate::Replicas) of the gateway. Only requests that are sealed with the key of the replicas are
    /// taken there. It speaks HTTP without TLS, and what it answers is not sealed: let only replicas reach it.
    #[must_use]
    pub fn replicas(mut self, listener: TcpListener) -> Self {
        self.replicas = Some(ReplicaListener(listener));
        self
    }

    /// Adds a Unix socket for the processes of the user `uid`. Connections of other users, and of servers that this program has started, are
    /// closed at once.
    ///
    /// Requests on it need no token. Without an [owner](crate::GatewayBuilder::owner) they have all rights, also those that start processes: protect
    /// the socket's file and folder.
    #[cfg(unix)]
    #[must_use]
    pub fn local(mut self, listener: tokio::net::UnixListener, uid: u32) -> Self {
        self.local.push(LocalListener { listener, uid });
        self
    }
}

/// What other replicas of the gateway connect to.
#[derive(Debug)]
pub(super) struct ReplicaListener(TcpListener);

impl Accept for ReplicaListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<Option<(TcpStream, Arrival)>> {
        let accepted = Accept::accept(&self.0).await?;
        Ok(accepted.map(|(stream, _)| (stream, Arrival::Replica)))
    }
}

/// An extension of requests that come from [`Listeners::local`], for the router of
/// [`GatewayBuilder::fallback`](crate::GatewayBuilder::fallback).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalClient;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Any process of this machine or, if it listens there, of the network.
    Network,
    /// A process of the user that the gateway runs for: its id, or 0 if the system does not tell it.
    Local(u32),
    /// A server of another program of that user, which may have a sandbox.
    LocalServer,
    /// The listener for other replicas of the gateway, to which any program may connect.
    Replica,
}

impl Arrival {
    /// The id of the process at the other end of a local socket.
    pub(super) fn process(self) -> Option<u32> {
        match self {
            Self::Local(pid) => Some(pid),
            Self::Network | Self::LocalServer | Self::Replica => None,
        }
    }
}

/// The client of a connection.
#[derive(Clone)]
pub(super) struct ConnectedClient {
    pub(super) arrival: Arrival,
    pub(super) peer: Option<TcpPeer>,
    /// Its address, if there is an access log.
    pub(super) address: Option<SocketAddr>,
}

/// Accepts connections.
pub(super) trait Accept: Send + Sync + 'static {
    type Stream: ClientStream;

    /// The next connection, and where it comes from; `None` for one that was refused.
    fn accept(&self) -> impl Future<Output = io::Result<Option<(Self::Stream, Arrival)>>> + Send;
}

/// The server's end of a connection.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Waits for the first byte, without taking it. Returns `false` if the client closed the connection before.
    fn has_input(&self) -> impl Future<Output = bool> + Send;

    /// The TCP connection that it is; `None` if it is another one. Only these are encrypted.
    fn into_tcp(self) -> Option<TcpStream>;

    /// The other end of a TCP connection on this machine.
    fn peer(&self) -> Option<TcpPeer>;

    /// The address at the other end of a TCP connection.
    fn address(&self) -> Option<SocketAddr>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<Option<(TcpStream, Arrival)>> {
        let (stream, _) = Self::accept(self).await?;
        // Without Nagle's algorithm a small response does not wait for the previous acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        Ok(Some((stream, Arrival::Network)))
    }
}

impl ClientStream for TcpStream {
    async fn has_input(&self) -> bool {
        matches!(self.peek(&mut [0]).await, Ok(1))
    }

    fn into_tcp(self) -> Option<TcpStream> {
        Some(self)
    }

    fn peer(&self) -> Option<TcpPeer> {
        TcpPeer::new(self.peer_addr().ok()?, self.local_addr().ok()?)
    }

    fn address(&self) -> Option<SocketAddr> {
        self.peer_addr().ok()
    }
}

#[cfg(unix)]
pub(super) use local::LocalListener;

#[cfg(unix)]
mod local {
    use std::{io, net::SocketAddr};

    use tokio::net::{TcpStream, UnixListener, UnixStream};

    use pegboard::LocalPeer;
    use pegboard_base::log_event;

    use super::{Accept, Arrival, ClientStream, TcpPeer};

    /// A Unix socket for the processes of one user.
    #[derive(Debug)]
    pub(in super::super) struct LocalListener {
        pub(super) listener: UnixListener,
        pub(super) uid: u32,
    }

    impl Accept for LocalListener {
        type Stream = UnixStream;

        async fn accept(&self) -> io::Result<Option<(UnixStream, Arrival)>> {
            let (stream, _) = self.listener.accept().await?;
            // The file's mode keeps others out already, except where a file system ignores modes.
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.uid => {
                    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
                    match LocalPeer::look_up_process(pid, peer.uid()) {
                        LocalPeer::User(_) => Ok(Some((stream, Arrival::Local(pid)))),
                        LocalPeer::ServerOfAnother => Ok(Some((stream, Arrival::LocalServer))),
                        other => {
                            log_refused(pid, other);
                            Ok(None)
                        }
                    }
                }
                Ok(peer) => {
                    tracing::warn!(
                        uid = peer.uid(),
                        "a process of another user was refused at the local socket"
                    );
                    Ok(None)
                }
                Err(error) => {
                    tracing::warn!(%error, "a process of an unknown user was refused at the local socket");
                    Ok(None)
                }
            }
        }
    }

    /// Says why a process of the same user was refused.
    fn log_refused(pid: u32, peer: LocalPeer) {
        match peer {
            LocalPeer::Server => {
                tracing::warn!(name: log_event::CLIENT_REFUSED, pid, "a process of a server was refused at the local socket")
            }
            // A client that ends right after it has connected is nothing to worry about.
            _ => tracing::info!(
                pid,
                "a process was refused at the local socket because it cannot be told what started it: it may have ended"
            ),
        }
    }

    impl ClientStream for UnixStream {
        async fn has_input(&self) -> bool {
            // A closed connection is readable too; its end is read later.
            self.readable().await.is_ok()
        }

        fn into_tcp(self) -> Option<TcpStream> {
            None
        }

        fn peer(&self) -> Option<TcpPeer> {
            None
        }

        fn address(&self) -> Option<SocketAddr> {
            None
        }
    }
}
