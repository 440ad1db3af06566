//! One server's whole life behind a handle: it is started when needed, watched, and ended with its last handle.
//!
//! A [`Server`] is a name with its settings, its queue and its figures. The way to it is a pool of links, mostly of one, which it may share
//! with other names.

pub(crate) mod backoff;
mod breaker;
mod event_publisher;
mod health_check;
mod known_catalog;
mod link;
mod membership;
mod phase;
mod pool;
mod queue;
mod registry;
mod report;
mod retry_budget;
mod revision;
mod supervisor;
mod usage;

pub use backoff::BadSchedule;
pub(crate) use backoff::{Backoff, Jitter};
pub(crate) use breaker::{Breaker, Open};
pub use known_catalog::CatalogChange;
pub(crate) use link::{ClosingLinks, Links};
pub(crate) use phase::{Live, Outage, Phase};
pub(crate) use queue::{Queues, Refused};
pub(crate) use registry::{Registry, ViewServers};
pub(crate) use retry_budget::RetryBudget;

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::{ArcSwap, Guard};
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    catalog::{
        Catalog, FormerNames,
        store::{CatalogStore, Freshness},
    },
    config::{BreakerPolicy, Scope, ServerConfig, Start},
    deadline::Deadline,
    event::EventSender,
    mask::ServerMasker,
    metrics::{BoardCounters, ServerCounters},
    name::ServerName,
    session::{ListScope, Root, Spec},
    status::{LastError, State},
    transport::Target,
};
use event_publisher::EventPublisher;
use link::Plan;
use membership::{BoardSlot, OperatorSwitch, ViewTag};
use phase::Cause;
use pool::{Pool, places_of_all};
use queue::{Gate, Permit};
use report::ViewCalls;
use revision::Revision;
use supervisor::Command;

/// What all servers of one board share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) survey: ListScope,
    /// Raised whenever what a server offers may have changed.
    pub(crate) revision: Arc<AtomicU64>,
    /// How many servers may be starting at once.
    pub(crate) starts: Arc<Semaphore>,
    /// The schedule of restarts.
    pub(crate) backoff: Backoff,
    /// The queues that calls of several servers wait in.
    pub(crate) queues: Queues,
    /// When callers are turned away from a server that answers nobody.
    pub(crate) breaker: BreakerPolicy,
    /// Where catalogues are kept between programs.
    pub(crate) catalogs: Option<CatalogStore>,
    /// How many child processes there may be at once.
    pub(crate) processes: Arc<Semaphore>,
    /// Counts the sessions of all servers, so that no two of them are mixed up.
    pub(crate) generations: Arc<AtomicU64>,
    /// The connections that servers may share.
    pub(crate) links: Links,
    /// The connections that are being closed.
    pub(crate) ending: Arc<ClosingLinks>,
    /// Counts the servers that were made.
    pub(crate) made: AtomicU64,
    /// Where events are rung.
    pub(crate) events: EventSender,
    /// The counters of the board, by server name.
    pub(crate) tallies: Arc<BoardCounters>,
}

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: ServerName,
    /// Replaced as a whole when a setting changes that needs no new connection.
    /// Every call looks at it, so looking must not make the cores wait for each other.
    config: ArcSwap<ServerConfig>,
    spec: Spec,
    /// Looked at by every call, as the settings are.
    availability: ArcSwap<Availability>,
    /// Held while the standing changes.
    changing: Mutex<()>,
    /// Whether the program has asked for it, where its config says that it must. Copies share it.
    is_asked_for: Arc<AtomicBool>,
    /// What an operator said since the config last did. Copies share it, and so does the server that takes its place.
    switch: Arc<OperatorSwitch>,
    gate: Gate,
    retries: RetryBudget,
    breaker: Breaker,
    /// The counters of all servers of this name, read and written without a lock.
    counts: Arc<ServerCounters>,
    publisher: Arc<EventPublisher>,
    /// How the last call failed that did. Written only then.
    failed_call: Mutex<Option<LastError>>,
    /// The catalogue of a link that has another name, and the same under ours.
    renamed: Mutex<Option<(Arc<Catalog>, Arc<Catalog>)>>,
    /// Incremented on every change; route tables built for an older revision are rebuilt.
    revision: Arc<Revision>,
    /// The view that owns it, once one does.
    view: OnceLock<ViewTag>,
    /// Its place on the board, which the server that takes its place has too.
    place: OnceLock<Arc<BoardSlot>>,
    /// Set when it is off the board.
    has_left: AtomicBool,
    /// Tells servers apart that had the same name one after the other.
    number: u64,
    /// Its own calls, while a view owns it: the other counters are for all servers of its name.
    calls: ViewCalls,
    shared: Arc<Shared>,
}

