//! [`Syslog`]: sends messages to a syslog (RFC 5424). It blocks for a few seconds at most, on the thread of the log.

use std::{
    io::{self, Write as _},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket},
    time::Duration,
};

use pegboard_base::timestamp::Timestamp;
use pegboard_config::SyslogAddress;

/// How long a connection, and a message to one whose reader is slow, may take.
const SEND_TIME: Duration = Duration::from_secs(2);
/// The facility `log audit` and the severity `informational`.
const PRIORITY: u8 = 13 * 8 + 6;
/// The name of the program in messages.
const PROGRAM: &str = "pegboard";

/// A syslog, and the connection to it if one is open.
pub(super) struct Syslog {
    address: SyslogAddress,
    host: String,
    open: Option<Connection>,
}

enum Connection {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Syslog {
    pub(super) fn new(address: SyslogAddress) -> Self {
        Self {
            address,
            host: host_name(),
            open: None,
        }
    }

    /// Sends a message for each line that is not empty.
    pub(super) fn send<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        for line in lines.filter(|line| !line.is_empty()) {
            let message = message(&self.host, Timestamp::now(), line);
            if self.send_one(&message).is_err() {
                // The syslog may have been started anew.
                self.open = None;
                self.send_one(&message).inspect_err(|_| self.open = None)?;
            }
        }
        Ok(())
    }

    fn send_one(&mut self, message: &[u8]) -> io::Result<()> {
        let connection = match &mut self.open {
            Some(connection) => connection,
            None => self.open.insert(connect(&self.address)?),
        };
        match connection {
            #[cfg(unix)]
            Connection::Unix(socket) => socket.send(message).map(drop),
            Connection::Udp(socket) => socket.send(message).map(drop),
            Connection::Tcp(stream) => {
                refuse_closed(stream)?;
                let mut framed = format!("{} ", message.len()).into_bytes();
                framed.extend_from_slice(message);
                stream.write_all(&framed)
            }
        }
    }
}

/// A message with its header.
fn message(host: &str, at: Timestamp, text: &[u8]) -> Vec<u8> {
    let process = std::process::id();
    // At most six digits of a second are allowed.
    let micros = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
    let mut message = format!("<{PRIORITY}>1 {micros} {host} {PROGRAM} {process} audit - ").into_bytes();
    message.extend_from_slice(text);
    message
}

fn connect(address: &SyslogAddress) -> io::Result<Connection> {
    match address {
        #[cfg(unix)]
        SyslogAddress::Unix(path) => {
            let socket = std::os::unix::net::UnixDatagram::unbound()?;
            socket.set_write_timeout(Some(SEND_TIME))?;
            socket.connect(path)?;
            Ok(Connection::Unix(socket))
        }
        SyslogAddress::Udp(host, port) => {
            let to = resolve(host, *port)?;
            let from = match to {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = UdpSocket::bind(from)?;
            socket.set_write_timeout(Some(SEND_TIME))?;
            socket.connect(to)?;
            Ok(Connection::Udp(socket))
        }
        SyslogAddress::Tcp(host, port) => {
            let stream = TcpStream::connect_timeout(&resolve(host, *port)?, SEND_TIME)?;
            stream.set_write_timeout(Some(SEND_TIME))?;
            stream.set_nodelay(true)?;
            Ok(Connection::Tcp(stream))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this system has no such socket",
        )),
    }
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let none = || io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
    (host, port).to_socket_addrs()?.next().ok_or_else(none)
}

/// Fails if the other end has closed the stream: the first message after that would vanish without an error.
fn refuse_closed(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match peeked {
        Ok(0) => Err(io::ErrorKind::ConnectionReset.into()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

/// The name of this machine as a message may have it; `-` if it is not known.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(char::is_ascii_graphic).take(255).collect();
    match name.is_empty() {
        true => "-".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, net::TcpListener};

    use super::*;

    #[test]
    fn a_message_has_the_header_of_the_standard() {
        let at = "2027-01-31T12:00:00Z".parse().unwrap();
        let sent = String::from_utf8(message("box", at, b"{}")).unwrap();
        let process = std::process::id();
        assert_eq!(
            sent,
            format!("<110>1 2027-01-31T12:00:00Z box pegboard {process} audit - {{}}")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_that_was_made_anew_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let listen = || std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::new(SyslogAddress::Unix(path.clone()));
        assert!(syslog.send([&b"{}"[..]].into_iter()).is_err(), "nothing listens");
        for _ in 0..2 {
            let socket = listen();
            syslog.send([&b"{\"a\":1}"[..], b"", b"{}"].into_iter()).unwrap();
            let mut read = [0; 1024];
            for end in ["- {\"a\":1}", "- {}"] {
                let length = socket.recv(&mut read).unwrap();
                let text = std::str::from_utf8(&read[..length]).unwrap();
                assert!(text.starts_with("<110>1 ") && text.ends_with(end), "{text}");
            }
            drop(socket);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_stream_has_the_length_before_each_message_and_is_opened_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut syslog = Syslog::new(SyslogAddress::Tcp(
            "127.0.0.1".to_owned(),
            listener.local_addr().unwrap().port(),
        ));
        for _ in 0..2 {
            syslog.send([&b"{}"[..]].into_iter()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut read = vec![0; 1024];
            let length = stream.read(&mut read).unwrap();
            let text = std::str::from_utf8(&read[..length]).unwrap();
            let (count, message) = text.split_once(' ').unwrap();
            assert_eq!(count.parse(), Ok(message.len()), "{text}");
            assert!(message.ends_with("audit - {}"), "{text}");
        }
    }

    #[test]
    fn datagrams_reach_an_address() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut syslog = Syslog::new(SyslogAddress::Udp(
            "127.0.0.1".to_owned(),
            socket.local_addr().unwrap().port(),
        ));
        syslog.send([&b"{}"[..]].into_iter()).unwrap();
        let mut read = [0; 1024];
        let length = socket.recv(&mut read).unwrap();
        assert!(read[..length].ends_with(b"audit - {}"));
    }
}
