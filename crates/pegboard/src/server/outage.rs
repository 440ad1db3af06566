//! Why a server is unavailable, since when, and when it is started again.

mod cause;
mod classify;
mod next_start;
mod told;

use std::time::Duration;

use pegboard_base::timestamp::Timestamp;
use tokio::time::Instant;

pub(crate) use cause::Cause;
pub(super) use classify::is_crash;
use classify::{asks_for_sign_in, cause_of, diagnosis_without_fault, is_no_mcp, is_of_config};
pub(super) use next_start::NextStart;
use next_start::{A_MOMENT, seconds_left};
use told::Told;

use pegboard_base::{
    diagnosis::{self, Code, Diagnosis, Edit, Step},
    hint::Hint,
    name::ServerName,
};
use pegboard_client::{
    session::{ConnectError, FaultKind, Stage},
    transport::WireEnd,
};
use pegboard_config::Misconfigured;
use pegboard_tools::outcome::{Failure, Kind};

/// Why a server is unavailable, since when, and when it is started again.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub(crate) cause: Cause,
    /// What is wrong, as data.
    diagnosis: Diagnosis,
    /// Whether the next start may succeed although this one failed, and tells so quickly. A start that timed out is likely to do so again, and
    /// another supervisor has decided already how long callers wait.
    may_end_soon: bool,
    /// Whether a person can end it with a sign-in: the server asked for a token of the kind that one gives.
    pub(super) awaits_sign_in: bool,
    /// Whether an operator has disabled the server although its config does not.
    is_by_operator: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) stderr: Option<String>,
    /// The code of the JSON-RPC error with which the server refused to start a session.
    pub(crate) code: Option<i64>,
    /// When the newest failure happened: the loss of the session, or the last failed start.
    pub(crate) at: Timestamp,
    /// When the outage began. Further failed starts do not change it.
    pub(super) began: OutageStart,
    pub(crate) restarts: u32,
    next: NextStart,
    /// What the supervisor of the server said, if that is another process. Calls fail with its words, kind and times.
    told: Option<Box<Told>>,
}

/// How long the tools of a server that is down stay listed for clients that may list only once. A restart, an update or a network that is away
/// for a while ends sooner. Afterwards no model is offered what fails.
const KEPT: Duration = Duration::from_secs(3600);

/// When an outage began: the wall clock for display, the monotonic clock for its age.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutageStart {
    pub(super) wall_clock: Timestamp,
    monotonic: Instant,
}

impl OutageStart {
    pub(super) fn now() -> Self {
        Self {
            wall_clock: Timestamp::now(),
            monotonic: Instant::now(),
        }
    }
}

/// What is known of a server whose start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// Its config says that first starts may fail for a while.
    Awaited,
    /// It was ready once.
    Ready,
}

