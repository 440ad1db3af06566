//! The process that wants the server, watched for its end.
//!
//! Linux can send a signal when a parent ends, but it means the thread that started us, and threads of a runtime come
//! and go.

use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::net::unix::pipe;

/// How often the parent is looked for where the system cannot tell of its end.
const POLL: Duration = Duration::from_millis(200);

/// A living parent.
pub(super) struct Parent {
    pid: Pid,
    /// Readable once the process has ended. It is no pipe, but like one it can be waited on.
    end: Option<pipe::Receiver>,
}

impl Parent {
    /// The process `pid`, if it is still our parent.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let end = pidfd_open(pid, PidfdFlags::empty())
            .ok()
            .and_then(|end| pipe::Receiver::from_owned_fd_unchecked(end).ok());
        // Asked after it was opened: the id may have gone to another process before.
        (getppid() == Some(pid)).then_some(Self { pid, end })
    }

    /// Waits for its end.
    pub(super) async fn gone(&self) {
        if let Some(end) = &self.end
            && end.readable().await.is_ok()
        {
            return;
        }
        while getppid() == Some(self.pid) {
            tokio::time::sleep(POLL).await;
        }
    }
}
