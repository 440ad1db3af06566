//! Connects to a server: negotiates the protocol era and version, and remembers the era.
//!
//! If the era is neither configured nor remembered, `initialize` is sent first on stdio, because many published servers exit or hang on anything
//! else. If the server is silent, `server/discover` is sent to the same process: a slow server is neither killed nor started twice. If it answers
//! neither, the next start begins with the other one. WebSockets
//! and servers in this process also get `initialize` first. Over HTTP the newest era is tried first.

mod connect_attempt;
mod over_pipe;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pegboard_protocol::Version;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    connect_spec::Spec,
    connection::RpcConnection,
    diagnose::{self, Stage},
    era_memory::{self, RememberedEra},
    fault::{Fault, FaultKind},
    host::Responder,
    mcp_session::Session,
    peer_info::PeerInfo,
};
use crate::transport::{DialError, FailureKind, Target};
use connect_attempt::{ConnectAttempt, Established};
use pegboard_base::{deadline::Deadline, diagnosis::Diagnosis, hint::Hint};
use pegboard_config::{EraChoice, RemoteKind, Transport};
use pegboard_tools::outcome::Failure;

/// The timeout of `server/discover` if the server's era is not known.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a server, within `limit`. Abandoned connections are closed in `tasks`, also when this future is dropped.
pub async fn connect(spec: &Spec, limit: Duration, tasks: &TaskTracker) -> Result<Session, ConnectError> {
    let started = Instant::now();
    let deadline = Deadline::within(limit);
    let responder = Arc::new(Responder::new(
        spec.name.clone(),
        spec.host.clone(),
        spec.desired_state.clone(),
        spec.masker.clone(),
    ));
    let transport = match &spec.target {
        Target::Configured(transport) => Some(&**transport),
        Target::InProcess(_) | Target::StandIn(_) => None,
    };
    let fingerprint = transport.map(|transport| era_memory::fingerprint(transport, &spec.era));
    let remembered = fingerprint
        .as_deref()
        .and_then(|fingerprint| spec.memory.recall(fingerprint));
    let attempt = ConnectAttempt {
        spec,
        responder: responder.clone(),
        deadline,
        tasks,
        is_modern_lost: AtomicBool::new(false),
        is_legacy_known: AtomicBool::new(false),
    };
    let established = match transport {
        Some(Transport::Stdio(_)) => {
            let silence = (!spec.fetches_first()).then_some(spec.limits.era_silence);
            attempt.over_pipe(remembered, silence).await
        }
        None => attempt.over_pipe(remembered, None).await,
        Some(Transport::Remote { kind, endpoint }) => match kind {
            RemoteKind::WebSocket => attempt.over_pipe(remembered, None).await,
            RemoteKind::Http => attempt.over_http(remembered, None).await,
            RemoteKind::Auto => {
                let sse = Target::Configured(Box::new(Transport::sse(endpoint.clone())));
                attempt.over_http(remembered, Some(sse)).await
            }
            RemoteKind::Sse => attempt.connect_legacy().await.map(remember_legacy),
        },
    };
    let established = match established {
        Ok((established, _)) if spec.is_for_questions && !established.connection.wire().has_session() => {
            established.connection.close().await;
            Err(Fault::unreadable(
                "it opens no session, so it could not match answers to its questions",
            ))
        }
        established => established,
    };
    match established {
        Ok((established, era)) => {
            if let Some(fingerprint) = fingerprint {
                spec.memory.remember(&fingerprint, era);
            }
            Ok(established.into_session(spec, responder))
        }
        Err(fault) => {
            // The last request may have got only what others had left of the time.
            let fault = fault.waiting_since(started).into_masked(&spec.masker);
            if let Some(fingerprint) = fingerprint {
                match attempt.is_legacy_known.load(Ordering::Relaxed) {
                    true => spec.memory.remember(&fingerprint, RememberedEra::Legacy),
                    false => learn_from_silence(spec, &fingerprint, remembered, &fault),
                }
            }
            Err(ConnectError {
                behind: failure_behind(&spec.target, &fault).map(Box::new),
                fault,
                stage: Stage::Handshake,
                is_process: spec.is_process(),
                only_era: spec.era.is_firm(),
                is_modern_lost: attempt.is_modern_lost.load(Ordering::Relaxed),
            })
        }
    }
}

