//! Makes this process the daemon of its config, or says why it cannot be.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pegboard_gateway::Listeners;
use tokio::{net::UnixListener, time::Instant};

use super::{
    call_slots::CallsInFlight,
    client::{Greeting, greet},
    folder::{self, FolderError},
    identity::Identity,
    journal::Untold,
    lock::{GAVE_WAY, Holder, Lock, is_free, serve_at},
    socket::{DaemonSocket, SocketError, lock_path, socket_path},
    stop::{STOP_TIME, ask_to_end},
};
use crate::{exit::Exit, settings::Complaint};

/// What helps if another daemon is there that a user has started.
const TAKEN: &str = "`pegboard daemon status` shows it and `pegboard daemon stop --yes` ends it; `--no-socket` starts another one beside it";

/// What helps if the socket is in the way.
const NO_SOCKET: &str = "`--no-socket` serves without the socket that the commands of this user use";

/// How often a place that becomes free is tried.
const POLL: Duration = Duration::from_millis(5);

/// How long a daemon at the place may take to say who it is.
const HELLO_TIME: Duration = Duration::from_secs(2);

/// How a process claims the place of a daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Claim {
    /// A user has started it. A daemon in the background ends for it.
    User,
    /// A command or a host has started it in the background. It takes the place of the process `replaces`, and leaves it to any other.
    Background { replaces: Option<u32> },
}

impl Claim {
    /// What the lock says of the process.
    fn holder(self) -> Holder {
        match self {
            Self::User => Holder::Serve,
            Self::Background { .. } => Holder::Other,
        }
    }

    /// Whether another process takes the place, which this one leaves to it: that may be of a newer program.
    fn gives_way(self, identity: &Identity) -> bool {
        let Self::Background { replaces: None } = self else {
            return false;
        };
        folder::open(false).is_ok_and(|folder| !is_free(&turn_path(&folder, identity)))
    }
}

/// The lock of the process that takes the place of another.
fn turn_path(folder: &Path, identity: &Identity) -> PathBuf {
    folder.join(format!("{identity}.next"))
}

/// The place of this daemon, and its socket.
#[derive(Debug)]
pub(crate) struct Occupied {
    place: DaemonSocket,
    socket: UnixListener,
    journal: Option<(CallsInFlight, Arc<Untold>)>,
}

/// Why this process does without a socket.
#[derive(Debug)]
pub(crate) enum NotOccupied {
    /// Something is wrong that the user must decide about.
    Refused(Complaint),
    /// There is no room for a socket here.
    Impossible(String),
}

/// Becomes the daemon with this identity: takes its lock and its socket. Calls `tell` with a message if another daemon is ended for that.
pub(crate) async fn occupy(identity: &Identity, claim: Claim, tell: impl Fn(String)) -> Result<Occupied, NotOccupied> {
    let until = Instant::now() + STOP_TIME;
    let mut succession = Succession::default();
    loop {
        if claim.gives_way(identity) && Instant::now() < until {
            tokio::time::sleep(POLL).await;
            continue;
        }
        match DaemonSocket::take(identity, claim.holder()) {
            Ok((place, socket)) => return Ok(Occupied::new(place, socket)),
            Err(SocketError::Taken(holder))
                if Instant::now() < until && succession.goes_on(identity, holder, claim, &tell).await =>
            {
                tokio::time::sleep(POLL).await;
            }
            Err(error) => {
                let is_serve =
                    folder::open(false).is_ok_and(|folder| serve_at(&lock_path(&folder, identity)).is_some());
                return Err(NotOccupied::new(error, claim, is_serve));
            }
        }
    }
}

/// The wait of one process for the place of another.
#[derive(Default)]
struct Succession {
    /// Makes this process the only one that asks the holder to end, which a second time would hurry it.
    turn: Option<Lock>,
    /// The process that was asked to end.
    asked: Option<u32>,
}

impl Succession {
    /// Whether to wait on, because the process at the place is ending. It is asked to if it must end for this one.
    async fn goes_on(
        &mut self,
        identity: &Identity,
        holder: Option<u32>,
        claim: Claim,
        tell: &impl Fn(String),
    ) -> bool {
        let Ok(folder) = folder::open(false) else { return false };
        if holder.is_some() && holder == self.asked {
            return true;
        }
        let socket = socket_path(&folder, identity);
        let is_replaced = match tokio::time::timeout(HELLO_TIME, greet(&socket)).await {
            // It starts or ends.
            Ok(Greeting::Nothing) => return true,
            Ok(Greeting::Daemon(daemon)) => match claim {
                Claim::User => daemon.hello.background && holder == Some(daemon.pid()),
                Claim::Background { replaces } => replaces.is_some() && replaces == holder,
            },
            Ok(Greeting::Refused) | Err(_) => {
                matches!(claim, Claim::Background { replaces } if replaces.is_some() && replaces == holder)
            }
        };
        let Some(holder) = holder.filter(|_| is_replaced) else {
            return false;
        };
        if self.turn.is_none() {
            self.turn = Lock::take(&turn_path(&folder, identity), Holder::Other).ok();
        }
        if self.turn.is_some() && ask_to_end(holder).is_ok() {
            self.asked = Some(holder);
            tell(format!(
                "the daemon in the background (process {holder}) ends for this one"
            ));
        }
        true
    }
}

impl NotOccupied {
    /// Why the place is not taken. `is_serve` says that its holder is a `pegboard serve`.
    fn new(error: SocketError, claim: Claim, is_serve: bool) -> Self {
        let refused = |message: String, hint: &str| {
            Self::Refused(Complaint {
                message,
                hint: Some(hint.to_owned()),
                exit: Exit::Usage,
            })
        };
        match error {
            SocketError::Taken(holder) => {
                let holder = holder.map_or_else(String::new, |pid| format!(": process {pid}"));
                let what = if is_serve {
                    "a gateway (`pegboard serve`)"
                } else {
                    "a daemon"
                };
                let message = format!("{what} serves this config already{holder}");
                match claim {
                    Claim::User => refused(message, TAKEN),
                    Claim::Background { .. } => Self::Refused(Complaint {
                        message,
                        hint: None,
                        exit: GAVE_WAY,
                    }),
                }
            }
            SocketError::Folder(FolderError::Unsafe(why)) => {
                refused(format!("the folder for the socket is not safe: {why}"), NO_SOCKET)
            }
            SocketError::Io(path, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused(format!("{} cannot be used: {error}", path.display()), NO_SOCKET)
            }
            SocketError::Folder(FolderError::Missing(why)) => Self::Impossible(why),
            SocketError::Io(path, error) => Self::Impossible(format!("{} cannot be used: {error}", path.display())),
        }
    }
}

impl Occupied {
    fn new(mut place: DaemonSocket, socket: UnixListener) -> Self {
        let opened = place.open_journal();
        let journal = opened.inspect_err(|error| tracing::warn!(%error, "calls in flight cannot be noted"));
        Self {
            place,
            socket,
            journal: journal.ok(),
        }
    }

    /// The path of the socket.
    pub(crate) fn path(&self) -> &Path {
        self.place.socket()
    }

    /// The journal of this daemon, and the calls that earlier ones did not finish.
    pub(crate) fn take_journal(&mut self) -> Option<(CallsInFlight, Arc<Untold>)> {
        self.journal.take()
    }

    /// Adds the socket to what a gateway listens on. The place must be kept as long as the gateway serves.
    pub(crate) fn listen(self, listeners: Listeners) -> (DaemonSocket, Listeners) {
        (self.place, DaemonSocket::add_to(listeners, self.socket))
    }
}
