//! Watches the parent process of the guard for its exit.
//!
//! Linux can send a signal when a parent exits, but it does so when the spawning thread exits, and threads of a runtime come and go.

use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::net::unix::pipe;

/// How often the parent is polled where pidfds are not supported.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The parent process.
pub(super) struct Parent {
    pid: Pid,
    /// A pidfd, readable once the process has exited. tokio polls it like a pipe.
    pidfd: Option<pipe::Receiver>,
}

impl Parent {
    /// The process `pid`, if it is still our parent.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .ok()
            .and_then(|pidfd| pipe::Receiver::from_owned_fd_unchecked(pidfd).ok());
        // Checked after the open: before it, the pid may have been reused.
        (getppid() == Some(pid)).then_some(Self { pid, pidfd })
    }

    /// Waits until it has exited.
    pub(super) async fn gone(&self) {
        if let Some(pidfd) = &self.pidfd
            && pidfd.readable().await.is_ok()
        {
            return;
        }
        while getppid() == Some(self.pid) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
