//! A handle to one server below the guard.

use std::{
    io,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::process::ExitStatusExt as _,
    },
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{
    guard_connection::{GuardConnection, RESPONSE_TIMEOUT, ServerState, Spawned},
    guard_handle::GuardHandle,
    guard_protocol::Request,
    kill_timing::KILL_TIMEOUT,
    process_table::ProcessEntry,
    sandbox::SandboxReport,
    spawn_request::SpawnRequest,
};

/// How long killing the descendants of one server may take while the guard is busy with others.
const CLEAR_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a server was not started.
#[derive(Debug)]
pub(crate) enum SpawnFailure {
    /// The operating system reported an error.
    Os(io::Error),
    /// The guard failed or did not respond.
    Guard(String),
}

/// A handle to a server below a guard. The server and its descendants are killed if it is dropped before they have exited.
#[derive(Debug)]
pub(crate) struct ServerHandle {
    guard: Arc<GuardHandle>,
    id: u64,
    state: watch::Receiver<ServerState>,
    /// What the server's launcher reports about its sandbox, if it has one.
    sandbox: Option<SandboxReport>,
}

impl ServerHandle {
    /// Sends a guard the request to spawn a server with these streams, which the caller keeps open until [`started`](Self::started) returns.
    ///
    /// Blocks only while the socket to the guard is full, and at most for [`RESPONSE_TIMEOUT`].
    pub(crate) fn spawn(request: &SpawnRequest, streams: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let file = request.write()?;
        let [stdin, stdout, stderr] = streams;
        let files = [file.as_fd(), stdin, stdout, stderr];
        let (guard, (id, state)) = loop {
            let guard = GuardHandle::get_or_launch()?;
            if let Some(spawned) = guard.spawn(&files)? {
                break (guard, spawned);
            }
        };
        let sandbox = request.sandbox.as_ref();
        Ok(Self {
            guard,
            id,
            state,
            sandbox: sandbox.map(|plan| SandboxReport::new(plan.level, file)),
        })
    }

    /// What is reported about its sandbox, if it has one.
    pub(crate) fn sandbox(&self) -> Option<SandboxReport> {
        self.sandbox.clone()
    }

    /// Waits until the server is started, and returns its process. Returns `Ok(None)` if this guard accepts no more servers, so that the
    /// request has to be retried.
    pub(crate) async fn started(&mut self) -> Result<Option<ProcessEntry>, SpawnFailure> {
        let mut reports = self.connection().report_count();
        let state = loop {
            let reported = self
                .state
                .wait_for(|state| state.spawned.is_some() || state.exit.is_some());
            match timeout(RESPONSE_TIMEOUT, reported).await {
                Ok(Ok(state)) => break state.clone(),
                Ok(Err(_)) => return Err(SpawnFailure::Guard("its guard is gone".to_owned())),
                Err(_) => {}
            }
            // Reports about other servers show that the guard is only busy.
            let now = self.connection().report_count();
            if now == reports {
                self.guard.give_up();
                return Err(SpawnFailure::Guard("its guard does not answer".to_owned()));
            }
            reports = now;
        };
        match (state.spawned, state.exit) {
            (Some(Spawned::Started { process, is_tagged }), _) => {
                if !is_tagged {
                    GuardHandle::disable_sharing();
                    self.guard.retire();
                }
                Ok(Some(process))
            }
            (Some(Spawned::Failed { errno }), _) => Err(SpawnFailure::Os(io::Error::from_raw_os_error(errno))),
            (Some(Spawned::Refused), _) => {
                self.guard.retire();
                Ok(None)
            }
            (None, Some(Err(why))) => Err(SpawnFailure::Guard(why.to_string())),
            (None, _) => Err(SpawnFailure::Guard("its guard is confused".to_owned())),
        }
    }

    /// Waits until the server's own process exits. Returns its status, or why that is unknown.
    pub(crate) async fn exited(&mut self) -> Result<ExitStatus, Arc<str>> {
        match self.state.wait_for(|state| state.exit.is_some()).await {
            Ok(state) => match &state.exit {
                Some(Ok(status)) => Ok(ExitStatus::from_raw(*status)),
                Some(Err(why)) => Err(why.clone()),
                None => Err("it is not known how it ended".into()),
            },
            Err(_) => Err("its guard is gone".into()),
        }
    }

    /// Waits until all descendants are gone, or the guard gives up on them. Returns `false` if the guard does not report that in time.
    pub(crate) async fn cleared(&mut self) -> bool {
        let mut reports = self.connection().report_count();
        let deadline = Instant::now() + CLEAR_TIMEOUT;
        loop {
            let cleared = self.state.wait_for(|state| state.is_cleared);
            if timeout(KILL_TIMEOUT + RESPONSE_TIMEOUT, cleared).await.is_ok() {
                return true;
            }
            let now = self.connection().report_count();
            if now == reports || Instant::now() > deadline {
                return false;
            }
            reports = now;
        }
    }

    /// Sends SIGTERM to the server and its descendants. The guard kills those that are left after the grace period.
    pub(crate) fn stop(&self) {
        // If the guard does not read, the caller's timeout on the exit status notices.
        let _ = self.guard.send(&Request::Stop { id: self.id });
    }

    /// The running processes of the server. Blocks, because it scans the process table.
    pub(crate) fn processes(&self) -> Vec<ProcessEntry> {
        self.connection().server_processes(self.id)
    }

    /// Kills the server and its descendants now, while the guard goes on. Returns whether all are gone. Blocks, because it scans the
    /// process table.
    pub(crate) fn kill(&self) -> bool {
        self.connection().kill_server(self.id)
    }

    /// Prepares to kill the server without its guard.
    pub(crate) fn orphan_kill(&self) -> OrphanKill {
        self.guard.give_up();
        OrphanKill {
            connection: self.connection().clone(),
            id: self.id,
        }
    }

    fn connection(&self) -> &Arc<GuardConnection> {
        self.guard.connection()
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if !self.state.borrow().is_cleared && self.guard.send(&Request::Kill { id: self.id }).is_err() {
            self.orphan_kill().kill();
        }
    }
}

/// Kills a server whose guard does not respond.
pub(crate) struct OrphanKill {
    connection: Arc<GuardConnection>,
    id: u64,
}

impl OrphanKill {
    /// Kills the server and its descendants. Returns whether all are gone. Blocks, because it scans the process table.
    pub(crate) fn kill(&self) -> bool {
        self.connection.kill_server(self.id)
    }
}
