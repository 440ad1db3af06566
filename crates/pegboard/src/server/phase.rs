//! Where a server's life stands, as callers see it. Each phase carries what exists in it and nothing else.

use std::{ops::Deref, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::usage::{KeepAlive, UseGuard};
use crate::{
    catalog::Catalog,
    config::Misconfigured,
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

/// Why a server cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub(crate) cause: Cause,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) stderr: Option<String>,
    /// When this failure happened: the loss of the session, or the last failed start.
    pub(crate) at: Timestamp,
    /// When the outage began. Further failed starts do not move it.
    began: OutageStart,
    pub(crate) restarts: u32,
    next: NextStart,
}

/// A point in time on both clocks: one to show, one to measure with.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutageStart {
    shown: Timestamp,
    measured: Instant,
}

impl OutageStart {
    pub(super) fn now() -> Self {
        Self {
            shown: Timestamp::now(),
            measured: Instant::now(),
        }
    }
}

/// When a server that is down is started again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NextStart {
    /// The supervisor starts it at this time, without being asked. `None` for never.
    pub(super) automatic: Option<Instant>,
    /// From this time on a call starts it and waits. `None` if calls fail at once.
    pub(super) on_demand: Option<Instant>,
}

impl NextStart {
    /// Only an operator starts it.
    pub(super) const NEVER: Self = Self {
        automatic: None,
        on_demand: None,
    };

    /// The supervisor starts it after a delay.
    pub(super) fn automatic_in(delay: Duration) -> Self {
        Self {
            automatic: Some(Instant::now() + delay),
            on_demand: None,
        }
    }

    /// The first call after a delay starts it.
    pub(super) fn on_demand_in(delay: Duration) -> Self {
        Self {
            automatic: None,
            on_demand: Some(Instant::now() + delay),
        }
    }

    /// Whether a call starts it now.
    pub(super) fn is_on_demand(&self) -> bool {
        self.on_demand.is_some_and(|at| at <= Instant::now())
    }
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
    /// The config cannot be used, and the server was never tried.
    Misconfigured,
    /// It starts only when somebody says so, and nobody did.
    NotRequested,
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
            began: OutageStart::now(),
            restarts: 0,
            next: NextStart::NEVER,
        }
    }

    /// A start failed. On the first start, a server that refuses our requests as such or does not speak MCP is believed to stay like that.
    /// One that was ready before may be in the middle of an update.
    pub(super) fn of_start(error: &ConnectError, is_first: bool) -> Self {
        let cause = match cause_of(error) {
            Cause::Failed if is_first && !error.unheard && is_no_mcp(&error.fault.kind) => Cause::Broken,
            cause => cause,
        };
        Self {
            hint: error.hint(),
            stderr: match &error.fault.kind {
                FaultKind::Ended(end) => end.stderr.clone(),
                FaultKind::TimedOut { last_words, .. } => last_words.clone(),
                _ => None,
            },
            ..Self::new(cause, error.to_string())
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
    pub(super) fn not_requested() -> Self {
        Self {
            hint: Some("connect it first: its config says `start = \"explicit\"`".to_owned()),
            ..Self::new(Cause::NotRequested, "nobody has connected it yet")
        }
    }

    /// The board has as many servers as it takes.
    pub(crate) fn too_many(most: usize) -> Self {
        Self {
            hint: Some("raise `max_servers`, or remove servers that are not needed".to_owned()),
            ..Self::new(
                Cause::Broken,
                format!("the board takes {most} servers, and this would be one more"),
            )
        }
    }

    /// Its config cannot be used.
    pub(crate) fn misconfigured(misconfigured: &Misconfigured) -> Self {
        let problems = misconfigured.problems.join("; ");
        Self {
            hint: Some(format!("correct its config: {problems}")).filter(|_| !problems.is_empty()),
            ..Self::new(
                Cause::Misconfigured,
                format!("its config cannot be used: {}", misconfigured.why),
            )
        }
    }

    /// It is off the board, and the server that took its place has other rules.
    pub(super) fn replaced() -> Self {
        Self {
            hint: Some("call the tool again".to_owned()),
            ..Self::new(
                Cause::Closed,
                "it was replaced by a server with other settings while the call waited; call the tool again",
            )
        }
    }

    /// It is off the board, and no other server took its place.
    pub(crate) fn removed() -> Self {
        Self {
            hint: Some("list the tools again".to_owned()),
            ..Self::new(Cause::Closed, "it was taken off the board")
        }
    }

    pub(super) fn closed() -> Self {
        Self::new(Cause::Closed, "the board is closed")
    }

    pub(super) fn still_starting() -> Self {
        Self {
            hint: Some("it is still starting; ask again in a moment, or raise `connect_timeout`".to_owned()),
            ..Self::new(Cause::StillStarting, "it did not become ready in time")
        }
    }

    /// The supervisor has made all the starts that the config allows.
    pub(super) fn given_up_after(mut self, starts: u32) -> Self {
        self.message = format!(
            "{}; after {starts} failed starts it is started only for a call, or by an operator",
            self.message
        );
        self
    }

    pub(super) fn after_restarts(mut self, restarts: u32) -> Self {
        self.restarts = restarts;
        self
    }

    /// The outage as callers see it: part of one that began at `began`, with the next start.
    pub(super) fn with(mut self, cause: Cause, restarts: u32, began: OutageStart, next: NextStart) -> Self {
        self.cause = cause;
        self.restarts = restarts;
        self.began = began;
        self.next = next;
        self
    }

    /// The same outage with another next start.
    pub(super) fn with_next(mut self, next: NextStart) -> Self {
        self.next = next;
        self
    }

    /// Whether a call starts the server instead of failing.
    pub(super) fn starts_on_call(&self) -> bool {
        self.next.is_on_demand()
    }

    /// Whether trying again by itself can help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self.cause,
            Cause::NeedsAuth
                | Cause::Broken
                | Cause::Misconfigured
                | Cause::NotRequested
                | Cause::Disabled
                | Cause::Closed
        )
    }

    /// The kind of a call that fails because of it.
    pub(crate) fn kind(&self) -> Kind {
        match self.cause {
            Cause::NeedsAuth => Kind::NeedsAuth,
            Cause::RestartFailed | Cause::CrashLooping => Kind::RestartFailed,
            Cause::StillStarting if self.restarts > 0 => Kind::RestartInProgress,
            Cause::Failed
            | Cause::StillStarting
            | Cause::Broken
            | Cause::Misconfigured
            | Cause::NotRequested
            | Cause::Disabled
            | Cause::Closed => Kind::Unavailable,
        }
    }

    /// What is wrong, how long the server has been down, and when it is started again.
    pub(crate) fn describe(&self) -> String {
        let age = match self.began.measured.elapsed().as_secs() {
            0 => None,
            age => Some(format!("for {age} s")),
        };
        let notes: Vec<String> = age.into_iter().chain(self.next_start()).collect();
        if notes.is_empty() {
            return self.message.clone();
        }
        format!("{} ({})", self.message, notes.join("; "))
    }

    /// When the server is started again; `None` where a change of its config or its board decides that.
    fn next_start(&self) -> Option<String> {
        // Rounded up: at a time that is named, the start has begun.
        let left = |at: Instant| at.saturating_duration_since(Instant::now()).as_millis().div_ceil(1000);
        let text = match (self.next.automatic, self.next.on_demand, self.cause) {
            (_, Some(at), _) if left(at) > 0 => format!("a call starts it again in {} s", left(at)),
            (_, Some(_), _) => "the next call starts it again".to_owned(),
            (Some(at), None, _) if left(at) > 0 => format!("next try in {} s", left(at)),
            (Some(_), None, _) => "it is being tried again".to_owned(),
            (None, None, Cause::NeedsAuth | Cause::Broken) => {
                "it is not tried again before it is reconnected".to_owned()
            }
            (None, None, Cause::StillStarting | Cause::Failed | Cause::RestartFailed | Cause::CrashLooping) => {
                "it is being tried again".to_owned()
            }
            (None, None, Cause::Misconfigured | Cause::NotRequested | Cause::Disabled | Cause::Closed) => return None,
        };
        Some(text)
    }
}

