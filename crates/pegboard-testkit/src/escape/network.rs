//! Attempts on the network and on sockets of other programs.

use std::{
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixStream},
    },
    time::Duration,
};

use super::{Attempt, EscapeTargets, outcome};

/// How long a connection to another machine may take.
const TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn attempt(targets: &EscapeTargets, note: &mut dyn FnMut(&'static str, Attempt)) {
    note("connect_tcp", outcome(TcpStream::connect(("127.0.0.1", targets.tcp))));
    note("listen_tcp", outcome(TcpListener::bind(("127.0.0.1", 0))));
    let metadata = SocketAddr::from(([169, 254, 169, 254], 80));
    note(
        "connect_metadata_service",
        outcome(TcpStream::connect_timeout(&metadata, TIMEOUT)),
    );
    let send = || UdpSocket::bind(("127.0.0.1", 0))?.send_to(b"x", ("127.0.0.1", targets.udp));
    note("send_udp", outcome(send()));
    let connect = || UnixStream::connect_addr(&UnixAddress::from_abstract_name(&targets.abstract_socket)?);
    note("connect_abstract_socket", outcome(connect()));
    note("connect_unix_socket", outcome(UnixStream::connect(&targets.socket)));
}