/// Connections that a server has left behind. They end, unless other servers share them, when this is dropped.
#[derive(Default)]
#[must_use = "the end of connections should be waited for"]
pub(crate) struct DetachedConnections(Option<Arc<Availability>>);

impl DetachedConnections {
    /// Ends the connections that no other server holds, and waits for that.
    pub(crate) async fn close(self) {
        if let Some(Availability::On(pool)) = self.0.as_deref() {
            pool.close().await;
        }
    }
}

/// Whether a server may be used, and how.
#[derive(Debug)]
enum Availability {
    On(Arc<Pool>),
    /// Switched off by its config or by an operator.
    Off,
    /// The board has no room for it, or cannot use its config.
    Refused(Arc<Outage>),
    /// Closed for good.
    Closed,
}

impl Server {
    /// A server that has not been started yet.
    pub(crate) fn new(config: ServerConfig, spec: Spec, shared: &Arc<Shared>) -> Self {
        let server = Self::without_link(config, spec, shared);
        server.follow_switch();
        server
    }

    /// A server that the board does not start, because it has no room for it or cannot use its config. Every use of it fails with the reason.
    pub(crate) fn refused(config: ServerConfig, spec: Spec, shared: &Arc<Shared>, why: Outage) -> Self {
        let server = Self::without_link(config, spec, shared);
        // Told when it is put on the board.
        server.mute();
        server.stand(Availability::Refused(why.into()));
        server
    }

    fn without_link(config: ServerConfig, spec: Spec, shared: &Arc<Shared>) -> Self {
        let counts = shared.tallies.of(&spec.name);
        let state = if config.enabled { State::Idle } else { State::Disabled };
        let (name, masker, events) = (spec.name.clone(), spec.masker.clone(), shared.events.clone());
        Self(Arc::new(Inner {
            publisher: EventPublisher::new(name, masker, events, counts.clone(), state),
            counts,
            name: spec.name.clone(),
            availability: ArcSwap::from_pointee(Availability::Off),
            changing: Mutex::default(),
            is_asked_for: Arc::new(AtomicBool::new(config.start != Start::Explicit)),
            switch: Arc::default(),
            gate: shared
                .queues
                .gate(spec.name.as_str(), places_of_all(&config), &config.policy),
            retries: RetryBudget::new(Instant::now()),
            breaker: Breaker::new(config.policy.breaker.unwrap_or(shared.breaker)),
            failed_call: Mutex::default(),
            renamed: Mutex::default(),
            revision: match config.policy.scope {
                Scope::Session => Revision::unseen(),
                Scope::Shared | Scope::Pool(_) => Revision::on(shared.revision.clone()),
            },
            view: OnceLock::new(),
            place: OnceLock::new(),
            has_left: AtomicBool::new(false),
            number: shared.made.fetch_add(1, Ordering::Relaxed),
            calls: ViewCalls::default(),
            shared: shared.clone(),
            config: ArcSwap::from_pointee(config),
            spec,
        }))
    }