impl Outage {
    pub(super) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            diagnosis: diagnosis_without_fault(cause),
            may_end_soon: true,
            awaits_sign_in: false,
            is_by_operator: false,
            message: message.into(),
            hint: None,
            stderr: None,
            code: None,
            at: Timestamp::now(),
            began: OutageStart::now(),
            restarts: 0,
            next: NextStart::NEVER,
            told: None,
        }
    }

    /// A failed start. If the first start shows that the peer rejects our requests as invalid or does not speak MCP, the outage is lasting. A
    /// server that was ready before may be in the middle of an update.
    pub(super) fn from_start(error: &ConnectError, before: Before) -> Self {
        let cause = match cause_of(error) {
            Cause::Failed
                if before == Before::Nothing
                    && error.behind.is_none()
                    && !error.is_modern_lost
                    && is_no_mcp(&error.fault.kind) =>
            {
                Cause::Broken
            }
            Cause::Broken if before == Before::Ready && !is_of_config(error) => Cause::Failed,
            cause => cause,
        };
        Self {
            may_end_soon: error.behind.is_none() && !matches!(error.fault.kind, FaultKind::TimedOut { .. }),
            awaits_sign_in: cause == Cause::NeedsAuth && asks_for_sign_in(error),
            hint: error.hint(),
            stderr: match &error.fault.kind {
                FaultKind::Ended(end) => end.stderr.clone(),
                FaultKind::TimedOut { last_words, .. } => last_words.clone(),
                _ => None,
            },
            code: match &error.behind {
                Some(failure) => failure.code,
                None => error.fault.rpc_code(),
            },
            told: error.behind.as_deref().map(|failure| Box::new(Told::new(failure))),
            diagnosis: error.diagnosis(),
            ..Self::new(cause, error.to_string())
        }
    }

    /// The session ended.
    pub(super) fn from_end(end: &WireEnd, is_process: bool) -> Self {
        let mut message = end.reason.to_string();
        if let Some(stderr) = &end.stderr {
            message = format!("{message}; its error output ends with:\n{stderr}");
        }
        Self {
            stderr: end.stderr.clone(),
            diagnosis: end.diagnosis(Stage::Call, is_process),
            ..Self::new(Cause::Failed, message)
        }
    }

    /// A failed start that a test double plays.
    pub(crate) fn scripted(message: &str) -> Self {
        Self::new(Cause::Failed, message)
    }

    /// The config says `enabled = false`.
    pub(super) fn disabled() -> Self {
        Self {
            hint: Some("set `enabled = true` in its config, or enable it on the running board".to_owned()),
            ..Self::new(Cause::Disabled, "it is switched off")
        }
    }

    /// An operator has disabled the server on the running board, whatever its config says.
    pub(super) fn disabled_by_operator(name: &ServerName) -> Self {
        Self {
            hint: Some(format!(
                "enable it on the running board, where it was switched off: with `POST /api/v1/mcp/servers/{name}/enable` on a running \
                 `pegboard serve` or on its dashboard, or with `Pegboard::enable` in a program; its config does not switch it off"
            )),
            is_by_operator: true,
            ..Self::new(Cause::Disabled, "it is switched off")
        }
    }

    /// The config says `start = "explicit"`, and the program has not connected the server.
    pub(super) fn not_requested(name: &ServerName) -> Self {
        Self {
            hint: Some(format!(
                "connect it first, because its config says `start = \"explicit\"`: with `pegboard tools --server {name}` or `POST \
                 /api/v1/mcp/servers/{name}/reconnect` on a running `pegboard serve`, or with `Pegboard::connect` in a program"
            )),
            ..Self::new(Cause::NotRequested, "nobody has connected it yet")
        }
    }

    /// The board has reached its limit of servers.
    pub(crate) fn too_many(most: usize) -> Self {
        Self {
            hint: Some("raise `max_servers`, or remove servers that are not needed".to_owned()),
            diagnosis: Diagnosis::new(Code::BoardFull, Step::Config, diagnosis::Cause::Limit),
            ..Self::new(
                Cause::Broken,
                format!("the board takes {most} servers, and this would be one more"),
            )
        }
    }

    /// The values of a view's variables cannot be sent in the server's headers.
    pub(crate) fn bad_variables(why: &str) -> Self {
        Self {
            hint: Some("set the variables with `View::variable` to visible ASCII characters".to_owned()),
            diagnosis: Diagnosis::new(Code::ConfigError, Step::Config, diagnosis::Cause::Setting),
            ..Self::new(Cause::Broken, why)
        }
    }

    /// The server's config holds tools that change, and its pins cannot be used.
    pub(crate) fn without_pins(why: &str, hint: Option<&str>) -> Self {
        Self {
            hint: hint.map(str::to_owned),
            diagnosis: Diagnosis::new(Code::PinsUnusable, Step::List, diagnosis::Cause::State),
            ..Self::new(Cause::Broken, why)
        }
    }

    /// The server's config is invalid, or its project file is not approved.
    pub(crate) fn misconfigured(misconfigured: &Misconfigured) -> Self {
        let problems = misconfigured.problems.join("; ");
        if misconfigured.pending_trust.is_some() {
            return Self {
                hint: Some(problems),
                ..Self::new(Cause::PendingTrust, misconfigured.why.clone())
            };
        }
        Self {
            hint: Some(format!("correct its config: {problems}")).filter(|_| !problems.is_empty()),
            diagnosis: match &misconfigured.diagnosis {
                Some(diagnosis) => (**diagnosis).clone(),
                None => diagnosis_without_fault(Cause::Misconfigured),
            },
            ..Self::new(
                Cause::Misconfigured,
                format!("its config cannot be used: {}", misconfigured.why),
            )
        }
    }

    /// Replaces what is wrong with the server by what its config tells of it, and sets the host.
    pub(super) fn refine(&mut self, code: Option<Code>, host: Option<&str>) {
        self.diagnosis.code = code.unwrap_or(self.diagnosis.code);
        if host.is_some() {
            self.diagnosis.place = std::mem::take(&mut self.diagnosis.place).host(host);
        }
    }

    /// The stable word for what is wrong.
    pub(crate) fn diagnosis_code(&self) -> Code {
        self.diagnosis.code
    }

    /// What is wrong with a server of this name, as data.
    pub(crate) fn diagnosis(&self, server: &str) -> Diagnosis {
        let mut diagnosis = self.diagnosis.clone();
        diagnosis.place.server = Some(server.to_owned());
        diagnosis.edit = diagnosis.edit.or_else(|| self.edit(server));
        diagnosis
    }

    /// The change that ends the outage, if one is known.
    fn edit(&self, server: &str) -> Option<Edit> {
        let run = |words: &[&str]| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            Some(Edit::Run { command })
        };
        match (self.diagnosis.code, &self.diagnosis.cause) {
            // No change of the config enables it.
            (Code::Disabled, _) if self.is_by_operator => None,
            (Code::Disabled, _) => Some(Edit::Set {
                key: format!("servers.{server}.enabled"),
                value: true.into(),
            }),
            (Code::SignInNeeded, _) if self.awaits_sign_in => run(&["pegboard", "login", server]),
            (Code::SignInExpired, _) => run(&["pegboard", "login", server]),
            (Code::ProjectUntrusted, _) => run(&["pegboard", "trust", "accept"]),
            (Code::ProgramNotExecutable, diagnosis::Cause::Program { path }) => run(&["chmod", "u+x", path]),
            (Code::FolderMissing, diagnosis::Cause::Program { path }) => run(&["mkdir", "-p", path]),
            _ => None,
        }
    }

    /// Until when the last known tools of the server stay listed in views that ask for that; `None` if they must not be.
    pub(crate) fn kept_until(&self) -> Option<Instant> {
        match self.cause {
            Cause::Failed | Cause::StillStarting | Cause::RestartFailed | Cause::CrashLooping | Cause::Broken => {
                Some(self.began.monotonic + KEPT)
            }
            Cause::NeedsAuth
            | Cause::Misconfigured
            | Cause::PendingTrust
            | Cause::NotRequested
            | Cause::Disabled
            | Cause::Closed => None,
        }
    }

    /// Whether the project file that configures the server is not approved.
    pub(crate) fn is_pending_trust(&self) -> bool {
        matches!(self.cause, Cause::PendingTrust)
    }

    /// The server was replaced on the board by one with other rules.
    pub(super) fn replaced() -> Self {
        Self {
            hint: Some("call the tool again".to_owned()),
            ..Self::new(
                Cause::Closed,
                "it was replaced by a server with other settings while the call waited; call the tool again",
            )
        }
    }

    /// The server was removed from the board without a replacement.
    pub(crate) fn removed() -> Self {
        Self {
            hint: Some("list the tools again".to_owned()),
            ..Self::new(Cause::Closed, "it was taken off the board")
        }
    }

    pub(super) fn closed() -> Self {
        Self::new(Cause::Closed, "the board is closed")
    }

    /// The runtime that ran the server's tasks is gone, but the board is still used.
    pub(super) fn runtime_ended() -> Self {
        Self {
            hint: Some("keep the runtime in which the board was opened until the board is shut down, or open the board in one that lasts".to_owned()),
            ..Self::new(
                Cause::Closed,
                "the async runtime in which the board was opened has ended, and its connections with it",
            )
        }
    }

    pub(super) fn still_starting() -> Self {
        Self {
            hint: Some("it is still starting; ask again in a moment, or raise `connect_timeout`".to_owned()),
            ..Self::new(Cause::StillStarting, "it did not become ready in time")
        }
    }

    /// The server has used up the starts that its config allows.
    pub(super) fn with_spent_starts(mut self, starts: u32, is_checked: bool) -> Self {
        let by = if is_checked { "health check, a call" } else { "call" };
        self.message = format!(
            "{}; after {starts} failed starts it is started only for a {by}, or by an operator",
            self.message
        );
        self
    }

    pub(super) fn after_restarts(mut self, restarts: u32) -> Self {
        self.restarts = restarts;
        self
    }

    /// Makes this failure part of the outage that began at `began`, with the next start.
    pub(super) fn with(mut self, cause: Cause, restarts: u32, began: OutageStart, next: NextStart) -> Self {
        self.cause = cause;
        self.restarts = restarts;
        self.began = began;
        self.next = next;
        self
    }

    /// Replaces the next start.
    pub(super) fn with_next(mut self, next: NextStart) -> Self {
        self.next = next;
        self
    }

    /// Whether a call starts the server instead of failing.
    pub(super) fn starts_on_call(&self) -> bool {
        self.next.is_on_demand()
    }

    /// Whether a restart is due by `time` that is worth waiting for.
    pub(super) fn restarts_by(&self, time: Instant) -> bool {
        self.cause == Cause::RestartFailed && self.may_end_soon && self.next.automatic.is_some_and(|at| at <= time)
    }

    /// Whether a retry helps only after a change: of the config, the server, or its credentials.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self.cause,
            Cause::NeedsAuth
                | Cause::Broken
                | Cause::Misconfigured
                | Cause::PendingTrust
                | Cause::NotRequested
                | Cause::Disabled
                | Cause::Closed
        )
    }

    /// Whether a person must act before a start can succeed: the program or the folder of the process is not there, or its sandbox. The starts that
    /// are made all the same notice when that has happened.
    pub(crate) fn needs_person(&self) -> bool {
        self.cause == Cause::Broken && self.diagnosis.step == Step::Spawn
    }

    /// The outcome kind of calls that fail because of it.
    pub(crate) fn kind(&self) -> Kind {
        if let Some(told) = &self.told {
            return told.kind();
        }
        match self.cause {
            Cause::NeedsAuth => Kind::NeedsAuth,
            Cause::PendingTrust => Kind::NotPermitted,
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

    /// The failure of calls as the server's supervisor told it, if that is another process.
    pub(crate) fn told_failure(&self) -> Option<Failure> {
        self.told.as_ref().map(|told| told.failure())
    }

    /// Describes the failure, the age of the outage, and when the server is started again.
    pub(crate) fn describe(&self) -> String {
        let age = match self.began.monotonic.elapsed().as_secs() {
            // It began before this process heard of it.
            _ if self.told.is_some() => None,
            // Nothing but a sign-in ends it, so its age says nothing.
            _ if self.cause == Cause::NeedsAuth => None,
            0 => None,
            age => Some(format!("down for {age} s")),
        };
        let notes: Vec<String> = age.into_iter().chain(self.next_start()).collect();
        if notes.is_empty() {
            return self.message.clone();
        }
        format!("{} ({})", self.message, notes.join("; "))
    }

    /// How long it takes until the server is started again, or a call may start it. A moment if it is being started, also while it waits for the
    /// starts of others; `None` if a change is needed first.
    pub(crate) fn next_start_in(&self) -> Option<Duration> {
        if let Some(told) = &self.told {
            return told.retry_after();
        }
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        match (self.next.on_demand, self.next.automatic) {
            (Some(at), _) => Some(left(at)),
            (None, Some(at)) => Some(Some(left(at)).filter(|left| !left.is_zero()).unwrap_or(A_MOMENT)),
            (None, None) => (!self.is_final()).then_some(A_MOMENT),
        }
    }

    /// When the server is started again; `None` if that depends on a change of its config or board.
    fn next_start(&self) -> Option<String> {
        if let Some(told) = &self.told {
            let wait = told.retry_after().filter(|_| self.cause != Cause::NeedsAuth)?;
            return Some(format!("next try in {} s", wait.as_millis().div_ceil(1000)));
        }
        let text = match (self.next.automatic, self.next.on_demand, self.cause) {
            // What a person must do first takes longer than that.
            (_, Some(_), Cause::NeedsAuth) if self.awaits_sign_in => return None,
            (_, Some(at), _) if seconds_left(at) > 0 => format!("a call starts it again in {} s", seconds_left(at)),
            (_, Some(_), _) => "the next call starts it again".to_owned(),
            (Some(at), None, _) if seconds_left(at) > 0 => format!("next try in {} s", seconds_left(at)),
            (Some(_), None, _) => "it is being tried again".to_owned(),
            // The hint says what helps.
            (None, None, Cause::NeedsAuth | Cause::Broken) => return None,
            (None, None, Cause::StillStarting | Cause::Failed | Cause::RestartFailed | Cause::CrashLooping) => {
                "it is being tried again".to_owned()
            }
            (
                None,
                None,
                Cause::Misconfigured | Cause::PendingTrust | Cause::NotRequested | Cause::Disabled | Cause::Closed,
            ) => return None,
        };
        Some(text)
    }
}

impl std::fmt::Display for Outage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Outage {}