/// Lets the next start of a process that answered nothing begin in the other era: it may have hung on the first request. A process whose era is
/// known is only slow.
fn learn_from_silence(spec: &Spec, fingerprint: &str, remembered: Option<RememberedEra>, fault: &Fault) {
    let is_silent = matches!(fault.kind, FaultKind::TimedOut { .. });
    if !is_silent || !spec.is_process() || spec.era != EraChoice::Auto {
        return;
    }
    match remembered {
        None => spec.memory.remember(fingerprint, RememberedEra::Silent),
        Some(RememberedEra::Silent) => spec.memory.forget(fingerprint),
        Some(RememberedEra::Modern | RememberedEra::Legacy | RememberedEra::Sse) => {}
    }
}

/// The failure of the server for which the peer speaks, if that is why the peer refused the session.
fn failure_behind(target: &Target, fault: &Fault) -> Option<Failure> {
    match (target, &fault.kind) {
        (Target::InProcess(dialer) | Target::StandIn(dialer), FaultKind::Error(error)) => {
            dialer.failure_behind(error.data.as_ref()?)
        }
        _ => None,
    }
}

impl ConnectAttempt<'_> {
    /// Connects over HTTP: in the newest era first, then with the handshake, then over HTTP+SSE if the config leaves the transport open.
    async fn over_http(
        &self,
        remembered: Option<RememberedEra>,
        sse: Option<Target>,
    ) -> Result<(Established, RememberedEra), Fault> {
        if remembered == Some(RememberedEra::Sse)
            && let Some(target) = &sse
            && let Ok(established) = self.connect_legacy_to(target).await
        {
            return Ok((established, RememberedEra::Sse));
        }
        let mut connection = self.open().await?;
        let fault = match self.over_streamable_http(&mut connection, remembered).await {
            Ok((peer, era)) => return Ok((Established { connection, peer }, era)),
            Err(fault) => fault,
        };
        // Ends the server's session, if it opened one.
        let _ = self.deadline.run(connection.close()).await;
        match &sse {
            Some(target) if self.eras().1 && !is_independent_of_era(&fault) && self.can_open_again() => {
                match self.connect_legacy_to(target).await {
                    Ok(established) => Ok((established, RememberedEra::Sse)),
                    // A server that requires authentication there speaks HTTP+SSE.
                    Err(sse_fault) if sse_fault.needs_auth() => Err(sse_fault),
                    Err(_) => Err(fault),
                }
            }
            _ => Err(fault),
        }
    }

    /// Tries the eras that the config allows over streamable HTTP, the remembered one first.
    async fn over_streamable_http(
        &self,
        connection: &mut RpcConnection,
        remembered: Option<RememberedEra>,
    ) -> Result<(PeerInfo, RememberedEra), Fault> {
        let (try_modern, try_legacy) = self.eras();
        let legacy_first = remembered == Some(RememberedEra::Legacy) && try_legacy;
        if try_modern && !legacy_first {
            match self.discover(connection, self.probe_deadline()).await {
                Ok(peer) => return Ok((peer, RememberedEra::Modern)),
                Err(fault) if !try_legacy || is_independent_of_era(&fault) => return Err(fault),
                Err(fault) => {
                    self.is_modern_lost.store(is_lost(&fault), Ordering::Relaxed);
                    tracing::debug!(fault = %fault.into_masked(&self.spec.masker), "not in the newest era");
                }
            }
        }
        let fault = match self.initialize(connection).await {
            Ok(peer) => return Ok((peer, RememberedEra::Legacy)),
            Err(fault) => fault,
        };
        if legacy_first
            && try_modern
            && !is_independent_of_era(&fault)
            && let Ok(peer) = self.discover(connection, self.probe_deadline()).await
        {
            return Ok((peer, RememberedEra::Modern));
        }
        Err(fault)
    }

    /// Returns whether the config allows the newest era and those with a handshake.
    fn eras(&self) -> (bool, bool) {
        match &self.spec.era {
            EraChoice::Modern => (true, false),
            EraChoice::Legacy => (false, true),
            EraChoice::Version(version) => {
                let is_modern = is_modern(version);
                (is_modern, !is_modern)
            }
            EraChoice::Auto | EraChoice::Probe => (true, true),
        }
    }

    fn probe_deadline(&self) -> Deadline {
        self.deadline.at_most(PROBE_TIMEOUT)
    }
}

