//! Commands to a supervisor.

/// A command to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Command {
    /// Start the server, because a caller needs it.
    Start,
    /// Replace the session of this generation, because it is unusable.
    Replace(u64),
    /// Probe the session of this generation, because it may be dead.
    Suspect(u64),
    /// Probe the session of this generation, because the server has refused its credential.
    Refused(u64),
    /// List the server again.
    Refresh,
    /// Restart the server in any state.
    Reconnect,
}
