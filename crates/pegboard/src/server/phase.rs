//! Where a server's life stands, as callers see it. Each phase carries what exists in it and nothing else.

use std::{ops::Deref, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::usage::{Stay, Use};
use crate::{
    catalog::Catalog,
    hint::Hint,
    outcome::Kind,
    session::{ConnectError, FaultKind, Session},
    status::{LastError, State},
    transport::{ConnectFault, DialError, EndReason, FailureKind, WireEnd},
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
    /// Not to be reached. Callers fail at once; the supervisor goes on trying behind it.
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
    using: Option<Arc<Use>>,
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
    pub(super) fn used_by(self, using: Arc<Use>) -> Self {
        Self {
            using: Some(using),
            ..self
        }
    }

    /// Keeps the connection from being ended for as long as what this returns is kept, also in later sessions.
    pub(crate) fn stay(&self) -> Option<Stay> {
        self.using.as_ref().map(|using| using.stay())
    }
}

/// Why a server cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub(crate) cause: Cause,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) stderr: Option<String>,
    pub(crate) at: Timestamp,
    began: Instant,
    pub(crate) restarts: u32,
    /// When the next start is due. `None` when nobody will try unasked.
    retry: Option<Instant>,
}

/// What kind of outage it is, which decides what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The start failed; it is tried again.
    Failed,
    /// The start takes longer than callers should wait; it goes on.
    StillStarting,
    /// A session ended and could not be had again.
    RestartFailed,
    /// It ends again and again; it is tried rarely.
    CrashLooping,
    /// Somebody must sign in.
    NeedsAuth,
    /// The config must change first.
    Broken,
    /// It starts only when somebody says so, and nobody did.
    Unasked,
    /// Switched off.
    Disabled,
    /// The board is closed.
    Closed,
}

impl Outage {
    pub(super) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            hint: None,
            stderr: None,
            at: Timestamp::now(),
            began: Instant::now(),
            restarts: 0,
            retry: None,
        }
    }

    /// The start failed.
    pub(super) fn of_start(error: &ConnectError) -> Self {
        Self {
            hint: error.hint(),
            stderr: match &error.fault.kind {
                FaultKind::Ended(end) => end.stderr.clone(),
                FaultKind::TimedOut { last_words, .. } => last_words.clone(),
                _ => None,
            },
            ..Self::new(cause_of(error), error.to_string())
        }
    }

    /// The session ended.
    pub(super) fn of_end(end: &WireEnd) -> Self {
        let mut message = end.reason.to_string();
        if let Some(stderr) = &end.stderr {
            message = format!("{message}; its error output ends with:\n{stderr}");
        }
        Self {
            stderr: end.stderr.clone(),
            ..Self::new(Cause::Failed, message)
        }
    }

    pub(super) fn disabled() -> Self {
        Self {
            hint: Some("set `enabled = true` in its config, or enable it on the running board".to_owned()),
            ..Self::new(Cause::Disabled, "it is switched off")
        }
    }

    /// It starts only when somebody says so, and nobody did.
    pub(super) fn unasked() -> Self {
        Self {
            hint: Some("connect it first: its config says `start = \"explicit\"`".to_owned()),
            ..Self::new(Cause::Unasked, "nobody has connected it yet")
        }
    }

    /// The board has as many servers as it takes.
    pub(super) fn too_many(most: usize) -> Self {
        Self {
            hint: Some("raise `max_servers`, or remove servers that are not needed".to_owned()),
            ..Self::new(
                Cause::Broken,
                format!("the board takes {most} servers, and this would be one more"),
            )
        }
    }

    pub(super) fn closed() -> Self {
        Self::new(Cause::Closed, "the board is closed")
    }

    pub(super) fn still_starting() -> Self {
        Self {
            hint: Some("it is still starting; ask again in a moment".to_owned()),
            ..Self::new(Cause::StillStarting, "it did not become ready in time")
        }
    }

    /// Nobody tries again unasked.
    pub(super) fn given_up_after(mut self, starts: u32) -> Self {
        self.message = format!(
            "{}; after {starts} failed starts it is left alone until somebody connects it",
            self.message
        );
        self
    }

    pub(super) fn after_restarts(mut self, restarts: u32) -> Self {
        self.restarts = restarts;
        self
    }

    pub(super) fn with(mut self, cause: Cause, restarts: u32, retry_in: Option<Duration>) -> Self {
        self.cause = cause;
        self.restarts = restarts;
        self.retry = retry_in.map(|delay| Instant::now() + delay);
        self
    }

    /// Whether trying again by itself can help.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self.cause,
            Cause::NeedsAuth | Cause::Broken | Cause::Unasked | Cause::Disabled | Cause::Closed
        )
    }

    /// The kind of a call that fails because of it.
    pub(crate) fn kind(&self) -> Kind {
        match self.cause {
            Cause::NeedsAuth => Kind::NeedsAuth,
            Cause::RestartFailed | Cause::CrashLooping => Kind::RestartFailed,
            Cause::StillStarting if self.restarts > 0 => Kind::RestartInProgress,
            Cause::Failed | Cause::StillStarting | Cause::Broken | Cause::Unasked | Cause::Disabled | Cause::Closed => {
                Kind::Unavailable
            }
        }
    }

    /// What is wrong, for how long, and when it is tried again.
    pub(crate) fn describe(&self) -> String {
        let age = self.began.elapsed().as_secs();
        let retry = self
            .retry
            .map(|at| at.saturating_duration_since(Instant::now()).as_secs());
        match (age, retry) {
            (0, _) => self.message.clone(),
            (age, None) => format!("{} (for {age} s)", self.message),
            (age, Some(left)) => format!("{} (for {age} s; next try in {left} s)", self.message),
        }
    }
}

/// Which failures another try cannot mend: the config or somebody's credentials must change first.
fn cause_of(error: &ConnectError) -> Cause {
    let of_failure = |kind: &FailureKind| match kind {
        FailureKind::NeedsAuth => Cause::NeedsAuth,
        FailureKind::Connect(ConnectFault::Tls | ConnectFault::Redirect) | FailureKind::Protocol => Cause::Broken,
        _ => Cause::Failed,
    };
    match &error.fault.kind {
        FaultKind::Dial(DialError::Spawn(error)) if error.is_lasting() => Cause::Broken,
        FaultKind::Dial(DialError::Tls(_) | DialError::Setting(_) | DialError::NotBuilt(_)) => Cause::Broken,
        FaultKind::Dial(DialError::Failed(failure)) | FaultKind::Wire(failure) => of_failure(&failure.kind),
        _ => Cause::Failed,
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
                Cause::Unasked => State::Idle,
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
            Self::Down(outage) => Some(outage.at),
            Self::Disabled | Self::Idle | Self::Closed => None,
        }
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

/// Whether the end of a session counts as a crash of the server. That a server forgot our session, or hung and was replaced, does not.
pub(super) fn is_crash(end: &WireEnd) -> bool {
    matches!(end.reason, EndReason::Exited(_) | EndReason::Eof | EndReason::Broken(_))
}