fn remember_legacy(established: Established) -> (Established, RememberedEra) {
    (established, RememberedEra::Legacy)
}

fn remember_modern(established: Established) -> (Established, RememberedEra) {
    (established, RememberedEra::Modern)
}

/// Returns `true` if another era would fail in the same way: the server is down, requires authentication, or limits the rate of requests.
fn is_independent_of_era(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Wire(failure) => matches!(
            failure.kind,
            FailureKind::Connect(_)
                | FailureKind::NeedsAuth
                | FailureKind::Forbidden
                | FailureKind::NoCredential(_)
                | FailureKind::Status { code: 429 | 503, .. }
        ),
        _ => false,
    }
}

/// Returns `true` if a request was lost with its connection or timed out, so that the server may support it all the same.
fn is_lost(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Wire(failure) => matches!(failure.kind, FailureKind::Connect(_) | FailureKind::ConnectionLost),
        FaultKind::Ended(_) | FaultKind::TimedOut { .. } => true,
        _ => false,
    }
}

/// Why connecting to a server failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectError {
    /// The failure of the handshake or the connection.
    pub fault: Fault,
    /// What was being done.
    pub stage: Stage,
    /// Whether the server is a process of this program.
    pub is_process: bool,
    /// Whether the config allowed only one era.
    pub only_era: bool,
    /// Whether the request in the newest era was lost, so that a rejected handshake does not prove that the peer is no MCP server.
    pub is_modern_lost: bool,
    /// The failure of the server for which the peer speaks. It is told instead of the fault.
    pub behind: Option<Box<Failure>>,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(failure) = &self.behind {
            return match std::error::Error::source(&**failure) {
                Some(cause) => fmt::Display::fmt(cause, f),
                None => fmt::Display::fmt(failure, f),
            };
        }
        write!(f, "{}", self.fault)?;
        match &self.fault.kind {
            FaultKind::TimedOut {
                last_words: Some(words),
                ..
            } => write!(f, "; all it wrote was:\n{words}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    /// What is wrong, as data.
    pub fn diagnosis(&self) -> Diagnosis {
        match &self.behind {
            Some(failure) => diagnose::diagnose_other_supervisor(failure),
            None => self.fault.diagnosis(self.stage, self.is_process),
        }
    }

    /// Returns the server's `Retry-After`, at most an hour.
    pub fn retry_after(&self) -> Option<Duration> {
        let (FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure))) = &self.fault.kind else {
            return None;
        };
        match &failure.kind {
            FailureKind::Status { retry_after, .. } => retry_after.map(|after| after.min(Duration::from_secs(3600))),
            FailureKind::NoCredential(remedy) => remedy.retry_after(),
            _ => None,
        }
    }
}

impl Hint for ConnectError {
    fn hint(&self) -> Option<String> {
        if let Some(failure) = &self.behind {
            return failure.hint.clone();
        }
        let hint = match &self.fault.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) if self.only_era => {
                "the server may not speak the `era` that its config names; leave `era` out to have it found out"
            }
            FaultKind::TimedOut { .. } if !self.is_process => {
                "the server does not answer; check `url`, or raise `connect_timeout` if it is slow"
            }
            FaultKind::TimedOut { last_words: None, .. } => {
                "the server says nothing; run its command by hand, or raise `connect_timeout` if it is slow"
            }
            FaultKind::TimedOut { .. } => {
                "the server's own words may say what it waits for; raise `connect_timeout` if it is only slow"
            }
            _ => return self.fault.hint(),
        };
        Some(hint.to_owned())
    }
}

/// Returns whether the config names a version without a handshake.
fn is_modern(version: &str) -> bool {
    Version::parse(version).is_some_and(Version::is_modern)
}
