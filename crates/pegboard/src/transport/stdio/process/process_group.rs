//! A server's process and its group: all that can be known of it where there is no list of processes.

use super::Environment;

/// Nothing to know its members by.
pub(super) struct Mark;

pub(super) fn mark(_environment: &mut Environment) -> Mark {
    Mark
}

/// A server's process and its group.
#[derive(Debug, Clone)]
pub(super) struct ProcessTree {
    pid: u32,
}

impl ProcessTree {
    /// The family of a child that leads a group.
    pub(super) fn of(pid: u32, _mark: Mark) -> Self {
        Self { pid }
    }

    #[expect(clippy::unused_self, reason = "there is more to do on Linux")]
    pub(super) fn remember(&mut self) {}

    /// Whether the server's own process is known to be about to end.
    #[expect(clippy::unused_self, reason = "there is more to tell on Linux")]
    pub(super) fn is_ending(&self) -> bool {
        true
    }

    /// Asks it to end.
    pub(super) fn ask(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills all of it. On Windows the handle of the child does so for the child itself.
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            // The only likely error is that the group is gone already.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}
