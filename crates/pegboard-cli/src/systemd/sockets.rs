//! The listening sockets that systemd opened for this process, as a `.socket` unit asks for.

use std::{fs, net::TcpListener};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{
        SocketType,
        sockopt::{socket_acceptconn, socket_type},
    },
};

/// The first descriptor that is passed.
const FIRST: u32 = 3;

/// The most sockets that are taken. A unit that lists more is a mistake.
const MAX: u32 = 64;

/// The TCP listeners that were passed to this process. `None` if none were, or if they are for another process.
pub(crate) fn passed_listeners() -> Result<Option<Vec<TcpListener>>, String> {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(count) = count(variable("LISTEN_PID").as_deref(), variable("LISTEN_FDS").as_deref())? else {
        return Ok(None);
    };
    // Before they are taken over, which supposes that they are open.
    for descriptor in FIRST..FIRST + count {
        let target = fs::read_link(format!("/proc/self/fd/{descriptor}"))
            .map_err(|error| format!("descriptor {descriptor} of LISTEN_FDS cannot be used: {error}"))?;
        if !target.to_string_lossy().starts_with("socket:") {
            return Err(format!("descriptor {descriptor} of LISTEN_FDS is not a socket"));
        }
    }
    let passed = sd_listen_fds::get().map_err(|error| error.to_string())?;
    let listeners = passed.into_iter().map(|(name, descriptor)| {
        let name = name.unwrap_or_else(|| "without a name".to_owned());
        listener(descriptor.into()).map_err(|problem| format!("the socket {name} of LISTEN_FDS {problem}"))
    });
    listeners.collect::<Result<Vec<_>, _>>().map(Some)
}

/// How many sockets are for this process.
fn count(pid: Option<&str>, count: Option<&str>) -> Result<Option<u32>, String> {
    let (Some(pid), Some(count)) = (pid, count) else {
        return Ok(None);
    };
    // A server that another service started has variables that are not its own.
    if pid.parse() != Ok(std::process::id()) {
        return Ok(None);
    }
    match count.parse() {
        Ok(0) => Ok(None),
        Ok(count) if count <= MAX => Ok(Some(count)),
        _ => Err(format!(
            "LISTEN_FDS is `{}`: write a number up to {MAX}",
            count.escape_debug()
        )),
    }
}

/// Checks that a socket is a TCP listener, and keeps it from the programs that this process starts.
fn listener(listener: TcpListener) -> Result<TcpListener, String> {
    let failed = |error: std::io::Error| format!("cannot be used: {error}");
    fcntl_setfd(&listener, FdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let is_stream = socket_type(&listener) == Ok(SocketType::STREAM);
    // A socket of another family has no address of this kind.
    if !is_stream || listener.local_addr().is_err() || socket_acceptconn(&listener) != Ok(true) {
        return Err("is not a TCP socket that listens; use `ListenStream=` with an address and a port".to_owned());
    }
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::OwnedFd, unix::net::UnixListener};

    use super::*;

    #[test]
    fn sockets_of_another_process_are_left_alone() {
        let own = std::process::id().to_string();
        for (pid, fds, expected) in [
            (None, None, Ok(None)),
            (None, Some("1"), Ok(None)),
            (Some("1"), Some("1"), Ok(None)),
            (Some("x"), Some("1"), Ok(None)),
            (Some(own.as_str()), None, Ok(None)),
            (Some(own.as_str()), Some("0"), Ok(None)),
            (Some(own.as_str()), Some("2"), Ok(Some(2))),
            (Some(own.as_str()), Some("64"), Ok(Some(64))),
        ] {
            assert_eq!(count(pid, fds), expected, "{pid:?} {fds:?}");
        }
        for fds in ["65", "-1", "many", "99999999999", ""] {
            assert!(count(Some(&own), Some(fds)).unwrap_err().contains("up to 64"), "{fds}");
        }
    }

    #[test]
    fn only_tcp_sockets_that_listen_are_taken() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        assert_eq!(listener(tcp).unwrap().local_addr().unwrap(), address);
        let folder = tempfile::tempdir().unwrap();
        let unix = UnixListener::bind(folder.path().join("socket")).unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = std::net::TcpStream::connect(listening.local_addr().unwrap()).unwrap();
        for other in [OwnedFd::from(unix), OwnedFd::from(udp), OwnedFd::from(connected)] {
            assert!(listener(other.into()).unwrap_err().contains("not a TCP socket"));
        }
    }
}
