//! A handle to a guard process, and the choice of the guard for the next server.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use pegboard_base::sync::Mutex;
use tokio::sync::watch;

use super::{
    guard_connection::{GuardConnection, ServerState},
    guard_protocol::Request,
};

/// The guard that takes the next server. All boards of the process share it; it ends with its last server.
static CURRENT: Mutex<Weak<GuardHandle>> = Mutex::new(Weak::new());

/// Whether each server needs a guard of its own, because tags do not work on this system.
static IS_UNSHARED: AtomicBool = AtomicBool::new(false);

/// A handle to a guard process. The guard ends when the last server drops it.
#[derive(Debug)]
pub(super) struct GuardHandle {
    connection: Arc<GuardConnection>,
    /// Held while a spawn request is sent, because each tag must be lower than the one before.
    spawn_lock: Mutex<()>,
    /// Whether it accepts no more servers.
    is_retired: AtomicBool,
    /// Whether it failed to respond in time.
    is_unresponsive: AtomicBool,
}

impl GuardHandle {
    /// The guard for the next server.
    pub(super) fn get_or_launch() -> io::Result<Arc<Self>> {
        if IS_UNSHARED.load(Ordering::Relaxed) {
            return Self::launch();
        }
        let mut current = CURRENT.lock();
        if let Some(guard) = current.upgrade()
            && guard.accepts_servers()
        {
            return Ok(guard);
        }
        let guard = Self::launch()?;
        *current = Arc::downgrade(&guard);
        Ok(guard)
    }

    /// Starts a separate guard for each later server.
    pub(super) fn disable_sharing() {
        IS_UNSHARED.store(true, Ordering::Relaxed);
    }

    pub(super) fn connection(&self) -> &Arc<GuardConnection> {
        &self.connection
    }

    /// Starts a guard without waiting for it. The socket buffers requests until it reads them.
    fn launch() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            connection: GuardConnection::open(IS_UNSHARED.load(Ordering::Relaxed))?,
            spawn_lock: Mutex::default(),
            is_retired: AtomicBool::new(false),
            is_unresponsive: AtomicBool::new(false),
        }))
    }

    /// Sends a request. Fails with `WouldBlock` if the guard does not read.
    pub(super) fn send(&self, request: &Request) -> io::Result<()> {
        self.connection.send(request, &[])
    }

    /// Sends a spawn request. Returns `None` if this guard accepts no more servers.
    pub(super) fn spawn(&self, files: &[BorrowedFd<'_>]) -> io::Result<Option<(u64, watch::Receiver<ServerState>)>> {
        let _lock = self.spawn_lock.lock();
        if !self.accepts_servers() {
            return Ok(None);
        }
        let (id, tag, state) = self.connection.register();
        let sent = self.connection.send_blocking(&Request::Start { id, tag }, files);
        if sent.is_err() {
            self.connection.unregister(id);
        }
        match sent {
            // It has exited; the reader thread may not have noticed yet.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.retire();
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.give_up();
                Err(io::Error::new(io::ErrorKind::TimedOut, "its guard does not answer"))
            }
            sent => sent.map(|()| Some((id, state))),
        }
    }

    fn accepts_servers(&self) -> bool {
        !self.connection.is_gone() && !self.is_retired.load(Ordering::Relaxed)
    }

    /// Stops accepting servers. Later ones get another guard.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Retires the guard because it does not respond.
    pub(super) fn give_up(&self) {
        self.retire();
        self.is_unresponsive.store(true, Ordering::Relaxed);
    }
}

impl Drop for GuardHandle {
    fn drop(&mut self) {
        self.connection.shut_down();
        // It may have been stopped by SIGSTOP. It is not killed: it may only be slow, and it kills the remaining processes even after this
        // program ends.
        if self.is_unresponsive.load(Ordering::Relaxed) {
            self.connection.resume_guard();
        }
    }
}
