//! The handle to one server: its settings, its availability, and commands to its connections.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::{ArcSwap, Guard};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    availability::{Availability, DetachedConnections},
    board_shared::BoardShared,
    board_slot::BoardSlot,
    breaker::Breaker,
    connection_plan::ConnectionPlan,
    event_publisher::EventPublisher,
    exposure::Exposure,
    instance_history::InstanceHistory,
    operator_switch::OperatorSwitch,
    outage::{Cause, Outage},
    phase::{Live, Phase},
    pool::{Pool, total_slots},
    queue::Gate,
    retry_budget::RetryBudget,
    revision::Revision,
    supervisor::Command,
    view_calls::ViewCalls,
    view_tag::ViewTag,
};
use crate::metrics::ServerCounters;
use crate::status::{LastError, State};
use pegboard_base::sync::Mutex;
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_client::{
    session::{DesiredState, Root, Spec},
    transport::{Dialer, Target},
};
use pegboard_config::{Scope, ServerConfig, Start};
use pegboard_mask::ServerMasker;

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(pub(super) Arc<ServerInner>);

#[derive(Debug)]
pub(super) struct ServerInner {
    pub(super) name: ServerName,
    /// Swapped as a whole when settings change that need no new connection. Every call reads it, so reading takes no lock.
    pub(super) config: ArcSwap<ServerConfig>,
    pub(super) spec: Spec,
    /// Read by every call without a lock.
    pub(super) availability: ArcSwap<Availability>,
    /// Held while the availability changes.
    pub(super) availability_lock: Mutex<()>,
    /// Whether the program has connected the server, if its config says `start = "explicit"`. View instances share it.
    pub(super) is_requested: Arc<AtomicBool>,
    /// Whether an operator has enabled or disabled the server. View instances share it.
    pub(super) switch: Arc<OperatorSwitch>,
    pub(super) gate: Gate,
    pub(super) retries: RetryBudget,
    pub(super) breaker: Breaker,
    /// The counters of all servers of this name, lock-free.
    pub(super) counts: Arc<ServerCounters>,
    pub(super) publisher: Arc<EventPublisher>,
    /// What the instances of the server have last learned about it.
    pub(super) history: Arc<InstanceHistory>,
    /// The last failed call.
    pub(super) failed_call: Mutex<Option<LastError>>,
    /// What agents see of the latest catalogues. Every call reads it, so reading takes no lock.
    pub(super) exposures: ArcSwap<Vec<Arc<Exposure>>>,
    /// Held while a new catalogue is compared with its pins.
    pub(super) screening: Mutex<()>,
    /// Incremented on every change; route tables of an older revision are rebuilt.
    pub(super) revision: Arc<Revision>,
    /// The view that owns the server, if one does.
    pub(super) view: OnceLock<ViewTag>,
    /// The server's slot on the board, which its replacement inherits.
    pub(super) slot: OnceLock<Arc<BoardSlot<Self>>>,
    /// Set when the server was removed from the board.
    pub(super) is_retired: AtomicBool,
    /// Cancelled when the removed server has closed.
    pub(super) ended: CancellationToken,
    /// Distinguishes servers that had the same name one after the other.
    pub(super) number: u64,
    /// Counts the calls of a server that one view owns; `counts` covers all servers of its name.
    pub(super) calls: ViewCalls,
    /// Set once the server is told that the session of the view that owns it has ended.
    pub(super) is_session_ended: AtomicBool,
    pub(super) shared: Arc<BoardShared>,
}

impl Server {
    /// Creates a server. It is not started yet.
    pub(crate) fn new(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let history = history(&config, shared);
        let server = Self::without_link(config, spec, history, shared);
        server.follow_switch();
        server
    }

    /// Creates a server that the board refuses to start, because it has no room or the config is invalid. Every use fails with `why`.
    pub(crate) fn refused(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>, why: Outage) -> Self {
        let history = history(&config, shared);
        let server = Self::without_link(config, spec, history, shared);
        // Published when the server is put on the board.
        server.mute();
        server.set_availability(Availability::Refused(why.into()));
        server
    }

