//! Where a server's life stands, as callers see it. Each phase carries what exists in it and nothing else.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    catalog::Catalog,
    hint::Hint,
    session::{ConnectError, FaultKind, Session},
    status::{LastError, State},
    transport::{EndReason, WireEnd},
};

/// Where a server's life stands.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Switched off by its config.
    Disabled,
    /// Not asked for yet.
    Idle,
    /// Being started, for the n-th time.
    Connecting(Attempt),
    /// Ready for calls.
    Ready(Live),
    /// Not to be reached.
    Down(Outage),
    /// Closed with its board.
    Closed,
}

/// A start that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) since: Timestamp,
}

/// A server that is ready: the way to it and what it offers.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) session: Arc<Session>,
    pub(crate) catalog: Arc<Catalog>,
    /// Which start it is of.
    pub(crate) attempt: Attempt,
}

/// Why a server cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) stderr: Option<String>,
    pub(crate) needs_auth: bool,
    pub(crate) timed_out: bool,
    /// Which start it is of.
    pub(crate) attempt: u64,
    pub(crate) since: Timestamp,
}

impl Outage {
    fn new(message: impl Into<String>, attempt: u64) -> Self {
        Self {
            message: message.into(),
            hint: None,
            stderr: None,
            needs_auth: false,
            timed_out: false,
            attempt,
            since: Timestamp::now(),
        }
    }

    /// The start failed.
    pub(super) fn of_start(error: &ConnectError, attempt: u64) -> Self {
        let fault = &error.fault;
        Self {
            hint: error.hint(),
            stderr: match &fault.kind {
                FaultKind::Ended(end) => end.stderr.clone(),
                _ => None,
            },
            needs_auth: fault.needs_auth(),
            timed_out: matches!(fault.kind, FaultKind::TimedOut { .. }),
            ..Self::new(error.to_string(), attempt)
        }
    }

    /// The session ended.
    pub(super) fn of_end(end: &WireEnd, attempt: u64) -> Self {
        Self {
            stderr: end.stderr.clone(),
            hint: match end.reason {
                EndReason::Exited(_) => Some("the next call starts it again".to_owned()),
                _ => None,
            },
            ..Self::new(end.reason.to_string(), attempt)
        }
    }

    pub(super) fn disabled() -> Self {
        Self {
            hint: Some("set `enabled = true` in its config".to_owned()),
            ..Self::new("it is switched off", 0)
        }
    }

    pub(super) fn closed() -> Self {
        Self::new("the board is closed", 0)
    }

    pub(super) fn still_starting() -> Self {
        Self {
            timed_out: true,
            hint: Some("it is still starting; ask again in a moment".to_owned()),
            ..Self::new("it did not become ready in time", 0)
        }
    }
}

impl Phase {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Disabled => State::Disabled,
            Self::Idle => State::Idle,
            Self::Connecting(_) => State::Connecting,
            Self::Ready(_) => State::Ready,
            Self::Down(outage) if outage.needs_auth => State::NeedsAuth,
            Self::Down(_) => State::Down,
            Self::Closed => State::Closed,
        }
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        match self {
            Self::Ready(live) => Some(live),
            Self::Disabled | Self::Idle | Self::Connecting(_) | Self::Down(_) | Self::Closed => None,
        }
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Connecting(attempt) => Some(attempt.since),
            Self::Ready(live) => Some(live.attempt.since),
            Self::Down(outage) => Some(outage.since),
            Self::Disabled | Self::Idle | Self::Closed => None,
        }
    }

    /// How many starts have come to an end. A caller that waits is answered by a later one.
    pub(super) fn attempts_ended(&self) -> u64 {
        match self {
            Self::Connecting(attempt) => attempt.number - 1,
            Self::Ready(live) => live.attempt.number,
            Self::Down(outage) => outage.attempt,
            Self::Disabled | Self::Idle | Self::Closed => 0,
        }
    }

    pub(super) fn restarts(&self) -> u32 {
        let attempts = match self {
            Self::Connecting(attempt) => attempt.number,
            Self::Ready(live) => live.attempt.number,
            Self::Down(outage) => outage.attempt,
            Self::Disabled | Self::Idle | Self::Closed => 0,
        };
        u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn last_error(&self) -> Option<LastError> {
        match self {
            Self::Down(outage) => Some(LastError {
                message: outage.message.clone(),
                hint: outage.hint.clone(),
                at: outage.since,
                stderr: outage.stderr.clone(),
            }),
            Self::Disabled | Self::Idle | Self::Connecting(_) | Self::Ready(_) | Self::Closed => None,
        }
    }
}
