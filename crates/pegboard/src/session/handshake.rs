//! From nothing to a session: which era a server speaks is found out, agreed on and remembered.
//!
//! On stdio `initialize` goes first, because many published servers exit or hang on anything else; a silent server is tried in the
//! other era on a second process, so that one which is only slow is not killed. On HTTP the newest era goes first.

mod steps;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::task::TaskTracker;

use super::{
    Facts, Fault, FaultKind, Session,
    connection::RpcConnection,
    desired_state::DesiredState,
    era_memory::{self, EraMemory, RememberedEra},
    host::{self, Host},
};
use crate::{
    config::{EraChoice, Limits, Transport},
    deadline::Deadline,
    hint::Hint,
    mask::ServerMasker,
    name::ServerName,
    transport::{ByteBudget, DialError, FailureKind, Target},
};
use steps::{Opened, Opening};

/// The protocol versions with a handshake that we speak, newest first.
const LEGACY_VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The protocol version without a handshake.
const MODERN_VERSION: &str = "2026-07-28";
/// How long a server may take to answer `server/discover` when we do not know whether it can.
const PROBE: Duration = Duration::from_secs(5);

/// Everything that is needed to reach a server.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) name: ServerName,
    pub(crate) target: Target,
    pub(crate) era: EraChoice,
    pub(crate) limits: Limits,
    /// The roots of its config.
    pub(crate) roots: Vec<String>,
    /// What is wanted of every session.
    pub(crate) desired_state: Arc<DesiredState>,
    pub(crate) host: Arc<dyn Host>,
    /// What servers are told about who we are.
    pub(crate) client: Arc<ClientInfo>,
    pub(crate) memory: Arc<EraMemory>,
    /// What stands between the server's words and everybody else.
    pub(crate) masker: ServerMasker,
    /// The budget for the messages of all connections of the board.
    pub(crate) budget: ByteBudget,
}

/// The program, as servers are told.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self {
            name: "pegboard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("name", &self.name)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Spec {
    /// Whether it is a child process.
    pub(crate) fn is_process(&self) -> bool {
        matches!(&self.target, Target::Configured(transport) if matches!(**transport, Transport::Stdio(_)))
    }

    /// Whether the server is started by a program that may have to fetch it first.
    pub(crate) fn fetches_first(&self) -> bool {
        match &self.target {
            Target::Configured(transport) => match &**transport {
                Transport::Stdio(command) => command.fetches_first(),
                _ => false,
            },
            Target::InProcess(_) | Target::StandIn(_) => false,
        }
    }
}

/// Reaches a server, within `limit`. What is given up on the way ends among `tasks`, also when this future is dropped.
pub(crate) async fn connect(spec: &Spec, limit: Duration, tasks: &TaskTracker) -> Result<Session, ConnectError> {
    let deadline = Deadline::within(limit);
    let host = Arc::new(host::Responder::new(
        spec.name.clone(),
        spec.host.clone(),
        spec.desired_state.clone(),
        spec.masker.clone(),
    ));
    let transport = match &spec.target {
        Target::Configured(transport) => Some(&**transport),
        Target::InProcess(_) | Target::StandIn(_) => None,
    };
    let fingerprint = transport.map(era_memory::fingerprint);
    let known = fingerprint
        .as_deref()
        .and_then(|fingerprint| spec.memory.recall(fingerprint));
    let opening = Opening {
        spec,
        host: host.clone(),
        deadline,
        tasks,
        unheard: AtomicBool::new(false),
    };
    let opened = match transport {
        Some(Transport::Stdio(_)) => {
            let silence = (!spec.fetches_first()).then_some(spec.limits.era_silence);
            opening.over_pipe(known, silence).await
        }
        Some(Transport::WebSocket(_)) | None => opening.over_pipe(known, None).await,
        Some(Transport::Http(_)) => opening.over_http(known, None).await,
        Some(Transport::Auto(endpoint)) => {
            let sse = Target::Configured(Box::new(Transport::Sse(endpoint.clone())));
            opening.over_http(known, Some(sse)).await
        }
        Some(Transport::Sse(_)) => opening.initialize_anew().await.map(legacy),
    };
    match opened {
        Ok((opened, spoken)) => {
            if let Some(fingerprint) = fingerprint {
                spec.memory.remember(&fingerprint, spoken);
            }
            Ok(opened.into_session(spec, host))
        }
        Err(fault) => Err(ConnectError {
            fault: fault.hidden(&spec.masker),
            only_era: spec.era.is_firm(),
            unheard: opening.unheard.load(Ordering::Relaxed),
        }),
    }
}

