//! The state of a server as callers see it. Each phase carries the data that exists in it and nothing else.

use std::{ops::Deref, sync::Arc, time::Duration};

use pegboard_base::timestamp::Timestamp;
use tokio::time::Instant;

use super::{
    link_usage::{KeepAlive, UseGuard},
    outage::{Cause, Outage},
};
use crate::status::{LastError, State};
use pegboard_client::session::Session;
use pegboard_tools::catalog::Catalog;

/// The state of a server as callers see it.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Disabled by its config or by an operator.
    Disabled,
    /// Not started yet, or stopped because it was idle.
    Idle,
    /// Starting. Callers wait.
    Connecting(Attempt),
    /// Ready for calls.
    Ready(Live),
    /// Unavailable. Calls fail at once, unless a call may start the server; the supervisor retries in the background.
    Down(Arc<Outage>),
    /// Closed with its board.
    Closed,
}

/// How long the last known tools of a server that is not ready stay listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Not,
    WhileItLasts,
    Until(Instant),
}

impl Kept {
    /// Whether they are listed now.
    pub(crate) fn is_listed(self) -> bool {
        match self {
            Self::Not => false,
            Self::WhileItLasts => true,
            Self::Until(end) => Instant::now() < end,
        }
    }
}

/// A start that callers wait for.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) since: Timestamp,
    /// The server's last outage, if there was one.
    pub(crate) after: Option<Arc<Outage>>,
    pub(crate) restarts: u32,
}

/// A ready server, as one call uses it. Every call clones it, so cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(super) ready: Arc<Ready>,
    /// The catalogue as agents see it, if it differs from the listed one: under another server name, or without what is held.
    exposed: Option<Arc<Catalog>>,
    /// Keeps the connection from being closed as idle. `None` in the published phase.
    use_guard: Option<Arc<UseGuard>>,
}

/// A ready server: its session and its catalogue.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) session: Arc<Session>,
    /// The catalogue under the name of the server that the link was created for. See [`Live::catalog`].
    pub(super) listed: Arc<Catalog>,
    /// When the catalogue expires, if the server sets a TTL.
    pub(crate) stale_at: Option<Instant>,
    /// The number of the session. A command that names an older session does not affect this one.
    pub(crate) generation: u64,
    /// Counts the listings of this session.
    pub(super) listing: u64,
    pub(crate) since: Timestamp,
    /// How long the start took, including the first listing.
    pub(crate) start: Duration,
    pub(crate) restarts: u32,
    /// The server's last outage before this session, if there was one.
    pub(crate) last_outage: Option<Arc<Outage>>,
}

impl Deref for Live {
    type Target = Ready;

    fn deref(&self) -> &Ready {
        &self.ready
    }
}

impl Live {
    pub(super) fn new(ready: Arc<Ready>) -> Self {
        Self {
            ready,
            exposed: None,
            use_guard: None,
        }
    }

    /// The server's catalogue.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.exposed.as_ref().unwrap_or(&self.ready.listed)
    }

    /// Replaces the catalogue by the one that agents see, if given.
    pub(super) fn with_exposed(self, exposed: Option<Arc<Catalog>>) -> Self {
        Self { exposed, ..self }
    }

    /// Attaches a use of the connection.
    pub(super) fn with_use(self, use_guard: Arc<UseGuard>) -> Self {
        Self {
            use_guard: Some(use_guard),
            ..self
        }
    }

    /// Keeps the connection from being closed as idle until the returned guard is dropped, across sessions.
    pub(crate) fn keep_alive(&self) -> Option<KeepAlive> {
        self.use_guard.as_ref().map(|use_guard| use_guard.keep_alive())
    }
}

