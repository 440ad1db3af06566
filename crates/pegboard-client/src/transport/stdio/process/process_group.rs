//! Process trees on systems without `/proc`: a server's process and its process group.

use crate::transport::stdio::environment::Environment;

/// Descendants cannot be tagged here.
pub(super) struct TreeTag;

pub(super) fn tag(_environment: &mut Environment) -> TreeTag {
    TreeTag
}

/// A server's process and its group.
#[derive(Debug, Clone)]
pub(super) struct ProcessTree {
    pid: u32,
}

impl ProcessTree {
    /// The tree of a child that leads a process group.
    pub(super) fn new(pid: u32, _tag: TreeTag) -> Self {
        Self { pid }
    }

    #[expect(clippy::unused_self, reason = "there is more to do on Linux")]
    pub(super) fn remember(&mut self) {}

    /// Whether the server's own process may be exiting. That is unknown here.
    #[expect(clippy::unused_self, reason = "there is more to tell on Linux")]
    pub(super) fn is_exiting(&self) -> bool {
        true
    }

    /// Sends SIGTERM to the process group.
    pub(super) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the process group. On Windows only the child itself is killed, through its handle.
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            // Fails only if the group is already gone.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}
