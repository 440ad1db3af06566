//! The connections of one server. Most servers have one; with several, each call takes the least busy.

use std::{
    cell::OnceCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;

use super::{
    board_shared::BoardShared,
    connection_plan::ConnectionPlan,
    event_publisher::LinkReporter,
    instance_history::InstanceHistory,
    known_catalog::KnownCatalog,
    link::{Link, LinkLease, RESEND},
    link_usage::{ReleaseNotifier, UseGuard},
    outage::Outage,
    phase::{Live, Phase},
    question_link::QuestionLink,
    reporting::Reporting,
    supervisor::Command,
};
use pegboard_base::{deadline::Deadline, sync::Mutex};
use pegboard_client::transport::Target;
use pegboard_config::{IDLE, IdleStop, Scope, ServerConfig};

/// The connections of one server, in the order in which they are started.
#[derive(Debug)]
pub(super) struct Pool {
    leases: Box<[LinkLease]>,
    /// The most concurrent uses of one connection.
    slots: AtomicUsize,
    /// Held while a connection is picked, so that two calls do not take the same slot.
    pick_lock: Mutex<()>,
    /// Notifies waiting calls when a use of any connection ends.
    released: Arc<ReleaseNotifier>,
    /// A further connection for calls in which the server may send questions.
    pub(super) question_link: QuestionLink,
}

impl Pool {
    /// Creates the connections of a server. A shared-scope server leases a compatible link of the board, if there is one.
    pub(super) fn new(
        plan: &ConnectionPlan,
        config: &ServerConfig,
        idle: Option<Duration>,
        reporting: &Reporting,
        (shared, history): (&BoardShared, &InstanceHistory),
    ) -> Self {
        let (publisher, revision) = (&reporting.publisher, &reporting.revision);
        let number = publisher.begin_pool(size(config));
        let released = Arc::<ReleaseNotifier>::default();
        let known = OnceCell::new();
        let make = || {
            let known = known.get_or_init(|| Arc::new(load_known_catalog(plan, config, shared, history)));
            Link::new(
                plan.clone(),
                known.clone(),
                released.clone(),
                revision.clone(),
                &shared.link_context,
            )
        };
        let is_shared = config.policy.scope == Scope::Shared && plan.spec.owner.is_none();
        let leases = (0..size(config)).map(|at| {
            let idle = idle_after(config, idle, at);
            let reporter = LinkReporter::new(publisher, number, at);
            if is_shared && matches!(plan.spec.target, Target::Configured(_)) {
                shared.links.lease(plan, idle, reporter, make)
            } else {
                make().lease(idle, reporter).expect("a new link has not ended")
            }
        });
        Self {
            leases: leases.collect(),
            slots: slots(config).into(),
            pick_lock: Mutex::default(),
            released,
            question_link: QuestionLink::default(),
        }
    }

    /// A pool over one existing link.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(super) fn over(link: &Link, publisher: &Arc<super::event_publisher::EventPublisher>) -> Self {
        let reporter = LinkReporter::new(publisher, publisher.begin_pool(1), 0);
        Self {
            leases: link.lease(None, reporter).into_iter().collect(),
            slots: usize::MAX.into(),
            pick_lock: Mutex::default(),
            released: Arc::default(),
            question_link: QuestionLink::default(),
        }
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.leases.iter().map(LinkLease::link)
    }

    /// The first connection. It represents the server where a single one is needed.
    pub(super) fn first(&self) -> &Link {
        self.leases[0].link()
    }

    /// The phase of the server as a whole: that of its best connection.
    pub(super) fn phase(&self) -> Phase {
        let rank = |phase: &Phase| match phase {
            Phase::Ready(_) => 3,
            Phase::Connecting(_) => 2,
            Phase::Down(_) => 1,
            Phase::Idle | Phase::Disabled | Phase::Closed => 0,
        };
        let phases = self.links().skip(1).map(Link::phase);
        // The first of equals wins.
        phases.fold(self.first().phase(), |best, next| {
            if rank(&next) > rank(&best) { next } else { best }
        })
    }

    /// Keeps the only connection from being closed as idle while a call waits in a queue. A pool of several needs no such guard, as it can
    /// start another.
    pub(super) fn keep_from_idling(&self) -> Option<Arc<UseGuard>> {
        match &*self.leases {
            [only] => only.link().begin_use(),
            _ => None,
        }
    }

    /// Returns a session that is ready now and whose generation is not `old_generation`.
    pub(super) fn live_now(&self, old_generation: u64) -> Option<Live> {
        let (link, using) = self.pick()?;
        link.live_now(old_generation).map(|live| live.with_use(using))
    }

    /// Waits for a session whose generation is not `old_generation`.
    pub(super) async fn live_after(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        let mut failed = 0;
        loop {
            let Some((link, using)) = self.pick_or_wait().await else {
                continue;
            };
            match link.live_after(old_generation, deadline).await {
                Ok(live) => return Ok(live.with_use(using)),
                Err(outage) => {
                    failed += 1;
                    if failed >= self.leases.len() || !self.links().any(is_well) {
                        return Err(outage);
                    }
                }
            }
        }
    }

    /// The connection for the next call. Returns `None` after a wait in which one may have become free.
    async fn pick_or_wait(&self) -> Option<(&Link, Arc<UseGuard>)> {
        if let Some(picked) = self.pick() {
            return Some(picked);
        }
        let released = self.released.next();
        // Try again, now that the end of a use wakes this task.
        let picked = self.pick();
        if picked.is_none() {
            tokio::select! {
                () = released => {}
                () = self.first().changed() => {}
                () = tokio::time::sleep(RESEND) => {}
            }
        }
        picked
    }

    /// Picks the connection for the next call. A further one is started only when all running ones are busy. Returns `None` if all are at
    /// their limit or are being closed.
    fn pick(&self) -> Option<(&Link, Arc<UseGuard>)> {
        if let [only] = &*self.leases {
            return only.link().begin_use().map(|using| (only.link(), using));
        }
        let _guard = self.pick_lock.lock();
        let best = self.pick_best()?;
        best.begin_use().map(|using| (best, using))
    }

    fn pick_best(&self) -> Option<&Link> {
        let slots = self.slots.load(Ordering::Relaxed);
        let states: Vec<_> = self
            .links()
            .map(|link| (link.uses(), LinkState::read(link), link))
            .collect();
        let first = |wanted: LinkState| {
            states
                .iter()
                .find(|(_, state, _)| *state == wanted)
                .map(|(.., link)| *link)
        };
        if first(LinkState::Running).is_none()
            && let Some(down) = first(LinkState::Down)
        {
            // The other connections could not be started either, so the call fails at once.
            return Some(down);
        }
        // The least busy first. Of equally busy ones, running ones come before those that must be started.
        let usable = states
            .iter()
            .filter(|(uses, state, _)| *state != LinkState::Down && *uses < slots);
        usable
            .min_by_key(|(uses, state, _)| (*uses, *state))
            .map(|(.., link)| *link)
    }

    /// Applies new settings. Returns whether the connections can stay.
    pub(super) fn retune(&self, plan: &ConnectionPlan, config: &ServerConfig, idle: Option<Duration>) -> bool {
        self.slots.store(slots(config), Ordering::Relaxed);
        let stay = self.leases.len() == size(config)
            && self
                .leases
                .iter()
                .enumerate()
                .all(|(at, hold)| hold.retune(plan.clone(), idle_after(config, idle, at)));
        if stay {
            self.question_link
                .retune(self.first().plan().for_questions(), question_idle(config, idle));
        }
        stay
    }

    pub(super) fn start(&self) {
        self.first().send(Command::Start);
    }

    pub(super) fn send(&self, command: Command) {
        for link in self.links() {
            link.send(command);
        }
        self.question_link.send(command);
    }

    /// Lists the connection of `live` again, or the first one if `live` is a session for questions.
    pub(super) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        let generation = |link: &Link| link.phase().as_live().map(|live| live.generation);
        if live.session.is_for_questions() {
            if let Some(listed) = self.first().phase().as_live() {
                self.first().refresh_and_wait(listed, deadline).await;
            }
        } else if let Some(link) = self.links().find(|link| generation(link) == Some(live.generation)) {
            link.refresh_and_wait(live, deadline).await;
        }
    }

    /// Restarts all connections that are not idle, and the first one in any case. The one for questions is opened anew by the next call that needs
    /// it.
    pub(super) async fn reconnect(&self) {
        self.question_link.reset();
        let running = self.links().skip(1).filter(|link| !matches!(link.phase(), Phase::Idle));
        join_all(std::iter::once(self.first()).chain(running).map(Link::reconnect)).await;
    }

    /// Sets how long the first connection may be idle.
    pub(super) fn set_idle_limit(&self, idle: Option<Duration>) {
        self.leases[0].set_idle_limit(idle);
    }

    /// How many requests use connections that no other server shares.
    pub(super) fn uses(&self) -> usize {
        let own = self.leases.iter().filter(|hold| hold.is_sole_holder());
        own.map(|hold| hold.link().uses()).sum::<usize>() + self.question_link.uses()
    }

    /// Closes the connections that no other server shares, and waits until they are closed.
    pub(super) async fn close(&self) {
        let question_link = self.question_link.close();
        join_all(self.leases.iter().chain(question_link.as_deref()).map(LinkLease::close)).await;
    }
}