/// Errors with which a server refuses a request as such: it is invalid, or its method or parameters are.
const INVALID: [i64; 4] = [-32600, -32601, -32602, -32022];

/// Whether what answers there is no MCP server, or one that breaks the handshake.
fn is_no_mcp(fault: &FaultKind) -> bool {
    match fault {
        FaultKind::Error(error) => INVALID.contains(&error.code),
        FaultKind::Unreadable(_) => true,
        FaultKind::Ended(end) => matches!(end.reason, EndReason::Protocol(_)),
        FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure)) => failure.kind == FailureKind::Protocol,
        FaultKind::Dial(_) | FaultKind::TimedOut { .. } | FaultKind::NoVersion(_) => false,
    }
}

/// Which failures another try cannot mend: the config or somebody's credentials must change first.
fn cause_of(error: &ConnectError) -> Cause {
    let of_failure = |kind: &FailureKind| match kind {
        FailureKind::NeedsAuth => Cause::NeedsAuth,
        FailureKind::Connect(ConnectFault::Tls | ConnectFault::Redirect) => Cause::Broken,
        _ => Cause::Failed,
    };
    match &error.fault.kind {
        FaultKind::NoVersion(_) => Cause::Broken,
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
            Self::Down(outage) => Some(outage.began.shown),
            Self::Disabled | Self::Idle | Self::Closed => None,
        }
    }

    /// The outage of a caller whose deadline passed before the server was ready.
    pub(super) fn overdue(&self) -> Outage {
        let outage = Outage::still_starting().after_restarts(self.restarts());
        match self {
            Self::Connecting(Attempt {
                after: Some(before), ..
            }) => Outage {
                message: format!("{}; the attempt before failed: {}", outage.message, before.message),
                hint: before.hint.clone().or(outage.hint),
                ..outage
            },
            _ => outage,
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
