//! [`Owner`]: the user whom a gateway without configured tokens serves, and [`Peer`], which tells whether a connection is one of that user's.

use std::{net::SocketAddr, sync::Arc};

use pegboard::LocalPeer;
use tokio::sync::{OnceCell, Semaphore};

/// How many connections are looked up in the tables of the kernel at once. More would not be faster.
const LOOKUPS: usize = 2;

/// The user who runs a gateway, for addresses of this machine and local sockets: who that is, and the token of that user.
///
/// While no tokens are configured, requests with the owner's token have all rights. Requests without it may read and call tools if they come from a process
/// of the owner that is no sandboxed server of the board; where the system cannot tell, they are refused. Nothing is changed without a token.
#[derive(Clone, Debug)]
pub struct Owner(Arc<Inner>);

struct Inner {
    uid: u32,
    digest: [u8; 32],
    lookups: Semaphore,
}

impl Owner {
    /// The user with this id, whose token has this SHA-256 digest.
    pub fn new(uid: u32, sha256: [u8; 32]) -> Self {
        Self(Arc::new(Inner {
            uid,
            digest: sha256,
            lookups: Semaphore::new(LOOKUPS),
        }))
    }

    pub(super) fn digest(&self) -> &[u8; 32] {
        &self.0.digest
    }

    /// Whether the other end of a connection is a process of this user, and no sandboxed server.
    pub(crate) async fn owns(&self, peer: &TcpPeer) -> bool {
        let Ends { peer, local, found } = &*peer.0;
        let look = || async {
            let Ok(_turn) = self.0.lookups.acquire().await else {
                return LocalPeer::Unknown;
            };
            let (peer, local) = (*peer, *local);
            let looked = tokio::task::spawn_blocking(move || LocalPeer::look_up_connection(peer, local));
            looked.await.unwrap_or(LocalPeer::Unknown)
        };
        *found.get_or_init(look).await == LocalPeer::User(self.0.uid)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// The other end of a TCP connection, an extension of its requests. It is looked up once, when a request needs it.
#[derive(Clone, Debug)]
pub(crate) struct TcpPeer(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    peer: SocketAddr,
    local: SocketAddr,
    found: OnceCell<LocalPeer>,
}

impl TcpPeer {
    /// `None` if it is on another machine.
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr) -> Option<Self> {
        let is_here = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        (is_here(peer) && is_here(local)).then(|| {
            Self(Arc::new(Ends {
                peer,
                local,
                found: OnceCell::new(),
            }))
        })
    }
}
