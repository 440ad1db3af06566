//! Attempts on the network and on sockets of other programs.

use std::{
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixStream},
    },
    time::Duration,
};

use super::{Attempt, EscapeTargets, of};

/// How long a connection to another machine may take.
const TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn attempt(targets: &EscapeTargets, note: &mut dyn FnMut(&'static str, Attempt)) {
    note("connect_tcp", of(TcpStream::connect(("127.0.0.1", targets.tcp))));
    note("listen_tcp", of(TcpListener::bind(("127.0.0.1", 0))));
    let metadata = SocketAddr::from(([169, 254, 169, 254], 80));
    note(
        "connect_metadata_service",
        of(TcpStream::connect_timeout(&metadata, TIMEOUT)),
    );
    let send = || UdpSocket::bind(("127.0.0.1", 0))?.send_to(b"x", ("127.0.0.1", targets.udp));
    note("send_udp", of(send()));
    let connect = || UnixStream::connect_addr(&UnixAddress::from_abstract_name(&targets.abstract_socket)?);
    note("connect_abstract_socket", of(connect()));
    note("connect_unix_socket", of(UnixStream::connect(&targets.socket)));
}
