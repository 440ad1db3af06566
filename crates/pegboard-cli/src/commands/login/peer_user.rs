//! Which user of this machine has opened a connection to the listener.
//!
//! The address of the first page is an argument of the browser's process, which other users can read. The user who opens the page first could sign in
//! with an account of their own before the user's browser comes. The kernel knows whose connection it is.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{IpAddr, SocketAddr},
};

/// The most bytes of the kernel's table that are read.
const MAX_TABLE: u64 = 64 << 20;

/// Whether the other end of a connection on this machine belongs to another user. `false` if that is not known.
pub(super) async fn is_other_user(peer: SocketAddr, local: SocketAddr) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let looked_up = tokio::task::spawn_blocking(move || owner(peer, local));
    looked_up.await.ok().flatten().is_some_and(|owner| owner != own)
}

/// The user id of the socket at `peer` that is connected to `local`.
fn owner(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let lines = |table: &str| {
        let table = std::fs::File::open(table).ok()?;
        Some(BufReader::new(table.take(MAX_TABLE)).lines().map_while(Result::ok))
    };
    let of_v4 = || owner_in(lines("/proc/net/tcp")?, peer, local);
    // A socket for IPv6 can connect to IPv4 too.
    let of_v6 = || owner_in(lines("/proc/net/tcp6")?, as_v6(peer), as_v6(local));
    match peer.is_ipv4() {
        true => of_v4().or_else(of_v6),
        false => of_v6(),
    }
}

fn as_v6(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::from((ip.to_ipv6_mapped(), address.port())),
        IpAddr::V6(_) => address,
    }
}

fn owner_in(lines: impl Iterator<Item = String>, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let (peer, local) = (in_table(peer), in_table(local));
    for line in lines {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next() == Some(peer.as_str()) && fields.next() == Some(local.as_str()) {
            // After the state, the queues, the timer and the retransmits.
            return fields.nth(4)?.parse().ok();
        }
    }
    None
}

/// An address as the kernel prints it: 32-bit words in the order of this machine's bytes, then the port.
fn in_table(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let words = octets
        .chunks_exact(4)
        .filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
    let address_text: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{address_text}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_owner_of_a_connection_is_read_from_the_kernels_table() {
        let lines = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            "   0: 0100007F:B96F 0100007F:8000 01 00000000:00000000 00:00000000 00000000  1000        0 1 1",
            "   1: 0100007F:8000 0100007F:B96F 01 00000000:00000000 00:00000000 00000000  1001        0 1 1",
        ];
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let owner = |peer, local| owner_in(lines.iter().map(|line| (*line).to_owned()), at(peer), at(local));
        if cfg!(target_endian = "little") {
            assert_eq!(owner("127.0.0.1:32768", "127.0.0.1:47471"), Some(1001));
            assert_eq!(owner("127.0.0.1:47471", "127.0.0.1:32768"), Some(1000));
            let mapped = in_table(as_v6(at("127.0.0.1:80")));
            assert_eq!(mapped, "0000000000000000FFFF00000100007F:0050");
            assert_eq!(in_table(at("[::1]:80")), "00000000000000000000000001000000:0050");
        }
        assert_eq!(owner("127.0.0.1:32769", "127.0.0.1:47471"), None);
    }

    #[tokio::test]
    async fn a_connection_of_this_user_is_none_of_another() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            assert!(!is_other_user(peer, local).await);
            if cfg!(target_os = "linux") {
                let own = rustix::process::geteuid().as_raw();
                assert_eq!(owner(peer, local), Some(own), "{host}");
            }
        }
    }
}
