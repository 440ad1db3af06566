//! Where a server's life stands, as callers see it. Each phase carries what exists in it and nothing else.

use std::{ops::Deref, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    link_usage::{KeepAlive, UseGuard},
    outage::{Cause, Outage},
};
use crate::{
    catalog::Catalog,
    session::Session,
    status::{LastError, State},
};

/// Where a server's life stands.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// Switched off by its config or by an operator.
    Disabled,
    /// Not asked for yet.
    Idle,
    /// Being started. Callers wait.
    Connecting(Attempt),
    /// Ready for calls.
    Ready(Live),
    /// Not to be reached. Callers fail at once, unless the outage is one that calls end; the supervisor goes on trying behind it.
    Down(Arc<Outage>),
    /// Closed with its board.
    Closed,
}

/// A start that callers wait for.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) since: Timestamp,
    /// What ended the session before, when there was one.
    pub(crate) after: Option<Arc<Outage>>,
    pub(crate) restarts: u32,
}

/// A server that is ready, in somebody's hands. Every call takes one, so a clone costs little.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(super) ready: Arc<Ready>,
    /// The catalogue under the name of the one who asked, where it was listed under another.
    renamed: Option<Arc<Catalog>>,
    /// Whoever has it uses it, which keeps the connection from being ended. Nobody does in what is published.
    using: Option<Arc<UseGuard>>,
}

/// A server that is ready: the way to it and what it offers.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) session: Arc<Session>,
    /// What it offers, under the name that the connection was made for. See [`Live::catalog`].
    pub(super) listed: Arc<Catalog>,
    /// When the catalogue should be had anew, if the server set a time.
    pub(crate) stale_at: Option<Instant>,
    /// Counts sessions: a caller that saw one die never ends the next.
    pub(crate) generation: u64,
    /// Counts the listings of this session.
    pub(super) listing: u64,
    pub(crate) since: Timestamp,
    /// How long the start took, from the attempt to the first listing.
    pub(crate) start: Duration,
    pub(crate) restarts: u32,
    /// What went wrong last, even though all is well now.
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
            renamed: None,
            using: None,
        }
    }

    /// What the server offers.
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.renamed.as_ref().unwrap_or(&self.ready.listed)
    }

    /// The same with the catalogue under another name, if there is one.
    pub(super) fn renamed(self, renamed: Option<Arc<Catalog>>) -> Self {
        Self { renamed, ..self }
    }

    /// The same for somebody who uses it.
    pub(super) fn with_use(self, using: Arc<UseGuard>) -> Self {
        Self {
            using: Some(using),
            ..self
        }
    }

    /// Keeps the connection from being ended for as long as what this returns is kept, also in later sessions.
    pub(crate) fn keep_alive(&self) -> Option<KeepAlive> {
        self.using.as_ref().map(|using| using.keep_alive())
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
                Cause::NotRequested => State::Idle,
                Cause::Closed => State::Closed,
                Cause::Failed | Cause::StillStarting | Cause::RestartFailed | Cause::Broken => State::Down,
            },
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
            Self::Ready(live) => Some(live.since),
            Self::Down(outage) => Some(outage.began.wall_clock),
            Self::Disabled | Self::Idle | Self::Closed => None,
        }
    }

    /// The outage of a caller whose deadline passed before the server was ready.
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

    /// What is wrong, or was wrong last.
    pub(super) fn last_error(&self) -> Option<LastError> {
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
        })
    }
}
