//! Finds a TCP connection among those of this machine.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{IpAddr, SocketAddr},
};

use super::socket_diag::{self, SocketEntry};

/// The most bytes of the kernel's table that are read.
const MAX_TABLE: u64 = 64 << 20;

/// The socket at `peer` that is connected to `local`; `None` if no process has it open any more.
pub(super) fn find(peer: SocketAddr, local: SocketAddr) -> Option<SocketEntry> {
    socket_diag::find(peer, local).or_else(|| find_in_tables(peer, local))
}

/// The same by the tables of the kernel, which are there even where it does not answer questions.
fn find_in_tables(peer: SocketAddr, local: SocketAddr) -> Option<SocketEntry> {
    let lines = |table: &str| {
        let table = std::fs::File::open(table).ok()?;
        Some(BufReader::new(table.take(MAX_TABLE)).lines().map_while(Result::ok))
    };
    let of_v4 = || find_in(lines("/proc/net/tcp")?, peer, local);
    // A socket for IPv6 can connect to IPv4 too.
    let of_v6 = || find_in(lines("/proc/net/tcp6")?, as_v6(peer), as_v6(local));
    match peer.is_ipv4() {
        true => of_v4().or_else(of_v6),
        false => of_v6().or_else(|| find_in(lines("/proc/net/tcp")?, as_v4(peer)?, as_v4(local)?)),
    }
}

fn as_v6(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::from((ip.to_ipv6_mapped(), address.port())),
        IpAddr::V6(_) => address,
    }
}

/// The address of a client that uses IPv4 to reach a socket of both.
fn as_v4(address: SocketAddr) -> Option<SocketAddr> {
    let ip = address.ip().to_canonical();
    ip.is_ipv4().then(|| SocketAddr::new(ip, address.port()))
}

fn find_in(lines: impl Iterator<Item = String>, peer: SocketAddr, local: SocketAddr) -> Option<SocketEntry> {
    let (peer, local) = (in_table(peer), in_table(local));
    for line in lines {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next() == Some(peer.as_str()) && fields.next() == Some(local.as_str()) {
            // After the state, the queues, the timer and the retransmits.
            let uid = fields.nth(4)?.parse().ok()?;
            let inode = fields.nth(1)?.parse().ok()?;
            // The kernel lists a closed socket with the user id 0, whatever user opened it.
            return (inode != 0).then_some(SocketEntry { uid, inode });
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
    fn the_kernel_tells_of_a_connection_what_its_table_does() {
        for (listens, connects) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:0", "[::1]"),
            ("[::]:0", "127.0.0.1"),
        ] {
            let Ok(listener) = TcpListener::bind(listens) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect(format!("{connects}:{port}")).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            let in_table = find_in_tables(peer, local);
            assert!(in_table.is_some());
            // A sandbox around the tests may deny the question.
            let told = socket_diag::find(peer, local);
            assert!(told.is_none() || told == in_table, "{listens}: {told:?}, {in_table:?}");
            assert_eq!(
                find(local, SocketAddr::new(local.ip(), 1)),
                None,
                "a listening socket is no connection"
            );
            drop(client);
            assert_eq!(socket_diag::find(peer, local), None, "nobody has it open");
        }
    }

    #[test]
    fn the_owner_of_a_connection_is_read_from_the_kernels_table() {
        let lines = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            "   0: 0100007F:B96F 0100007F:8000 01 00000000:00000000 00:00000000 00000000  1000        0 17 1",
            "   1: 0100007F:8000 0100007F:B96F 01 00000000:00000000 00:00000000 00000000  1001        0 18 1",
            "   2: 0100007F:8001 0100007F:B96F 04 00000000:00000000 00:00000000 00000000     0        0 0 1",
        ];
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let find = |peer, local| find_in(lines.iter().map(|line| (*line).to_owned()), at(peer), at(local));
        if cfg!(target_endian = "little") {
            let entry = |uid, inode| Some(SocketEntry { uid, inode });
            assert_eq!(find("127.0.0.1:32768", "127.0.0.1:47471"), entry(1001, 18));
            assert_eq!(find("127.0.0.1:47471", "127.0.0.1:32768"), entry(1000, 17));
            let mapped = in_table(as_v6(at("127.0.0.1:80")));
            assert_eq!(mapped, "0000000000000000FFFF00000100007F:0050");
            assert_eq!(in_table(at("[::1]:80")), "00000000000000000000000001000000:0050");
        }
        let closed = find("127.0.0.1:32769", "127.0.0.1:47471");
        assert_eq!(closed, None, "its user is not known any more");
        assert_eq!(find("127.0.0.1:32770", "127.0.0.1:47471"), None);
    }
}