impl Opening<'_> {
    /// Over a stream of messages: stdio, WebSocket, or a server in this process. `silence` is how long to wait before the other era is
    /// tried on a second process.
    async fn over_pipe(
        &self,
        known: Option<RememberedEra>,
        silence: Option<Duration>,
    ) -> Result<(Opened, RememberedEra), Fault> {
        match (&self.spec.era, known) {
            (EraChoice::Legacy, _) => self.initialize_anew().await.map(legacy),
            (EraChoice::Modern, _) => self.discover_anew(self.deadline).await.map(modern),
            (EraChoice::Version(version), _) if version == MODERN_VERSION => {
                self.discover_anew(self.deadline).await.map(modern)
            }
            (EraChoice::Version(_), _) => self.initialize_anew().await.map(legacy),
            (EraChoice::Probe, _) | (EraChoice::Auto, Some(RememberedEra::Modern)) => self.discover_first().await,
            (EraChoice::Auto, Some(RememberedEra::Legacy | RememberedEra::Sse)) => {
                // It is more likely slow than changed, so it is waited for longer before the other era is tried.
                let patience = self.spec.limits.connect / 2;
                self.initialize_first(silence.map(|silence| silence.max(patience)))
                    .await
            }
            (EraChoice::Auto, None) => self.initialize_first(silence).await,
        }
    }

    /// `initialize`; when it is refused `server/discover` on the same process, when the process dies or is silent on another one.
    async fn initialize_first(&self, silence: Option<Duration>) -> Result<(Opened, RememberedEra), Fault> {
        let mut connection = self.open().await?;
        let fault = match self.initialize_or_challenge(&mut connection, silence).await {
            Ok(First::Initialized(facts)) => return Ok(legacy(Opened { connection, facts })),
            // The silent process ends beside the work: a stubborn one takes its time.
            Ok(First::Overtaken(opened)) => return Ok(modern(opened)),
            Err(fault) => fault,
        };
        match &fault.kind {
            FaultKind::Error(_) => match self.discover(&mut connection, self.probe_deadline()).await {
                Ok(facts) => Ok(modern(Opened { connection, facts })),
                Err(lost) => {
                    self.unheard.store(is_unheard(&lost), Ordering::Relaxed);
                    connection.close().await;
                    Err(fault)
                }
            },
            FaultKind::Ended(end) if end.reason.may_be_of_the_era() && self.can_open_again() => {
                connection.close().await;
                let again = self.discover_anew(self.probe_deadline()).await;
                again.map(modern).map_err(|_| fault)
            }
            _ => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// `initialize`, and after `silence` a second process that is asked `server/discover`: the first to answer wins.
    async fn initialize_or_challenge(
        &self,
        connection: &mut RpcConnection,
        silence: Option<Duration>,
    ) -> Result<First, Fault> {
        let initializing = self.initialize(connection);
        tokio::pin!(initializing);
        let Some(silence) = silence else {
            return initializing.await.map(First::Initialized);
        };
        tokio::select! {
            biased;
            facts = &mut initializing => return facts.map(First::Initialized),
            () = tokio::time::sleep(silence) => {}
        }
        tracing::debug!("the server is silent; trying the other era on a second process");
        let challenging = self.discover_anew(self.probe_deadline());
        tokio::select! {
            biased;
            facts = &mut initializing => facts.map(First::Initialized),
            Ok(opened) = challenging => Ok(First::Overtaken(opened)),
            else => initializing.await.map(First::Initialized),
        }
    }

    /// `server/discover`; when it is refused `initialize` on the same process, when the process dies or is silent on another one.
    async fn discover_first(&self) -> Result<(Opened, RememberedEra), Fault> {
        let mut connection = self.open().await?;
        match self.discover(&mut connection, self.probe_deadline()).await {
            Ok(facts) => return Ok(modern(Opened { connection, facts })),
            Err(fault)
                if matches!(
                    fault.kind,
                    FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_)
                ) =>
            {
                match self.initialize(&mut connection).await {
                    Ok(facts) => return Ok(legacy(Opened { connection, facts })),
                    Err(fault) if !matches!(fault.kind, FaultKind::Ended(_)) => {
                        connection.close().await;
                        return Err(fault);
                    }
                    Err(_) => connection.close().await,
                }
            }
            Err(fault) => {
                connection.close().await;
                if matches!(&fault.kind, FaultKind::Ended(end) if !end.reason.may_be_of_the_era()) {
                    return Err(fault);
                }
            }
        }
        self.initialize_anew().await.map(legacy)
    }

    /// Over HTTP: the newest era first, then the handshake, then, where the config leaves the kind open, HTTP+SSE.
    async fn over_http(
        &self,
        known: Option<RememberedEra>,
        sse: Option<Target>,
    ) -> Result<(Opened, RememberedEra), Fault> {
        if known == Some(RememberedEra::Sse)
            && let Some(target) = &sse
            && let Ok(opened) = self.initialize_at(target).await
        {
            return Ok((opened, RememberedEra::Sse));
        }
        let mut connection = self.open().await?;
        let fault = match self.at_one_address(&mut connection, known).await {
            Ok((facts, spoken)) => return Ok((Opened { connection, facts }, spoken)),
            Err(fault) => fault,
        };
        // A session that was opened in vain is ended.
        let _ = self.deadline.run(connection.close()).await;
        match &sse {
            Some(target) if self.eras().1 && !is_no_matter_of_era(&fault) && self.can_open_again() => {
                match self.initialize_at(target).await {
                    Ok(opened) => Ok((opened, RememberedEra::Sse)),
                    // Whoever asks for credentials there is the server that was meant.
                    Err(old) if old.needs_auth() => Err(old),
                    Err(_) => Err(fault),
                }
            }
            _ => Err(fault),
        }
    }

    /// Streamable HTTP in the eras that the config allows, in the order that what is known suggests.
    async fn at_one_address(
        &self,
        connection: &mut RpcConnection,
        known: Option<RememberedEra>,
    ) -> Result<(Facts, RememberedEra), Fault> {
        let (try_modern, try_legacy) = self.eras();
        let legacy_first = known == Some(RememberedEra::Legacy) && try_legacy;
        if try_modern && !legacy_first {
            match self.discover(connection, self.probe_deadline()).await {
                Ok(facts) => return Ok((facts, RememberedEra::Modern)),
                Err(fault) if !try_legacy || is_no_matter_of_era(&fault) => return Err(fault),
                Err(fault) => {
                    self.unheard.store(is_unheard(&fault), Ordering::Relaxed);
                    tracing::debug!(fault = %fault.hidden(&self.spec.masker), "not in the newest era");
                }
            }
        }
        let fault = match self.initialize(connection).await {
            Ok(facts) => return Ok((facts, RememberedEra::Legacy)),
            Err(fault) => fault,
        };
        if legacy_first
            && try_modern
            && !is_no_matter_of_era(&fault)
            && let Ok(facts) = self.discover(connection, self.probe_deadline()).await
        {
            return Ok((facts, RememberedEra::Modern));
        }
        Err(fault)
    }

    /// Which eras the config allows over HTTP: the newest, and those with a handshake.
    fn eras(&self) -> (bool, bool) {
        match &self.spec.era {
            EraChoice::Modern => (true, false),
            EraChoice::Legacy => (false, true),
            EraChoice::Version(version) => (version == MODERN_VERSION, version != MODERN_VERSION),
            EraChoice::Auto | EraChoice::Probe => (true, true),
        }
    }

    fn probe_deadline(&self) -> Deadline {
        self.deadline.at_most(PROBE)
    }
}