    pub(super) fn without_link(
        config: ServerConfig,
        spec: Spec,
        history: Arc<InstanceHistory>,
        shared: &Arc<BoardShared>,
    ) -> Self {
        let counts = shared.tallies.of(&spec.name);
        let state = if config.enabled { State::Idle } else { State::Disabled };
        let (name, masker, events) = (spec.name.clone(), spec.masker.clone(), shared.events.clone());
        Self(Arc::new(ServerInner {
            publisher: EventPublisher::new(name, masker, events, counts.clone(), history.clone(), state),
            history,
            counts,
            name: spec.name.clone(),
            availability: ArcSwap::from_pointee(Availability::Off),
            availability_lock: Mutex::default(),
            is_requested: Arc::new(AtomicBool::new(config.start != Start::Explicit)),
            switch: Arc::default(),
            gate: shared
                .queues
                .gate(spec.name.as_str(), total_slots(&config), &config.policy),
            retries: RetryBudget::new(Instant::now()),
            breaker: Breaker::new(config.policy.breaker.unwrap_or(shared.breaker)),
            failed_call: Mutex::default(),
            exposures: ArcSwap::default(),
            screening: Mutex::default(),
            revision: match config.policy.scope {
                Scope::Shared | Scope::Pool(_) if spec.owner.is_none() => Revision::on(shared.revision.clone()),
                Scope::Session | Scope::Shared | Scope::Pool(_) => Revision::unseen(),
            },
            view: OnceLock::new(),
            slot: OnceLock::new(),
            is_retired: AtomicBool::new(false),
            ended: CancellationToken::new(),
            number: shared.next_server.fetch_add(1, Ordering::Relaxed),
            calls: ViewCalls::default(),
            is_session_ended: AtomicBool::new(false),
            shared: shared.clone(),
            config: ArcSwap::from_pointee(config),
            spec,
        }))
    }

