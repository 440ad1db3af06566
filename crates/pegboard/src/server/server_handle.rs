//! The handle to one server: its settings, its availability, and commands to its connections.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::{ArcSwap, Guard};
use tokio::time::Instant;

use super::{
    availability::{Availability, DetachedConnections},
    board_shared::BoardShared,
    board_slot::BoardSlot,
    breaker::Breaker,
    connection_plan::ConnectionPlan,
    event_publisher::EventPublisher,
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
use crate::{
    catalog::Catalog,
    config::{Scope, ServerConfig, Start},
    deadline::Deadline,
    mask::ServerMasker,
    metrics::Counts,
    name::ServerName,
    session::{DesiredState, Root, Spec},
    status::{LastError, State},
    transport::Target,
};

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(pub(super) Arc<ServerInner>);

#[derive(Debug)]
pub(super) struct ServerInner {
    pub(super) name: ServerName,
    /// Replaced as a whole when a setting changes that needs no new connection.
    /// Every call looks at it, so looking must not make the cores wait for each other.
    pub(super) config: ArcSwap<ServerConfig>,
    pub(super) spec: Spec,
    /// Looked at by every call, as the settings are.
    pub(super) availability: ArcSwap<Availability>,
    /// Held while the standing changes.
    pub(super) availability_lock: Mutex<()>,
    /// Whether the program has asked for it, where its config says that it must. Copies share it.
    pub(super) is_requested: Arc<AtomicBool>,
    /// What an operator said since the config last did. Copies share it, and so does the server that takes its place.
    pub(super) switch: Arc<OperatorSwitch>,
    pub(super) gate: Gate,
    pub(super) retries: RetryBudget,
    pub(super) breaker: Breaker,
    /// The counters of all servers of this name, read and written without a lock.
    pub(super) counts: Arc<Counts>,
    pub(super) publisher: Arc<EventPublisher>,
    /// How the last call failed that did. Written only then.
    pub(super) failed_call: Mutex<Option<LastError>>,
    /// The catalogue of a link that has another name, and the same under ours.
    pub(super) renamed: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
    /// Incremented on every change; route tables built for an older revision are rebuilt.
    pub(super) revision: Arc<Revision>,
    /// The view that owns it, once one does.
    pub(super) view: OnceLock<ViewTag>,
    /// Its place on the board, which the server that takes its place has too.
    pub(super) slot: OnceLock<Arc<BoardSlot<Self>>>,
    /// Set when it is off the board.
    pub(super) is_retired: AtomicBool,
    /// Tells servers apart that had the same name one after the other.
    pub(super) number: u64,
    /// Its own calls, while a view owns it: the other counters are for all servers of its name.
    pub(super) calls: ViewCalls,
    pub(super) shared: Arc<BoardShared>,
}

impl Server {
    /// A server that has not been started yet.
    pub(crate) fn new(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let server = Self::without_link(config, spec, shared);
        server.follow_switch();
        server
    }

    /// A server that the board does not start, because it has no room for it or cannot use its config. Every use of it fails with the reason.
    pub(crate) fn refused(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>, why: Outage) -> Self {
        let server = Self::without_link(config, spec, shared);
        // Told when it is put on the board.
        server.mute();
        server.set_availability(Availability::Refused(why.into()));
        server
    }

    pub(super) fn without_link(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let counts = shared.tallies.of(&spec.name);
        let state = if config.enabled { State::Idle } else { State::Disabled };
        let (name, masker, events) = (spec.name.clone(), spec.masker.clone(), shared.events.clone());
        Self(Arc::new(ServerInner {
            publisher: EventPublisher::new(name, masker, events, counts.clone(), state),
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
            renamed: Mutex::default(),
            revision: match config.policy.scope {
                Scope::Session => Revision::unseen(),
                Scope::Shared | Scope::Pool(_) => Revision::on(shared.revision.clone()),
            },
            view: OnceLock::new(),
            slot: OnceLock::new(),
            is_retired: AtomicBool::new(false),
            number: shared.next_server.fetch_add(1, Ordering::Relaxed),
            calls: ViewCalls::default(),
            shared: shared.clone(),
            config: ArcSwap::from_pointee(config),
            spec,
        }))
    }

    /// A server over a connection that exists.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(super) fn over(link: &super::link::Link, config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let server = Self::without_link(config, spec, shared);
        let pool = Pool::over(link, &server.0.publisher);
        server.set_availability(Availability::On(pool.into()));
        server
    }

    pub(super) fn new_pool(&self) -> Pool {
        let config = self.config();
        let plan = ConnectionPlan::new(self.0.spec.clone(), &config);
        let idle = self.idle_after(&config);
        let tellers = (&self.0.revision, &self.0.publisher);
        Pool::new(&plan, &config, idle, tellers, &self.0.shared)
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.name
    }

    /// Its settings at this moment, for a short look.
    pub(crate) fn config(&self) -> Guard<Arc<ServerConfig>> {
        self.0.config.load()
    }

    /// Its settings at this moment, for those who keep them for a while.
    pub(crate) fn config_snapshot(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }

    /// Takes over settings under which the server is still reached as before. Its connections stay, unless they are shared with others that
    /// keep the old settings; then they are left behind.
    pub(crate) fn retune(&self, config: &ServerConfig) -> DetachedConnections {
        let inner = &self.0;
        inner.gate.resize(total_slots(config));
        inner.gate.bind(&inner.shared.queues, &config.policy);
        inner.spec.masker.follow(&config.policy.masking);
        inner.spec.masker.own(config.secrets());
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
        let left = self.set_availability(Availability::On(self.new_pool().into()));
        if config.start == Start::Eager {
            self.start();
        }
        DetachedConnections(Some(left))
    }

    /// The counters of all servers of this name.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.0.counts
    }

    /// What stands between its words and everybody else.
    pub(crate) fn masker(&self) -> &ServerMasker {
        &self.0.spec.masker
    }

    /// What is desired_state of every session that it has, and of those that share its connection; nothing while it is switched off.
    pub(crate) fn desired_state(&self) -> Option<Arc<DesiredState>> {
        self.pool().map(|pool| pool.first().plan().spec.desired_state.clone())
    }

    /// Sets its roots for as long as it is switched on. Whether it is.
    pub(crate) fn set_roots(&self, roots: &[Root]) -> bool {
        let desired_state = self.desired_state();
        if let Some(desired_state) = &desired_state {
            desired_state.set_roots(roots);
        }
        desired_state.is_some()
    }

    /// Whether it comes from a config, not from this program.
    pub(crate) fn is_configured(&self) -> bool {
        matches!(self.0.spec.target, Target::Configured(_) | Target::StandIn(_))
    }

    /// Whether its config cannot be used.
    pub(crate) fn is_misconfigured(&self) -> bool {
        matches!(self.availability().as_ref(), Availability::Refused(outage) if outage.cause == Cause::Misconfigured)
    }

    /// Whether both are refused for the same reason.
    pub(crate) fn is_refused_like(&self, other: &Self) -> bool {
        match (self.availability().as_ref(), other.availability().as_ref()) {
            (Availability::Refused(ours), Availability::Refused(theirs)) => ours.message == theirs.message,
            _ => false,
        }
    }

    /// Whether the board does not start it, for want of room or of a config that can be used.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.availability().as_ref(), Availability::Refused(_))
    }

    pub(super) fn availability(&self) -> Guard<Arc<Availability>> {
        self.0.availability.load()
    }

    /// Changes its standing and gives back the old one.
    pub(super) fn set_availability(&self, availability: Availability) -> Arc<Availability> {
        let _alone = self.0.availability_lock.lock().unwrap_or_else(PoisonError::into_inner);
        match &availability {
            // Its connections tell how it stands.
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

    /// Changes its standing and waits for the end of the connections that it had.
    async fn leave_pool_for(&self, availability: Availability) {
        if let Availability::On(pool) = &*self.set_availability(availability) {
            pool.close().await;
        }
    }

    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        match self.availability().as_ref() {
            Availability::On(pool) => Some(pool.clone()),
            Availability::Off | Availability::Refused(_) | Availability::Closed => None,
        }
    }

    /// Whether it may be started: its config leaves that to others, and nobody did, if not.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Relaxed)
    }

    /// Somebody wants it to be used, as a server whose config leaves its start to others needs.
    pub(crate) fn request(&self) {
        self.0.is_requested.store(true, Ordering::Relaxed);
    }

    /// Where its life stands.
    pub(crate) fn phase(&self) -> Phase {
        match self.availability().as_ref() {
            Availability::On(_) if !self.is_requested() => Phase::Idle,
            Availability::On(pool) => match pool.phase() {
                Phase::Ready(live) => Phase::Ready(self.with_own_name(live, pool)),
                phase => phase,
            },
            Availability::Off => Phase::Disabled,
            Availability::Refused(outage) => Phase::Down(outage.clone()),
            Availability::Closed => Phase::Closed,
        }
    }

    /// Asks for its start without waiting.
    pub(crate) fn start(&self) {
        if let Some(pool) = self.pool() {
            pool.start();
        }
    }

    /// The session of this generation is of no use any more. Later generations are left alone.
    pub(crate) fn replace(&self, generation: u64) {
        self.send(Command::Replace(generation));
    }

    /// The session of this generation may be dead: it is probed, and replaced if that is so.
    pub(crate) fn suspect(&self, generation: u64) {
        self.send(Command::Suspect(generation));
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

    /// Lists the server again, unless that was done since `live` was had, and waits until the listing has ended, well or not.
    pub(crate) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        if let Some(pool) = self.pool() {
            pool.refresh_and_wait(live, deadline).await;
        }
    }

    /// Starts the server anew, and waits until the old session is left.
    pub(crate) async fn reconnect(&self) {
        self.breaker().reset();
        self.request();
        if let Some(pool) = self.pool() {
            pool.reconnect().await;
        }
    }

    /// Lets the server be used again.
    pub(crate) fn switch_on(&self) {
        let _alone = self.0.availability_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.availability().as_ref(), Availability::Off) {
            let pool = self.new_pool();
            self.0.availability.store(Arc::new(Availability::On(pool.into())));
            self.0.revision.bump();
        }
    }

    /// Switches the server off. Its connections end when what this returns is closed or dropped.
    pub(crate) fn switch_off(&self) -> DetachedConnections {
        DetachedConnections(self.pool().map(|_| self.set_availability(Availability::Off)))
    }

    /// Switches the server off, and waits until its connections have ended, if no other server uses them.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(crate) async fn disable(&self) {
        self.switch_off().close().await;
    }

    /// The repetitions that calls of this server may make.
    pub(crate) fn retries(&self) -> &RetryBudget {
        &self.0.retries
    }

    /// Turns callers away from a server that answers nobody.
    pub(crate) fn breaker(&self) -> &Breaker {
        &self.0.breaker
    }

    /// Ends the server and waits until its process is gone, if nobody else uses that.
    pub(crate) async fn close(&self) {
        self.leave_pool_for(Availability::Closed).await;
    }
}