/// What came of the first attempt on a stream.
enum First {
    Initialized(Facts),
    Overtaken(Opened),
}

fn legacy(opened: Opened) -> (Opened, RememberedEra) {
    (opened, RememberedEra::Legacy)
}

fn modern(opened: Opened) -> (Opened, RememberedEra) {
    (opened, RememberedEra::Modern)
}

/// Whether another era would meet the same fault: nobody listens, nobody lets us in, or we ask too much already.
fn is_no_matter_of_era(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Wire(failure) => matches!(
            failure.kind,
            FailureKind::Connect(_) | FailureKind::NeedsAuth | FailureKind::Status { code: 429 | 503, .. }
        ),
        _ => false,
    }
}

/// Whether a request was lost together with its connection, so that it is not known what the server would have answered.
fn is_unheard(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Wire(failure) => matches!(failure.kind, FailureKind::Connect(_) | FailureKind::ConnectionLost),
        FaultKind::Ended(_) | FaultKind::TimedOut { .. } => true,
        _ => false,
    }
}

/// Why a server could not be reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConnectError {
    pub(crate) fault: Fault,
    /// Whether the config allowed only one era.
    pub(crate) only_era: bool,
    /// Whether the question in the newest era got lost on its way, so that a refusal of the handshake does not say that the server is no good.
    pub(crate) unheard: bool,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    /// When the server wants to be asked again, if it said so; at most an hour from now.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let (FaultKind::Wire(failure) | FaultKind::Dial(DialError::Failed(failure))) = &self.fault.kind else {
            return None;
        };
        match failure.kind {
            FailureKind::Status { retry_after, .. } => retry_after.map(|after| after.min(Duration::from_secs(3600))),
            _ => None,
        }
    }
}

impl Hint for ConnectError {
    fn hint(&self) -> Option<String> {
        let hint = match &self.fault.kind {
            FaultKind::Error(_) | FaultKind::Unreadable(_) | FaultKind::NoVersion(_) if self.only_era => {
                "the server may not speak the `era` that its config names; leave `era` out to have it found out"
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
