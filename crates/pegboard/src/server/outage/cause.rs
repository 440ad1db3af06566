//! [`Cause`]: the kind of an outage.

/// The kind of an outage. It decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The start failed and is retried.
    Failed,
    /// The start takes longer than callers wait. It continues in the background.
    StillStarting,
    /// The session was lost and a restart failed.
    RestartFailed,
    /// The server crashes repeatedly and is restarted rarely.
    CrashLooping,
    /// The server requires authentication.
    NeedsAuth,
    /// The config or the server must change before a retry helps. It is retried rarely.
    Broken,
    /// The config is invalid, so the server was never started.
    Misconfigured,
    /// The project file of the server is not approved, so the server was never started.
    PendingTrust,
    /// The config says `start = "explicit"`, and the program has not connected the server.
    NotRequested,
    /// Disabled by its config or by an operator.
    Disabled,
    /// The board is closed.
    Closed,
}