/// The catalogue that is known before the first start: what another instance has listed in this run, or what an earlier run has stored. That of a
/// principal is neither loaded from the store nor saved to it.
fn load_known_catalog(
    plan: &ConnectionPlan,
    config: &ServerConfig,
    shared: &BoardShared,
    history: &InstanceHistory,
) -> KnownCatalog {
    let name = plan.spec.name.clone();
    let listed = history.catalog().filter(|_| config.policy.scope == Scope::Session);
    if let Some(listed) = listed {
        return KnownCatalog::of_other_instance(name, listed).into_masked(&plan.spec.masker.current());
    }
    let reached_by = match &plan.spec.target {
        _ if plan.spec.owner.is_some() => None,
        Target::Configured(transport) => Some(transport.fingerprint()),
        Target::StandIn(_) => Some(format!("in place of {}", config.transport.fingerprint())),
        Target::InProcess(_) => None,
    };
    let store = shared.catalogs.clone().zip(reached_by);
    // What is asked of the server decides what it lists, too.
    let asked = format!(
        "{:?} {:?} {:?} {:?} {:?}",
        shared.link_context.list_scope, plan.capabilities, plan.described, plan.spec.era, plan.spec.roots
    );
    let store = store.map(|(store, reached_by)| (store, format!("{reached_by} {asked}")));
    let known = KnownCatalog::new(name, store).into_masked(&plan.spec.masker.current());
    match plan.spec.target {
        Target::StandIn(_) => known.into_unconfirmed(),
        Target::Configured(_) | Target::InProcess(_) => known,
    }
}

