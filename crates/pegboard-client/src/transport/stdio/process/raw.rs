//! [`RawProcess`]: a server's process with raw pipes, for programs that test servers.

use std::{fmt, io, process::ExitStatus, time::Duration};

use super::{ChildProcess, Pipes, SpawnError, descendants::Descendants};
use pegboard_config::Command;

/// A server's process, started like that of a connection, below the guard if there is one. It is not watched, and its descendants stay when
/// it exits, so that a test can find them. Dropping this kills all of them.
pub struct RawProcess {
    child: ChildProcess,
    pid: u32,
}

impl RawProcess {
    /// Spawns the program.
    pub async fn spawn(command: &Command) -> Result<(Self, Pipes), SpawnError> {
        // It is only ever killed, so there is no grace period.
        let (child, pipes) = ChildProcess::spawn(command, Duration::ZERO, Descendants::Keep).await?;
        let pid = child.pid();
        Ok((Self { child, pid }, pipes))
    }

    /// The id of the server's own process, which leads a process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until the server's own process exits. Cancel-safe.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            ChildProcess::Unguarded(child) => child.exited().await,
            #[cfg(target_os = "linux")]
            ChildProcess::Guarded(server) => {
                let exited = server.exited().await;
                exited.map_err(|why| io::Error::other(why.to_string()))
            }
        }
    }

    /// The ids of its processes that are running: its own and its descendants, whatever session or parent they have meanwhile.
    #[cfg(target_os = "linux")]
    pub fn processes(&self) -> Vec<u32> {
        match &self.child {
            ChildProcess::Unguarded(child) => child.tree().pids(),
            ChildProcess::Guarded(server) => server.processes().iter().map(|process| process.pid).collect(),
        }
    }
}

impl Drop for RawProcess {
    fn drop(&mut self) {
        // The guard would kill it only after this returns, and the next process of the server may need its files and ports.
        #[cfg(target_os = "linux")]
        if let ChildProcess::Guarded(server) = &self.child {
            server.kill();
        }
    }
}

impl fmt::Debug for RawProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawProcess")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
