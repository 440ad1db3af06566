//! One connection's life: a supervisor, the phase that it publishes, and those who hold it. It ends with its last holder.
//!
//! Two servers that are reached in the same way hold the same link, so that what is configured twice is started once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use futures_util::future::join_all;
use tokio::sync::{mpsc, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    Shared,
    event_publisher::LinkReporter,
    health_check::{HealthCheck, HealthChecks},
    known_catalog::KnownCatalog,
    phase::{Live, Outage, Phase, Ready},
    revision::Revision,
    supervisor::{Command, Memory, Supervisor},
    usage::{Freed, Usage, Use},
};
use crate::{
    config::{Capabilities, Health, Limits, Restart, ServerConfig},
    deadline::Deadline,
    mask::Masking,
    name::ServerName,
    session::{Described, DesiredState, Spec},
    transport::Target,
};

/// How often a supervisor is reminded by those who wait.
pub(super) const REMIND: Duration = Duration::from_secs(1);
/// How long a switch may take: a server has as long to end.
const SWITCH: Duration = Duration::from_secs(15);
/// How many commands wait for a supervisor that is busy.
const COMMANDS: usize = 32;

/// What a connection is made of.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) spec: Spec,
    pub(super) restart: Restart,
    pub(super) health: Health,
    /// What is hidden in what the server says beside its results.
    pub(super) masking: Masking,
    pub(super) capabilities: Capabilities,
    /// Tools that the server does not list.
    pub(super) described: Arc<Described>,
}

impl Plan {
    pub(super) fn new(spec: Spec, config: &ServerConfig) -> Self {
        Self {
            spec: Spec {
                era: config.era.clone(),
                limits: config.limits,
                roots: config.roots.clone(),
                desired_state: DesiredState::new(&config.roots),
                // One of its own: the server's follows every change of its settings, and the connection may be shared.
                masker: spec.masker.with(&config.policy.masking),
                ..spec
            },
            masking: config.policy.masking.clone(),
            restart: config.policy.restart.clone(),
            health: config.policy.health,
            capabilities: config.policy.capabilities,
            described: Arc::new(config.tool_schemas.clone()),
        }
    }

    /// Whether one connection can serve both. What is looked at for each call is no part of that.
    pub(super) fn fits(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.spec, &other.spec);
        let limits = Limits {
            call_idle: theirs.limits.call_idle,
            call_total: theirs.limits.call_total,
            in_flight: theirs.limits.in_flight,
            ..ours.limits
        };
        let same_target = match (&ours.target, &theirs.target) {
            (Target::Configured(ours), Target::Configured(theirs)) => ours == theirs,
            (Target::InProcess(ours), Target::InProcess(theirs)) | (Target::StandIn(ours), Target::StandIn(theirs)) => {
                Arc::ptr_eq(ours, theirs)
            }
            (Target::Configured(_) | Target::InProcess(_) | Target::StandIn(_), _) => false,
        };
        same_target
            && ours.era == theirs.era
            && ours.roots == theirs.roots
            && limits == theirs.limits
            && self.restart == other.restart
            && self.health == other.health
            && self.masking == other.masking
            && self.capabilities == other.capabilities
            && self.described == other.described
    }
}

/// One connection. A link that is only known, and not held, keeps nothing alive.
#[derive(Debug, Clone)]
pub(super) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    plan: Arc<RwLock<Arc<Plan>>>,
    /// Whom it was made for. What it lists bears that name.
    name: ServerName,
    phase: watch::Receiver<Phase>,
    /// The same as the phase while that is ready. Every call looks here, so looking must not make the cores wait for each other.
    ready: Arc<ArcSwapOption<Ready>>,
    /// What is asked of the supervisor. A full channel loses only what others have asked for as well.
    commands: mpsc::Sender<Command>,
    checks: Arc<HealthChecks>,
    known: Arc<KnownCatalog>,
    usage: Arc<Usage>,
    holders: Arc<Holders>,
    tasks: TaskTracker,
    /// Where the board finds the tasks of a link that has no holder any more.
    ending: Arc<ClosingLinks>,
    stop: CancellationToken,
    _stops_on_drop: DropGuard,
}

