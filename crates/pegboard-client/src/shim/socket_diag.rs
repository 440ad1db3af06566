//! Asks the kernel for one TCP socket (`sock_diag(7)`), which takes microseconds. Its table in `/proc` is read as a whole, which takes milliseconds.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect,
    netlink::{self, SocketAddrNetlink},
    recv, send, socket_with,
};

/// The length of the header of a message.
const HEADER: usize = 16;
/// The type of a request for a socket, and of the answer.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const TCP: u8 = 6;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketEntry {
    /// The user who opened it.
    pub(super) uid: u32,
    pub(super) inode: u64,
}

/// The socket at `peer` that is connected to `local`; `None` if the kernel does not tell, or no process has it open any more.
pub(super) fn find(peer: SocketAddr, local: SocketAddr) -> Option<SocketEntry> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
    // Of a connected socket, only the kernel's messages are received.
    connect(&socket, &SocketAddrNetlink::new(0, 0)).ok()?;
    send(&socket, &request(peer, local), SendFlags::empty()).ok()?;
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
    use super::*;

    #[test]
    fn an_answer_that_is_cut_short_tells_nothing() {
        let answer = [0; 88];
        for length in 0..answer.len() {
            assert_eq!(read(&answer[..length], (0, 0)), None);
        }
    }
}