impl Phase {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Disabled => State::Disabled,
            Self::Idle => State::Idle,
            Self::Connecting(_) => State::Connecting,
            Self::Ready(_) => State::Ready,
            Self::Down(outage) => match outage.cause {
                Cause::NeedsAuth => State::NeedsAuth,
                Cause::CrashLooping => State::CrashLooping,
                Cause::Disabled => State::Disabled,
                Cause::Misconfigured => State::Misconfigured,
                Cause::PendingTrust => State::PendingTrust,
                Cause::NotRequested => State::Idle,
                Cause::Closed => State::Closed,
                Cause::Failed | Cause::StillStarting | Cause::RestartFailed | Cause::Broken => State::Down,
            },
            Self::Closed => State::Closed,
        }
    }

    /// Whether the server waits for a sign-in or another credential, also while it is tried once more.
    #[cfg(feature = "oauth")]
    fn awaits_credentials(&self) -> bool {
        self.outage().is_some_and(|outage| outage.cause == Cause::NeedsAuth)
    }

    /// Whether the server waits for a sign-in, or is being started, maybe with the credential from before the sign-in.
    #[cfg(feature = "oauth")]
    pub(crate) fn may_await_sign_in(&self) -> bool {
        matches!(self, Self::Connecting(_)) || self.awaits_credentials()
    }

    /// Whether the server has no connection and makes none.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Whether the server waits for a sign-in, also while it is tried once more.
    pub(crate) fn awaits_sign_in(&self) -> bool {
        self.outage().is_some_and(|outage| outage.awaits_sign_in)
    }

    /// Why the server is not ready, also while it is tried once more.
    fn outage(&self) -> Option<&Outage> {
        match self {
            Self::Down(outage) => Some(outage),
            Self::Connecting(Attempt { after, .. }) => after.as_deref(),
            Self::Disabled | Self::Idle | Self::Ready(_) | Self::Closed => None,
        }
    }

    pub(crate) fn as_live(&self) -> Option<&Live> {
        match self {
            Self::Ready(live) => Some(live),
            Self::Disabled | Self::Idle | Self::Connecting(_) | Self::Down(_) | Self::Closed => None,
        }
    }

    /// Whether a call of one of the server's tools would reach it, or start it.
    pub(crate) fn is_offered(&self) -> bool {
        match self {
            Self::Ready(_) | Self::Idle => true,
            Self::Connecting(attempt) => attempt.after.is_none(),
            Self::Disabled | Self::Down(_) | Self::Closed => false,
        }
    }

    /// How long the last known tools of the server stay listed while it is not ready, in views that ask for that.
    pub(crate) fn keeps_listing(&self) -> Kept {
        let of_outage = |outage: &Outage| outage.kept_until().map_or(Kept::Not, Kept::Until);
        match self {
            Self::Idle | Self::Connecting(Attempt { after: None, .. }) => Kept::WhileItLasts,
            // It may have needed a sign-in.
            Self::Connecting(Attempt {
                after: Some(outage), ..
            }) => match of_outage(outage) {
                Kept::Not => Kept::Not,
                Kept::Until(_) | Kept::WhileItLasts => Kept::WhileItLasts,
            },
            Self::Down(outage) => of_outage(outage),
            Self::Ready(_) | Self::Disabled | Self::Closed => Kept::Not,
        }
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Connecting(attempt) => Some(attempt.since),
            Self::Ready(live) => Some(live.since),
            Self::Down(outage) => Some(outage.began.wall_clock),
            Self::Disabled | Self::Idle | Self::Closed => None,
        }
    }

    /// The outage for a caller whose deadline passed before the server was ready.
    pub(super) fn overdue(&self) -> Outage {
        let mut outage = Outage::still_starting().after_restarts(self.restarts());
        if let Self::Connecting(Attempt {
            after: Some(before), ..
        }) = self
        {
            outage.message = format!("{}; the attempt before failed: {}", outage.message, before.message);
            outage.hint = before.hint.clone().or(outage.hint);
        }
        outage
    }

    pub(super) fn restarts(&self) -> u32 {
        match self {
            Self::Connecting(attempt) => attempt.restarts,
            Self::Ready(live) => live.restarts,
            Self::Down(outage) => outage.restarts,
            Self::Disabled | Self::Idle | Self::Closed => 0,
        }
    }

    /// The current error, or the last one of a server that has recovered.
    pub(super) fn last_error(&self, server: &str) -> Option<LastError> {
        let outage = match self {
            Self::Down(outage) => outage.as_ref(),
            Self::Connecting(attempt) => attempt.after.as_deref()?,
            Self::Ready(live) => live.last_outage.as_deref()?,
            Self::Disabled | Self::Idle | Self::Closed => return None,
        };
        Some(LastError {
            message: outage.message.clone(),
            hint: outage.hint.clone(),
            at: outage.at,
            stderr: outage.stderr.clone(),
            code: Some(outage.diagnosis_code()),
            call: None,
            diagnosis: Some(Box::new(outage.diagnosis(server))),
        })
    }
}
