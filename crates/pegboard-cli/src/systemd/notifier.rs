//! [`Notifier`]: tells systemd how the service is, over the datagram socket that `NOTIFY_SOCKET` names.

use std::{
    ffi::{OsStr, OsString},
    future::pending,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// How long the threads of the runtime may take to run a task before the watchdog is left unfed.
const TURN: Duration = Duration::from_secs(5);

/// The shortest interval of the watchdog that is honoured. A shorter one is a mistake, and would keep a processor busy.
const SHORTEST: Duration = Duration::from_millis(100);

/// Tells systemd how the service is. Without systemd it tells nothing.
#[derive(Debug)]
pub(crate) struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// Half of the time after which systemd ends a service that does not feed its watchdog.
    watchdog: Option<Duration>,
}

/// The variables by which systemd says what it wants to be told.
#[derive(Debug, Default)]
struct NotifyVariables {
    socket: Option<OsString>,
    watchdog_usec: Option<OsString>,
    watchdog_pid: Option<OsString>,
}

impl Notifier {
    /// The notifier that the environment of this process asks for.
    pub(crate) fn from_environment() -> Self {
        Self::new(&NotifyVariables {
            socket: std::env::var_os("NOTIFY_SOCKET"),
            watchdog_usec: std::env::var_os("WATCHDOG_USEC"),
            watchdog_pid: std::env::var_os("WATCHDOG_PID"),
        })
    }

    fn new(wanted: &NotifyVariables) -> Self {
        let socket = wanted.socket.as_deref().filter(|name| !name.is_empty());
        let socket = socket.and_then(|name| {
            open(name)
                .inspect_err(|error| tracing::warn!(%error, "the socket in NOTIFY_SOCKET cannot be used"))
                .ok()
        });
        Self {
            watchdog: socket.as_ref().and_then(|_| wanted.watchdog()),
            socket,
        }
    }

    /// Says that clients can connect, and what is served.
    pub(crate) fn ready(&self, status: &str) {
        let status = status.replace('\n', " ");
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Says that the config is being reloaded. [`Self::reloaded`] must follow.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Says that the reload is over.
    pub(crate) fn reloaded(&self) {
        self.send("READY=1");
    }

    /// Says that the service ends.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=answering the requests in flight");
    }

    /// Feeds the watchdog, if there is one, as long as the caller's task is polled and the runtime runs tasks.
    pub(crate) async fn feed_watchdog(&self) {
        let Some(interval) = self.watchdog else {
            return pending().await;
        };
        loop {
            if tokio::time::timeout(TURN, tokio::spawn(async {})).await.is_ok() {
                self.send("WATCHDOG=1");
            }
            tokio::time::sleep(interval).await;
        }
    }

    /// Sends a notification. One that systemd has no room for is lost: it must not hold up the service.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::debug!(%error, "systemd was not notified");
        }
    }
}

impl NotifyVariables {
    fn watchdog(&self) -> Option<Duration> {
        let number = |text: &OsString| text.to_str()?.parse::<u64>().ok();
        let is_ours = match &self.watchdog_pid {
            Some(pid) => number(pid) == Some(u64::from(std::process::id())),
            None => true,
        };
        let limit = self
            .watchdog_usec
            .as_ref()
            .and_then(number)
            .filter(|limit| *limit > 0)?;
        is_ours.then(|| (Duration::from_micros(limit) / 2).max(SHORTEST))
    }
}

/// Opens a socket to send from, and parses the address to send to: a path, or an abstract name after `@`.
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::other("it must be an absolute path or begin with @")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A notifier, and the socket of a systemd that reads what it says.
    fn listened_to(watchdog_usec: Option<&str>, watchdog_pid: Option<u32>) -> (Notifier, UnixDatagram) {
        let name = format!(
            "pegboard-notifier-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        manager.set_nonblocking(true).unwrap();
        let notifier = Notifier::new(&NotifyVariables {
            socket: Some(format!("@{name}").into()),
            watchdog_usec: watchdog_usec.map(Into::into),
            watchdog_pid: watchdog_pid.map(|pid| pid.to_string().into()),
        });
        (notifier, manager)
    }

    fn read(manager: &UnixDatagram) -> Option<String> {
        let mut buffer = [0; 1024];
        let length = manager.recv(&mut buffer).ok()?;
        Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
    }

    #[test]
    fn each_state_is_one_datagram() {
        let (notifier, manager) = listened_to(None, None);
        notifier.ready("serving\n2 servers");
        assert_eq!(read(&manager).unwrap(), "READY=1\nSTATUS=serving 2 servers");
        notifier.reloading();
        let message = read(&manager).unwrap();
        let micros: u64 = message
            .strip_prefix("RELOADING=1\nMONOTONIC_USEC=")
            .unwrap()
            .parse()
            .unwrap();
        assert!(micros > 0);
        notifier.reloaded();
        assert_eq!(read(&manager).unwrap(), "READY=1");
        notifier.stopping();
        assert!(read(&manager).unwrap().starts_with("STOPPING=1\n"));
        assert_eq!(read(&manager), None);
    }

    #[test]
    fn without_a_usable_socket_nothing_is_said() {
        for name in [None, Some(""), Some("relative"), Some("/nonexistent/socket")] {
            let notifier = Notifier::new(&NotifyVariables {
                socket: name.map(Into::into),
                ..NotifyVariables::default()
            });
            notifier.ready("x");
            notifier.stopping();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_at_half_of_its_time() {
        let (notifier, manager) = listened_to(Some("2000000"), Some(std::process::id()));
        let fed = tokio::time::timeout(Duration::from_millis(3500), notifier.feed_watchdog()).await;
        assert!(fed.is_err());
        let messages: Vec<String> = std::iter::from_fn(|| read(&manager)).collect();
        assert_eq!(messages, ["WATCHDOG=1"; 4]);
    }

    #[test]
    fn a_watchdog_of_another_process_is_not_fed() {
        assert_eq!(listened_to(Some("2000000"), Some(1)).0.watchdog, None);
        assert_eq!(listened_to(Some("0"), None).0.watchdog, None);
        assert_eq!(listened_to(Some("soon"), None).0.watchdog, None);
        assert_eq!(listened_to(Some("1"), None).0.watchdog, Some(SHORTEST));
        assert_eq!(listened_to(None, None).0.watchdog, None);
    }
}
