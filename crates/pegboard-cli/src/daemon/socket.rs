//! [`DaemonSocket`]: what a daemon occupies for its identity: a lock, and a socket that its clients connect to.

use std::{
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixListener as StdListener},
    path::{Path, PathBuf},
    sync::Arc,
};

use pegboard_gateway::Listeners;
use tokio::net::UnixListener;

use super::{
    call_slots::CallsInFlight,
    folder::{self, FolderError, user},
    identity::Identity,
    journal::{Untold, journal_path, open_journal},
    lock::{FileId, Holder, Lock, LockError, last_serve},
};

/// The longest path of a socket that all systems take.
const MAX_PATH: usize = 103;

/// The place of a running daemon. The socket is removed when this is dropped; the lock is freed by the end of the process in any case. What
/// another daemon has put into the place of removed files stays.
#[derive(Debug)]
pub(crate) struct DaemonSocket {
    socket: PathBuf,
    /// The file of the socket that this daemon has made.
    made: Option<FileId>,
    lock_path: PathBuf,
    journal: PathBuf,
    untold: Option<Arc<Untold>>,
    lock: Lock,
}

/// Why a daemon cannot take its place.
#[derive(Debug)]
pub(crate) enum SocketError {
    /// Another daemon serves the same config: the process with this id, if it is known.
    Taken(Option<u32>),
    Folder(FolderError),
    Io(PathBuf, io::Error),
}

impl DaemonSocket {
    /// Takes the place of a daemon, and returns the listener for its clients. What a daemon that was killed left there is removed.
    pub(super) fn take(identity: &Identity, holder_is: Holder) -> Result<(Self, UnixListener), SocketError> {
        let folder = folder::open(true).map_err(SocketError::Folder)?;
        let path = lock_path(&folder, identity);
        let lock = Lock::take(&path, holder_is).map_err(|error| match error {
            LockError::Held(pid) => SocketError::Taken(pid),
            LockError::Io(error) => SocketError::Io(path.clone(), error),
        })?;
        let socket = socket_path(&folder, identity);
        let listener = listen(&socket).map_err(|error| SocketError::Io(socket.clone(), error))?;
        let journal = journal_path(&folder, identity);
        let place = Self {
            made: FileId::at(&socket),
            socket,
            lock_path: path,
            journal,
            untold: None,
            lock,
        };
        Ok((place, listener))
    }

    /// Opens the journal, and returns the calls that earlier daemons did not finish.
    pub(super) fn open_journal(&mut self) -> io::Result<(CallsInFlight, Arc<Untold>)> {
        let (journal, untold) = open_journal(&self.journal)?;
        let untold = self.untold.insert(Arc::new(untold)).clone();
        Ok((journal, untold))
    }

    /// The path of the socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether commands still find this daemon. If its lock or its socket was removed, they start another one.
    pub(crate) fn is_there(&self) -> bool {
        self.lock.is_at(&self.lock_path) && self.is_own_socket()
    }

    fn is_own_socket(&self) -> bool {
        self.made.is_some() && FileId::at(&self.socket) == self.made
    }

    /// Adds the socket to what a gateway listens on.
    pub(crate) fn add_to(listeners: Listeners, socket: UnixListener) -> Listeners {
        listeners.local(socket, user())
    }
}

impl Drop for DaemonSocket {
    fn drop(&mut self) {
        if self.is_own_socket() {
            let _ = fs::remove_file(&self.socket);
        }
        if !self.lock.is_at(&self.lock_path) {
            return;
        }
        // Every call has ended, and its caller was told how. What an earlier daemon left behind stays until it is shown.
        if !self.untold.as_ref().is_some_and(|untold| untold.must_stay()) {
            let _ = fs::remove_file(&self.journal);
        }
    }
}

/// The path of the socket of a daemon.
pub(super) fn socket_path(folder: &Path, identity: &Identity) -> PathBuf {
    folder.join(format!("{identity}.sock"))
}

/// The path of the lock of a daemon.
pub(super) fn lock_path(folder: &Path, identity: &Identity) -> PathBuf {
    folder.join(format!("{identity}.lock"))
}

/// The `pegboard serve` that was at a place and did not stop by itself: it has left its socket there. No other daemon has been there since.
pub(super) fn killed_serve(folder: &Path, identity: &Identity) -> Option<u32> {
    let is_left = socket_path(folder, identity).exists();
    is_left.then(|| last_serve(&lock_path(folder, identity))).flatten()
}

/// Listens on a socket that only the user may connect to. The caller holds the lock, so a socket that is there belongs to no daemon.
fn listen(path: &Path) -> io::Result<UnixListener> {
    if path.as_os_str().len() > MAX_PATH {
        let message = format!("its path has more than {MAX_PATH} bytes; set XDG_RUNTIME_DIR to a shorter one");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = StdListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}
