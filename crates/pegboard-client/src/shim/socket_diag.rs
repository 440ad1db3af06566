//! Asks the kernel for one TCP socket (`sock_diag(7)`), which takes microseconds. Its table in `/proc` is read as a whole, which takes milliseconds.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
    netlink::{self, SocketAddrNetlink},
    recv, sendto, socket_with,
};

use super::socket_table::SocketEntry;

/// The length of the header of a message.
const HEADER: usize = 16;
/// The type of a request for a socket, and of the answer.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const TCP: u8 = 6;

/// The socket at `peer` that is connected to `local`; `None` if the kernel does not tell, or no process has it open any more.
pub(super) fn find(peer: SocketAddr, local: SocketAddr) -> Option<SocketEntry> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
    sendto(
        &socket,
        &request(peer, local),
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )
    .ok()?;
    // The kernel has answered when the request is sent.
    let mut answer = [0; 512];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
    read(answer.get(..length)?, (peer.port(), local.port()))
}

/// A request for a socket in any state by its addresses, without more about it.
fn request(peer: SocketAddr, local: SocketAddr) -> Vec<u8> {
    let is_v4 = peer.is_ipv4() && local.is_ipv4();
    let family = if is_v4 {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let mut body = vec![family, TCP, 0, 0];
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(peer.port().to_be_bytes());
    body.extend(local.port().to_be_bytes());
    body.extend(octets(peer.ip(), is_v4));
    body.extend(octets(local.ip(), is_v4));
    // Any interface, and any cookie.
    body.extend(0u32.to_ne_bytes());
    body.extend([u8::MAX; 8]);

    let mut message = Vec::with_capacity(HEADER + body.len());
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    message.extend(length.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn octets(ip: IpAddr, is_v4: bool) -> [u8; 16] {
    let mut octets = [0; 16];
    match ip {
        IpAddr::V4(ip) if is_v4 => octets[..4].copy_from_slice(&ip.octets()),
        IpAddr::V4(ip) => octets = ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => octets = ip.octets(),
    }
    octets
}

/// Reads the answer. The kernel answers with a listening socket where no connection has the addresses, and then the port of the peer differs.
fn read(answer: &[u8], ports: (u16, u16)) -> Option<SocketEntry> {
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let port = |at: usize| answer.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let kind = answer.get(4..6)?.try_into().ok().map(u16::from_ne_bytes)?;
    let found = (port(HEADER + 4)?, port(HEADER + 6)?);
    if kind != SOCK_DIAG_BY_FAMILY || found != ports {
        return None;
    }
    let (uid, inode) = (word(HEADER + 64)?, u64::from(word(HEADER + 68)?));
    // A closed socket has the user id 0, whatever user opened it.
    (inode != 0).then_some(SocketEntry { uid, inode })
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
            let in_table = super::super::socket_table::find_in_tables(peer, local);
            assert!(in_table.is_some());
            // A sandbox around the tests may deny the question.
            let told = find(peer, local);
            assert!(told.is_none() || told == in_table, "{listens}: {told:?}, {in_table:?}");
            assert_eq!(
                find(local, SocketAddr::new(local.ip(), 1)),
                None,
                "a listening socket is no connection"
            );
            drop(client);
            assert_eq!(find(peer, local), None, "nobody has it open");
        }
    }

    #[test]
    fn an_answer_that_is_cut_short_tells_nothing() {
        let answer = [0; 88];
        for length in 0..answer.len() {
            assert_eq!(read(&answer[..length], (0, 0)), None);
        }
    }
}