    /// A server over a connection that exists.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    fn over(link: &link::Link, config: ServerConfig, spec: Spec, shared: &Arc<Shared>) -> Self {
        let server = Self::without_link(config, spec, shared);
        let pool = Pool::over(link, &server.0.publisher);
        server.stand(Availability::On(pool.into()));
        server
    }

    fn pool_of_its_own(&self) -> Pool {
        let config = self.config();
        let plan = Plan::new(self.0.spec.clone(), &config);
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
    pub(crate) fn kept_config(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }

    /// Takes over settings under which the server is still reached as before. Its connections stay, unless they are shared with others that
    /// keep the old settings; then they are left behind.
    pub(crate) fn retune(&self, config: &ServerConfig) -> DetachedConnections {
        let inner = &self.0;
        inner.gate.resize(places_of_all(config));
        inner.gate.bind(&inner.shared.queues, &config.policy);
        inner.spec.masker.follow(&config.policy.masking);
        inner.spec.masker.own(config.secrets());
        let old = self.config();
        if old.policy.breaker != config.policy.breaker {
            let policy = config.policy.breaker.unwrap_or(inner.shared.breaker);
            inner.breaker.follow(policy);
        }
        if config.start != Start::Explicit {
            inner.is_asked_for.store(true, Ordering::Relaxed);
        }
        inner.config.store(Arc::new(config.clone()));
        let plan = Plan::new(inner.spec.clone(), config);
        let idle = self.idle_after(config);
        let stays = self.pool().is_none_or(|pool| pool.retune(&plan, config, idle));
        if stays && old.roots != config.roots {
            self.set_roots(&plan.spec.desired_state.roots());
        }
        if stays {
            return DetachedConnections(None);
        }
        let left = self.stand(Availability::On(self.pool_of_its_own().into()));
        if config.start == Start::Eager {
            self.start();
        }
        DetachedConnections(Some(left))
    }

    /// The counters of all servers of this name.
    pub(crate) fn counts(&self) -> &Arc<ServerCounters> {
        &self.0.counts
    }

    /// What stands between its words and everybody else.
    pub(crate) fn masker(&self) -> &ServerMasker {
        &self.0.spec.masker
    }

    /// What is wanted of every session that it has, and of those that share its connection; nothing while it is switched off.
    pub(crate) fn wanted(&self) -> Option<Arc<crate::session::DesiredState>> {
        self.pool().map(|pool| pool.first().plan().spec.desired_state.clone())
    }

    /// Sets its roots for as long as it is switched on. Whether it is.
    pub(crate) fn set_roots(&self, roots: &[Root]) -> bool {
        let wanted = self.wanted();
        if let Some(wanted) = &wanted {
            wanted.set_roots(roots);
        }
        wanted.is_some()
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

    fn availability(&self) -> Guard<Arc<Availability>> {
        self.0.availability.load()
    }

    /// Changes its standing and gives back the old one.
    fn stand(&self, availability: Availability) -> Arc<Availability> {
        let _alone = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
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
        if let Availability::On(pool) = &*self.stand(availability) {
            pool.close().await;
        }
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        match self.availability().as_ref() {
            Availability::On(pool) => Some(pool.clone()),
            Availability::Off | Availability::Refused(_) | Availability::Closed => None,
        }
    }

    /// Whether it may be started: its config leaves that to others, and nobody did, if not.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.0.is_asked_for.load(Ordering::Relaxed)
    }

    /// Somebody wants it to be used, as a server whose config leaves its start to others needs.
    pub(crate) fn ask_for(&self) {
        self.0.is_asked_for.store(true, Ordering::Relaxed);
    }

    /// Where its life stands.
    pub(crate) fn phase(&self) -> Phase {
        match self.availability().as_ref() {
            Availability::On(_) if !self.is_asked_for() => Phase::Idle,
            Availability::On(pool) => match pool.phase() {
                Phase::Ready(live) => Phase::Ready(self.under_our_name(live, pool)),
                phase => phase,
            },
            Availability::Off => Phase::Disabled,
            Availability::Refused(outage) => Phase::Down(outage.clone()),
            Availability::Closed => Phase::Closed,
        }
    }

    /// What it offers, or offered when it was there last. Nothing while it is switched off.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        let pool = self.pool().filter(|_| self.is_asked_for())?;
        match pool.phase() {
            Phase::Ready(live) => Some(self.under_our_name(live, &pool).catalog().clone()),
            Phase::Disabled | Phase::Closed => None,
            Phase::Idle | Phase::Connecting(_) | Phase::Down(_) => {
                let latest = pool.first().known().latest()?;
                let renamed = self.renamed(&latest, &pool);
                Some(renamed.unwrap_or(latest))
            }
        }
    }

    /// Has it known by a catalogue before it is started for the first time.
    pub(crate) fn presume(&self, mut catalog: Catalog) {
        catalog.mask(&self.masker().current());
        if let Some(pool) = self.pool() {
            pool.first().known().learn(&Arc::new(catalog), Freshness::default());
        }
    }

    /// Whether a start of it has succeeded in this program.
    pub(crate) fn was_listed(&self) -> bool {
        self.pool().is_some_and(|pool| pool.first().known().was_listed())
    }

    /// How its catalogue changed, the newest change last.
    pub(crate) fn changes(&self) -> Vec<CatalogChange> {
        let pool = self.pool();
        pool.map(|pool| pool.first().known().changes()).unwrap_or_default()
    }

    fn under_our_name(&self, live: Live, pool: &Pool) -> Live {
        let renamed = self.renamed(live.catalog(), pool);
        live.renamed(renamed)
    }

    /// A catalogue under our own name, if that is another: a link which others share was listed under the name of the first of them.
    fn renamed(&self, catalog: &Arc<Catalog>, pool: &Pool) -> Option<Arc<Catalog>> {
        if *pool.first().name() == self.0.name {
            return None;
        }
        let mut renamed = self.0.renamed.lock().unwrap_or_else(PoisonError::into_inner);
        match &*renamed {
            Some((theirs, ours)) if Arc::ptr_eq(theirs, catalog) => Some(ours.clone()),
            _ => {
                let ours = Arc::new(catalog.under(&self.0.name));
                *renamed = Some((catalog.clone(), ours.clone()));
                Some(ours)
            }
        }
    }

    /// The names that its tools had before.
    pub(crate) fn former_names(&self) -> FormerNames {
        let pool = self.pool();
        pool.map(|pool| pool.first().known().former_names()).unwrap_or_default()
    }

    /// Asks for its start without waiting.
    pub(crate) fn start(&self) {
        if let Some(pool) = self.pool() {
            pool.start();
        }
    }

    /// The session of this generation is of no use any more. Later generations are left alone.
    pub(crate) fn replace(&self, generation: u64) {
        self.ask(Command::Replace(generation));
    }

    /// The session of this generation may be dead: it is probed, and replaced if that is so.
    pub(crate) fn suspect(&self, generation: u64) {
        self.ask(Command::Suspect(generation));
    }

    /// Lists the server again.
    pub(crate) fn refresh(&self) {
        self.ask(Command::Refresh);
    }

    fn ask(&self, command: Command) {
        if let Some(pool) = self.pool() {
            pool.ask(command);
        }
    }

    /// Lists the server again, unless that was done since `live` was had, and waits until the listing has ended, well or not.
    pub(crate) async fn relisted(&self, live: &Live, deadline: Deadline) {
        if let Some(pool) = self.pool() {
            pool.relisted(live, deadline).await;
        }
    }

    /// Starts the server anew, and waits until the old session is left.
    pub(crate) async fn reconnect(&self) {
        self.breaker().reset();
        self.ask_for();
        if let Some(pool) = self.pool() {
            pool.reconnect().await;
        }
    }

    /// Lets the server be used again.
    pub(crate) fn switch_on(&self) {
        let _alone = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.availability().as_ref(), Availability::Off) {
            let pool = self.pool_of_its_own();
            self.0.availability.store(Arc::new(Availability::On(pool.into())));
            self.0.revision.bump();
        }
    }

    /// Switches the server off. Its connections end when what this returns is closed or dropped.
    pub(crate) fn switch_off(&self) -> DetachedConnections {
        DetachedConnections(self.pool().map(|_| self.stand(Availability::Off)))
    }

    /// Switches the server off, and waits until its connections have ended, if no other server uses them.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(crate) async fn disable(&self) {
        self.switch_off().close().await;
    }

    /// The server ready for use: at once when it is, after its start when that is under way. When it is down, the outage.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        self.live_after(0, deadline).await
    }

    /// The server ready for use, in another session than the one that was left behind.
    pub(crate) async fn live_after(&self, left_behind: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        if let Some(live) = self.live_now(left_behind) {
            return Ok(live);
        }
        // Boxed, because it is rare and every call would pay for the room.
        Box::pin(self.live_in_time(left_behind, deadline)).await
    }

    async fn live_in_time(&self, left_behind: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        let waiting = async {
            loop {
                let usable = self.usable(&self.availability()).cloned();
                let pool = match (usable, self.successor()) {
                    (Err(outage), Some(next)) if outage.cause == Cause::Closed => {
                        if !self.has_same_rules_as(&next) {
                            return Err(Outage::replaced().into());
                        }
                        return Box::pin(next.live_in_time(left_behind, deadline)).await;
                    }
                    (usable, _) => usable?,
                };
                match pool.live_after(left_behind).await {
                    // It was switched off, or on again, or its settings were changed.
                    Err(outage) if outage.cause == Cause::Closed && !self.is_over(&pool) => {}
                    reached => return reached.map(|live| self.under_our_name(live, &pool)),
                }
            }
        };
        deadline
            .run(waiting)
            .await
            .unwrap_or_else(|_| Err(self.phase().overdue().into()))
    }

    /// The server ready for use, if it is that at this moment.
    fn live_now(&self, left_behind: u64) -> Option<Live> {
        let availability = self.availability();
        let pool = self.usable(&availability).ok()?;
        let live = pool.live_now(left_behind)?;
        Some(self.under_our_name(live, pool))
    }

    /// Its connections, if it may be used.
    fn usable<'s>(&self, availability: &'s Availability) -> Result<&'s Arc<Pool>, Arc<Outage>> {
        match availability {
            Availability::On(_) if !self.is_asked_for() => Err(Outage::unasked().into()),
            Availability::On(pool) => Ok(pool),
            Availability::Off => Err(Outage::disabled().into()),
            Availability::Refused(outage) => Err(outage.clone()),
            Availability::Closed if self.has_left() => Err(Outage::removed().into()),
            Availability::Closed => Err(Outage::closed().into()),
        }
    }

    /// Whether this pool is still ours, so that nothing comes after its end.
    fn is_over(&self, pool: &Arc<Pool>) -> bool {
        self.pool().is_some_and(|now| Arc::ptr_eq(&now, pool))
    }

    /// Waits for a turn of a tool, at most until the deadline.
    pub(crate) async fn turn(&self, tool: &str, deadline: Deadline) -> Result<Permit<'_>, Refused> {
        if !deadline.has_passed()
            && let Some(permit) = self.0.gate.enter_now(tool)
        {
            return Ok(permit);
        }
        // Whoever waits will need the connection.
        let _using = self.pool().and_then(|pool| pool.keep());
        // Boxed, because it is rare and every call would pay for the room.
        Box::pin(self.0.gate.enter(tool, deadline)).await
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