impl Link {
    /// A link whose supervisor runs.
    pub(super) fn new(
        plan: Plan,
        known: Arc<KnownCatalog>,
        freed: Arc<Freed>,
        revision: Arc<Revision>,
        shared: &Shared,
    ) -> Self {
        let (link, supervisor) = Self::unattended(plan, known, freed, revision, shared);
        link.0.tasks.spawn(supervisor.run());
        link
    }

    /// A link, and its supervisor that does not run yet.
    pub(super) fn unattended(
        plan: Plan,
        known: Arc<KnownCatalog>,
        freed: Arc<Freed>,
        revision: Arc<Revision>,
        shared: &Shared,
    ) -> (Self, Supervisor) {
        let (publish, phase) = watch::channel(Phase::Idle);
        let ready = Arc::<ArcSwapOption<Ready>>::default();
        let name = plan.spec.name.clone();
        let (commands, asked) = mpsc::channel(COMMANDS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        // More may be spawned; it only means that their end can be waited for.
        tasks.close();
        let (usage, holders) = (Usage::new(freed), Arc::<Holders>::default());
        let checks = Arc::<HealthChecks>::default();
        let plan = Arc::new(RwLock::new(Arc::new(plan)));
        let supervisor = Supervisor {
            plan: plan.clone(),
            survey: shared.survey,
            publish,
            ready: ready.clone(),
            commands: asked,
            revision,
            generations: shared.generations.clone(),
            stop: stop.clone(),
            starts: shared.starts.clone(),
            processes: shared.processes.clone(),
            process: None,
            memory: Memory::new(&shared.backoff),
            checks: checks.clone(),
            known: known.clone(),
            usage: usage.clone(),
            holders: holders.clone(),
            tasks: tasks.clone(),
        };
        let link = Self(Arc::new(Inner {
            plan,
            name,
            phase,
            ready,
            commands,
            checks,
            known,
            usage,
            holders,
            _stops_on_drop: stop.clone().drop_guard(),
            ending: shared.ending.clone(),
            tasks,
            stop,
        }));
        (link, supervisor)
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        self.0.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name that it was made for.
    pub(super) fn name(&self) -> &ServerName {
        &self.0.name
    }

    pub(super) fn phase(&self) -> Phase {
        self.0.phase.borrow().clone()
    }

    pub(super) fn known(&self) -> &KnownCatalog {
        &self.0.known
    }

    /// The last check of its server's health.
    pub(super) fn last_check(&self) -> Option<HealthCheck> {
        self.0.checks.last()
    }

    /// How many use it now.
    pub(super) fn uses(&self) -> usize {
        self.0.usage.count()
    }

    /// Begins to use it; not while it is being ended because nobody did.
    pub(super) fn begin_use(&self) -> Option<Arc<Use>> {
        self.0.usage.begin()
    }

    pub(super) fn ask(&self, command: Command) {
        let _ = self.0.commands.try_send(command);
    }

    /// Begins to hold it, with the time after which this holder lets it rest; `None` when it has ended.
    pub(super) fn hold(&self, idle: Option<Duration>, reporter: LinkReporter) -> Option<Hold> {
        let number = self.0.holders.enter(idle, reporter, &self.0.phase)?;
        let link = self.clone();
        Some(Hold { link, number })
    }

    /// The session that is ready at this moment, when it is not the one that was left behind.
    pub(super) fn live_now(&self, left_behind: u64) -> Option<Live> {
        let ready = self.0.ready.load();
        let ready = ready.as_ref().filter(|ready| ready.generation != left_behind)?;
        Some(Live::new(ready.clone()))
    }

    /// The session that is ready, once it is, and when it is not the one that was left behind. When the server is down, the outage.
    pub(super) async fn live_after(&self, left_behind: u64) -> Result<Live, Arc<Outage>> {
        let mut phase = self.0.phase.clone();
        // A caller waits for one start: whether one has begun, and the outage that it was to end.
        let (mut waits, mut ended) = (false, None);
        loop {
            match &*phase.borrow_and_update() {
                Phase::Ready(live) if live.generation != left_behind => return Ok(live.clone()),
                Phase::Ready(_) => self.ask(Command::Replace(left_behind)),
                Phase::Connecting(_) => waits = true,
                Phase::Down(outage) if ended.as_ref().is_some_and(|ended| Arc::ptr_eq(ended, outage)) => {
                    self.ask(Command::Start);
                }
                Phase::Down(outage) if !waits && outage.is_ended_by_calls() => {
                    self.ask(Command::Start);
                    (waits, ended) = (true, Some(outage.clone()));
                }
                Phase::Down(outage) => return Err(outage.clone()),
                Phase::Idle => {
                    self.ask(Command::Start);
                    waits = true;
                }
                Phase::Disabled | Phase::Closed => return Err(Outage::closed().into()),
            }
            // A command that found the supervisor's mailbox full is given again.
            if let Ok(Err(_)) = tokio::time::timeout(REMIND, phase.changed()).await {
                return Err(Outage::closed().into());
            }
        }
    }

    /// Waits until its phase is another one.
    pub(super) async fn changed(&self) {
        let mut phase = self.0.phase.clone();
        phase.mark_unchanged();
        let _ = phase.changed().await;
    }

    /// Lists it again, unless that was done since `live` was had, and waits until the listing has ended, well or not.
    pub(super) async fn relisted(&self, live: &Live, deadline: Deadline) {
        let mut phase = self.0.phase.clone();
        let is_as_it_was = |phase: &Phase| {
            let now = phase.live();
            now.is_some_and(|now| (now.generation, now.listing) == (live.generation, live.listing))
        };
        let waiting = async {
            while is_as_it_was(&phase.borrow_and_update()) {
                self.ask(Command::Refresh);
                // A command that found the supervisor's mailbox full is given again.
                let _ = tokio::time::timeout(REMIND, phase.changed()).await;
            }
        };
        let _ = deadline
            .at_most(self.plan().spec.limits.list + REMIND)
            .run(waiting)
            .await;
    }

    /// Starts it anew, and waits until the old session, or what was wrong, is left behind.
    pub(super) async fn reconnect(&self) {
        let mut phase = self.0.phase.clone();
        let old = phase.borrow_and_update().clone();
        let mut is_asked = self.0.commands.try_send(Command::Reconnect).is_ok();
        let is_left = |phase: &Phase| match (phase, &old) {
            (Phase::Ready(now), Phase::Ready(old)) => now.generation != old.generation,
            (Phase::Down(now), Phase::Down(old)) => !Arc::ptr_eq(now, old),
            (Phase::Idle, Phase::Idle) => false,
            _ => true,
        };
        // Closing a server is bounded, so that is never cut short.
        let deadline = Deadline::within(SWITCH);
        while !deadline.has_passed() {
            let waited = tokio::time::timeout(REMIND, phase.wait_for(is_left)).await;
            if is_asked && waited.is_ok() {
                return;
            }
            // The supervisor's mailbox was full.
            is_asked = is_asked || self.0.commands.try_send(Command::Reconnect).is_ok();
        }
    }
}

/// Those who hold a link, by number.
#[derive(Debug, Default)]
pub(super) struct Holders {
    state: Mutex<BTreeMap<u64, Holder>>,
    entered: AtomicU64,
    is_over: CancellationToken,
}

/// A server that holds a link.
#[derive(Debug)]
struct Holder {
    /// After how long without a use it lets the link rest.
    idle: Option<Duration>,
    reporter: LinkReporter,
}

impl Holders {
    fn enter(&self, idle: Option<Duration>, mut reporter: LinkReporter, phase: &watch::Receiver<Phase>) -> Option<u64> {
        let mut state = self.lock();
        if self.is_over.is_cancelled() {
            return None;
        }
        let number = self.entered.fetch_add(1, Ordering::Relaxed);
        // Under the lock, as all reports are: no phase is missed or reported after a later one.
        reporter.join(&phase.borrow());
        state.insert(number, Holder { idle, reporter });
        Some(number)
    }

    /// Reports something to every server that holds the link.
    pub(super) fn report(&self, mut report: impl FnMut(&mut LinkReporter)) {
        for holder in self.lock().values_mut() {
            report(&mut holder.reporter);
        }
    }

    /// Whether it was the last one.
    fn leave(&self, number: u64) -> bool {
        let mut state = self.lock();
        state.remove(&number);
        if state.is_empty() {
            self.is_over.cancel();
        }
        state.is_empty()
    }

    /// After how long without a use the connection is ended: when every holder agrees to that.
    pub(super) fn idle_after(&self) -> Option<Duration> {
        let state = self.lock();
        let longest = state
            .values()
            .try_fold(Duration::ZERO, |most, holder| holder.idle.map(|idle| most.max(idle)));
        longest.filter(|_| !state.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Holder>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A share in a link. When the last one is dropped, the link ends.
#[derive(Debug)]
pub(super) struct Hold {
    link: Link,
    number: u64,
}

impl Hold {
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Takes over another plan, and another time to rest. Not when others hold the link too and the plan does not fit theirs.
    pub(super) fn retune(&self, mut plan: Plan, idle: Option<Duration>) -> bool {
        let mut holders = self.link.0.holders.lock();
        let old = self.link.plan();
        if !old.fits(&plan) {
            if holders.len() > 1 {
                return false;
            }
            // What is listed already bears the name of whoever made the link.
            plan.spec.name = old.spec.name.clone();
            // What is wanted of the sessions outlasts them.
            plan.spec.desired_state = old.spec.desired_state.clone();
            plan.spec.masker = old.spec.masker.clone();
            if old.masking != plan.masking {
                plan.spec.masker.set_policy(&plan.masking);
                // What is listed already was masked as the old settings say.
                self.link.ask(Command::Refresh);
            }
            *self.link.0.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        }
        if let Some(holder) = holders.get_mut(&self.number) {
            holder.idle = idle;
        }
        true
    }

    /// Sets after how long without a use this holder lets the link rest.
    pub(super) fn rest_after(&self, idle: Option<Duration>) {
        if let Some(holder) = self.link.0.holders.lock().get_mut(&self.number) {
            holder.idle = idle;
        }
    }

    /// Whether there is no other holder.
    pub(super) fn is_alone(&self) -> bool {
        self.link.0.holders.lock().len() <= 1
    }

    /// Lets go. When nobody else holds the link, its end is waited for.
    pub(super) async fn close(&self) {
        self.let_go();
        if self.link.0.stop.is_cancelled() {
            self.link.0.tasks.wait().await;
        }
    }

    /// The second time changes nothing.
    fn let_go(&self) {
        let link = &self.link.0;
        if link.holders.leave(self.number) && !link.stop.is_cancelled() {
            link.ending.watch(&link.tasks);
            link.stop.cancel();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The tasks of links that have no holder any more and are closing their connections. Shutdown waits for them.
#[derive(Debug, Default)]
pub(crate) struct ClosingLinks(Mutex<Vec<TaskTracker>>);

impl ClosingLinks {
    fn watch(&self, tasks: &TaskTracker) {
        let mut ending = self.lock();
        ending.retain(|tasks| !tasks.is_empty());
        ending.push(tasks.clone());
    }

    /// Waits until all that is closing now has closed. Every close is bounded by the limits of its server.
    pub(crate) async fn wait(&self) {
        let ending = std::mem::take(&mut *self.lock());
        join_all(ending.iter().map(TaskTracker::wait)).await;
    }

    /// How many links are closing.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().iter().filter(|tasks| !tasks.is_empty()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TaskTracker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The links of a board that may be shared.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<Vec<Weak<Inner>>>);

impl Links {
    /// A share in a link that fits the plan: one that is there, or the one that is made now.
    pub(super) fn join(
        &self,
        plan: &Plan,
        idle: Option<Duration>,
        reporter: LinkReporter,
        make: impl Fn() -> Link,
    ) -> Hold {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|link| link.strong_count() > 0);
        let mut known = links.iter().filter_map(Weak::upgrade).map(Link);
        let shared = known.find_map(|link| {
            link.plan()
                .fits(plan)
                .then(|| link.hold(idle, reporter.clone()))
                .flatten()
        });
        shared.unwrap_or_else(|| {
            let link = make();
            links.push(Arc::downgrade(&link.0));
            // A link that was made just now has not ended.
            link.hold(idle, reporter).expect("nobody has held it yet")
        })
    }
}