    /// Creates a server over an existing link.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(super) fn over(link: &super::link::Link, config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let history = history(&config, shared);
        let server = Self::without_link(config, spec, history, shared);
        let pool = Pool::over(link, &server.0.publisher);
        server.set_availability(Availability::On(pool.into()));
        server
    }

    pub(super) fn new_pool(&self) -> Pool {
        let config = self.config();
        let plan = ConnectionPlan::new(self.0.spec.clone(), &config);
        let idle = self.idle_after(&config);
        let reporting = (&self.0.revision, &self.0.publisher);
        Pool::new(&plan, &config, idle, reporting, &self.0.shared)
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.name
    }

    /// The current settings, for a short read.
    pub(crate) fn config(&self) -> Guard<Arc<ServerConfig>> {
        self.0.config.load()
    }

    /// The current settings, for callers that keep them.
    pub(crate) fn config_snapshot(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }

    /// Applies settings that need no new connection. The connections stay, unless their number changes or other servers share them and keep the
    /// old settings; in these cases they are detached and returned.
    pub(crate) fn retune(&self, config: &ServerConfig) -> DetachedConnections {
        let inner = &self.0;
        inner.gate.resize(total_slots(config));
        inner.gate.bind(&inner.shared.queues, &config.policy);
        inner.spec.masker.set_policy(&config.policy.masking);
        inner.spec.masker.own_secrets(config.secrets());
        let old = self.config();
        if old.policy.breaker != config.policy.breaker {
            let policy = config.policy.breaker.unwrap_or(inner.shared.breaker);
            inner.breaker.follow(policy);
        }
        if config.start != Start::Explicit {
            inner.is_requested.store(true, Ordering::Relaxed);
        }
        inner.config.store(Arc::new(config.clone()));
        let plan = ConnectionPlan::new(inner.spec.clone(), config);
        let idle = self.idle_after(config);
        let stays = self.pool().is_none_or(|pool| pool.retune(&plan, config, idle));
        if stays && old.roots != config.roots {
            self.set_roots(&plan.spec.desired_state.roots());
        }
        if stays {
            return DetachedConnections(None);
        }
        let detached = self.set_availability(Availability::On(self.new_pool().into()));
        if config.start == Start::Eager && !self.is_private() {
            self.start();
        }
        DetachedConnections(Some(detached))
    }

    /// The counters of all servers of this name.
    pub(crate) fn counts(&self) -> &Arc<ServerCounters> {
        &self.0.counts
    }

    /// Masks secrets in the server's messages.
    pub(crate) fn masker(&self) -> &ServerMasker {
        &self.0.spec.masker
    }

    /// The subscriptions, log level and roots that apply to every session, shared with all servers on the same link. `None` if the server has
    /// no connections, because it is disabled, refused or closed.
    pub(crate) fn desired_state(&self) -> Option<Arc<DesiredState>> {
        self.pool().map(|pool| pool.first().plan().spec.desired_state.clone())
    }

    /// Sets the roots until the server is disabled. Returns `false` if it has no connections.
    pub(crate) fn set_roots(&self, roots: &[Root]) -> bool {
        let desired_state = self.desired_state();
        if let Some(desired_state) = &desired_state {
            desired_state.set_roots(roots);
        }
        desired_state.is_some()
    }

    /// Whether the server comes from the config, even if a stand-in in this process replaces its transport.
    pub(crate) fn is_configured(&self) -> bool {
        matches!(self.0.spec.target, Target::Configured(_) | Target::StandIn(_))
    }

    /// The dialer of a server in this process that is not a stand-in.
    pub(crate) fn dialer(&self) -> Option<Arc<dyn Dialer>> {
        match &self.0.spec.target {
            Target::InProcess(dialer) => Some(dialer.clone()),
            Target::Configured(_) | Target::StandIn(_) => None,
        }
    }

    /// Whether the server's config is invalid or not approved.
    pub(crate) fn is_misconfigured(&self) -> bool {
        let is_it = |cause| matches!(cause, Cause::Misconfigured | Cause::PendingTrust);
        matches!(self.availability().as_ref(), Availability::Refused(outage) if is_it(outage.cause))
    }

    /// Whether both servers are refused for the same reason.
    pub(crate) fn is_refused_like(&self, other: &Self) -> bool {
        match (self.availability().as_ref(), other.availability().as_ref()) {
            (Availability::Refused(ours), Availability::Refused(theirs)) => ours.message == theirs.message,
            _ => false,
        }
    }

    /// Whether the board refuses to start the server, because it has no room or the config is invalid.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.availability().as_ref(), Availability::Refused(_))
    }

    /// Why the board refuses to start the server, if it does.
    pub(crate) fn refusal(&self) -> Option<Arc<Outage>> {
        match self.availability().as_ref() {
            Availability::Refused(outage) => Some(outage.clone()),
            Availability::On(_) | Availability::Off | Availability::Closed => None,
        }
    }

    pub(super) fn availability(&self) -> Guard<Arc<Availability>> {
        self.0.availability.load()
    }

    /// Changes the availability and returns the old one.
    pub(super) fn set_availability(&self, availability: Availability) -> Arc<Availability> {
        let _guard = self.0.availability_lock.lock();
        match &availability {
            // The links report their own states.
            Availability::On(_) => {}
            Availability::Off => self.0.publisher.end_pool(State::Disabled, None),
            Availability::Refused(outage) => {
                let state = Phase::Down(outage.clone()).state();
                self.0.publisher.end_pool(state, Some(outage));
            }
            Availability::Closed => self.0.publisher.end_pool(State::Closed, None),
        }
        let old = self.0.availability.swap(Arc::new(availability));
        self.0.revision.bump();
        old
    }

    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        match self.availability().as_ref() {
            Availability::On(pool) => Some(pool.clone()),
            Availability::Off | Availability::Refused(_) | Availability::Closed => None,
        }
    }

    /// Whether the server may be started. `false` only if its config says `start = "explicit"` and the program has not connected it.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Relaxed)
    }

    /// Permits the start of a server whose config says `start = "explicit"`.
    pub(crate) fn request(&self) {
        self.0.is_requested.store(true, Ordering::Relaxed);
    }

    /// The current phase.
    pub(crate) fn phase(&self) -> Phase {
        match self.availability().as_ref() {
            Availability::On(_) if !self.is_requested() => Phase::Idle,
            Availability::On(pool) => match pool.phase() {
                Phase::Ready(live) => Phase::Ready(self.exposed(live, pool)),
                phase => phase,
            },
            Availability::Off => Phase::Disabled,
            Availability::Refused(outage) => Phase::Down(outage.clone()),
            Availability::Closed => Phase::Closed,
        }
    }

    /// Requests a start without waiting for it.
    pub(crate) fn start(&self) {
        if let Some(pool) = self.pool() {
            pool.start();
        }
    }

    /// Replaces the session of this generation, because it is unusable. Does nothing if there is a newer one.
    pub(crate) fn replace(&self, generation: u64) {
        self.send(Command::Replace(generation));
    }

    /// Probes the session of this generation, because it may be dead, and replaces it if the probe fails.
    pub(crate) fn suspect(&self, generation: u64) {
        self.send(Command::Suspect(generation));
    }

    /// Checks whether the credential of a session is still good for anything, because the server has refused it.
    pub(crate) fn credential_refused(&self, generation: u64) {
        self.send(Command::Refused(generation));
    }

    /// Lists the server again.
    pub(crate) fn refresh(&self) {
        self.send(Command::Refresh);
    }

    fn send(&self, command: Command) {
        if let Some(pool) = self.pool() {
            pool.send(command);
        }
    }

    /// Lists the server again, unless it was listed since `live` was obtained, and waits until the listing has succeeded or failed.
    pub(crate) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        if let Some(pool) = self.pool() {
            pool.refresh_and_wait(live, deadline).await;
        }
    }

    /// Restarts the server and waits until the old session is closed.
    pub(crate) async fn reconnect(&self) {
        self.breaker().reset();
        self.request();
        if let Some(pool) = self.pool() {
            pool.reconnect().await;
        }
    }

    /// Enables the server.
    pub(crate) fn switch_on(&self) {
        let _guard = self.0.availability_lock.lock();
        if matches!(self.availability().as_ref(), Availability::Off) {
            let pool = self.new_pool();
            self.0.availability.store(Arc::new(Availability::On(pool.into())));
            self.0.revision.bump();
        }
    }

    /// Disables the server. Its connections close when the returned value is closed or dropped.
    pub(crate) fn switch_off(&self) -> DetachedConnections {
        DetachedConnections(self.pool().map(|_| self.set_availability(Availability::Off)))
    }

    /// Disables the server and waits until its connections are closed, unless other servers share them.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(crate) async fn disable(&self) {
        self.switch_off().close().await;
    }

    /// The retry budget of the server's calls.
    pub(crate) fn retries(&self) -> &RetryBudget {
        &self.0.retries
    }

    /// The circuit breaker.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.0.breaker
    }

    /// Closes the server and waits until its process has exited, unless other servers share it.
    pub(crate) async fn close(&self) {
        if let Availability::On(pool) = &*self.set_availability(Availability::Closed) {
            pool.close().await;
        }
    }
}

/// The history of a server without instances so far.
pub(super) fn history(config: &ServerConfig, shared: &BoardShared) -> Arc<InstanceHistory> {
    // Only the instances of a session-scoped server come and go.
    let is_per_view = config.policy.scope == Scope::Session;
    InstanceHistory::new(is_per_view.then(|| shared.revision.clone()))
}
