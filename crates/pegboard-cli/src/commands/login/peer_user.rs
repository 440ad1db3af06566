//! Whether another user of this machine has opened a connection to the listener.
//!
//! The address of the first page is an argument of the browser's process, which other users can read. The user who opens the page first could sign in
//! with an account of their own before the user's browser comes. The kernel knows whose connection it is.

use std::net::SocketAddr;

use pegboard::LocalPeer;

/// Whether the other end of a connection on this machine belongs to another user. `false` if that is not known.
pub(super) async fn is_other_user(peer: SocketAddr, local: SocketAddr) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let looked_up = tokio::task::spawn_blocking(move || LocalPeer::user_of_connection(peer, local));
    looked_up.await.ok().flatten().is_some_and(|owner| owner != own)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_connection_of_this_user_is_none_of_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, peer) = listener.accept().unwrap();
        assert!(!is_other_user(peer, accepted.local_addr().unwrap()).await);
    }
}
