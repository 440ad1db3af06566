//! Makes this process the daemon of its config, or says why it cannot be.

use std::{io, path::Path, sync::Arc};

use pegboard_gateway::Listeners;
use tokio::net::UnixListener;

use super::{
    call_slots::CallsInFlight,
    folder::FolderError,
    identity::Identity,
    journal::Untold,
    socket::{DaemonSocket, SocketError},
};
use crate::{exit::Exit, settings::Complaint};

/// What helps if the socket is in the way.
const NO_SOCKET: &str = "`--no-socket` serves without the socket that the commands of this user use";

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

/// Takes the place of the daemon with this identity.
pub(crate) fn occupy(identity: &Identity) -> Result<Occupied, NotOccupied> {
    let refused = |message: String, hint: &str| {
        NotOccupied::Refused(Complaint {
            message,
            hint: Some(hint.to_owned()),
            exit: Exit::Usage,
        })
    };
    match DaemonSocket::take(identity) {
        Ok((mut place, socket)) => {
            let opened = place.open_journal();
            let journal = opened.inspect_err(|error| tracing::warn!(%error, "calls in flight cannot be noted"));
            Ok(Occupied {
                place,
                socket,
                journal: journal.ok(),
            })
        }
        Err(SocketError::Taken(holder)) => {
            let holder = holder.map_or_else(String::new, |pid| format!(": process {pid}"));
            Err(refused(
                format!("a daemon serves this config already{holder}"),
                "`pegboard status` shows its servers; `--no-socket` starts another one beside it",
            ))
        }
        Err(SocketError::Folder(FolderError::Unsafe(why))) => Err(refused(
            format!("the folder for the socket is not safe: {why}"),
            NO_SOCKET,
        )),
        Err(SocketError::Io(path, error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            let message = format!("{} cannot be used: {error}", path.display());
            Err(refused(message, NO_SOCKET))
        }
        Err(SocketError::Folder(FolderError::Missing(why))) => Err(NotOccupied::Impossible(why)),
        Err(SocketError::Io(path, error)) => Err(NotOccupied::Impossible(format!(
            "{} cannot be used: {error}",
            path.display()
        ))),
    }
}

impl Occupied {
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