/// The state of a connection, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkState {
    Running,
    /// Not running; a call may start it.
    Unstarted,
    Down,
}

impl LinkState {
    fn read(link: &Link) -> Self {
        match link.phase() {
            Phase::Ready(_) | Phase::Connecting(_) => Self::Running,
            Phase::Idle => Self::read_unstarted(link),
            Phase::Down(outage) if outage.starts_on_call() => Self::read_unstarted(link),
            Phase::Down(_) | Phase::Disabled | Phase::Closed => Self::Down,
        }
    }

    /// The state of a connection that a call may start. If a call uses it, that call is about to start it.
    fn read_unstarted(link: &Link) -> Self {
        if link.uses() > 0 {
            Self::Running
        } else {
            Self::Unstarted
        }
    }
}

fn is_well(link: &Link) -> bool {
    LinkState::read(link) == LinkState::Running
}

/// How many connections a server may have.
fn size(config: &ServerConfig) -> usize {
    match config.policy.scope {
        Scope::Pool(size) => size.clamp(1, 64),
        Scope::Shared | Scope::Session => 1,
    }
}

/// How many concurrent calls one connection takes.
fn slots(config: &ServerConfig) -> usize {
    if config.policy.serial {
        1
    } else {
        config.limits.max_in_flight.max(1)
    }
}

/// How many concurrent calls all connections of a server take.
pub(super) fn total_slots(config: &ServerConfig) -> usize {
    slots(config).saturating_mul(size(config))
}

/// How long the connection at index `at` may be idle, where `first` applies to the first one. The others were started for load only, so by default
/// they have a limit even if the first one has none.
fn idle_after(config: &ServerConfig, first: Option<Duration>, at: usize) -> Option<Duration> {
    match config.policy.idle_stop {
        IdleStop::Auto if at > 0 => Some(IDLE),
        _ => first,
    }
}

/// How long the connection for questions may be idle. It was started for a few calls only.
pub(super) fn question_idle(config: &ServerConfig, first: Option<Duration>) -> Option<Duration> {
    idle_after(config, first, 1)
}
