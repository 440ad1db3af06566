//! One connection's life: a supervisor, the phase that it publishes, and those who hold it. It ends with its last holder.
//!
//! Two servers that are reached in the same way hold the same link, so that what is configured twice is started once.

use std::{
    sync::{Arc, PoisonError, RwLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    closing_links::ClosingLinks,
    connection_plan::ConnectionPlan,
    event_publisher::LinkReporter,
    health_check::{HealthCheck, HealthChecks},
    known_catalog::KnownCatalog,
    link_holders::Holders,
    link_resources::LinkResources,
    link_usage::{ReleaseNotifier, Usage, UseGuard},
    outage::Outage,
    phase::{Live, Phase, Ready},
    revision::Revision,
    supervisor::{Command, History, Supervisor},
};
use crate::{deadline::Deadline, name::ServerName};

/// How often a supervisor is reminded by those who wait.
pub(super) const RESEND: Duration = Duration::from_secs(1);
/// How long a switch may take: a server has as long to end.
const SWITCH: Duration = Duration::from_secs(15);
/// How many commands wait for a supervisor that is busy.
const COMMANDS: usize = 32;

/// One connection. A link that is only known, and not held, keeps nothing alive.
#[derive(Debug, Clone)]
pub(super) struct Link(Arc<LinkInner>);

#[derive(Debug)]
struct LinkInner {
    plan: Arc<RwLock<Arc<ConnectionPlan>>>,
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
    closing: Arc<ClosingLinks>,
    stop: CancellationToken,
    _stops_on_drop: DropGuard,
}

impl Link {
    /// A link whose supervisor runs.
    pub(super) fn new(
        plan: ConnectionPlan,
        known: Arc<KnownCatalog>,
        released: Arc<ReleaseNotifier>,
        revision: Arc<Revision>,
        resources: &LinkResources,
    ) -> Self {
        let (link, supervisor) = Self::with_supervisor(plan, known, released, revision, resources);
        link.0.tasks.spawn(supervisor.run());
        link
    }

    /// A link, and its supervisor that does not run yet.
    pub(super) fn with_supervisor(
        plan: ConnectionPlan,
        known: Arc<KnownCatalog>,
        released: Arc<ReleaseNotifier>,
        revision: Arc<Revision>,
        resources: &LinkResources,
    ) -> (Self, Supervisor) {
        let (publish, phase) = watch::channel(Phase::Idle);
        let ready = Arc::<ArcSwapOption<Ready>>::default();
        let name = plan.spec.name.clone();
        let (commands, asked) = mpsc::channel(COMMANDS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        // More may be spawned; it only means that their end can be waited for.
        tasks.close();
        let (usage, holders) = (Usage::new(released), Arc::<Holders>::default());
        let checks = Arc::<HealthChecks>::default();
        let plan = Arc::new(RwLock::new(Arc::new(plan)));
        let supervisor = Supervisor {
            plan: plan.clone(),
            list_scope: resources.list_scope,
            phase: publish,
            ready: ready.clone(),
            commands: asked,
            revision,
            generations: resources.generations.clone(),
            stop: stop.clone(),
            starts: resources.starts.clone(),
            processes: resources.processes.clone(),
            process: None,
            history: History::new(&resources.backoff),
            checks: checks.clone(),
            known: known.clone(),
            usage: usage.clone(),
            holders: holders.clone(),
            tasks: tasks.clone(),
        };
        let link = Self(Arc::new(LinkInner {
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
            closing: resources.closing.clone(),
            tasks,
            stop,
        }));
        (link, supervisor)
    }

    pub(super) fn downgrade(&self) -> WeakLink {
        WeakLink(Arc::downgrade(&self.0))
    }

    pub(super) fn plan(&self) -> Arc<ConnectionPlan> {
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

    /// Begins to use it; not while it is being awaited because nobody did.
    pub(super) fn begin_use(&self) -> Option<Arc<UseGuard>> {
        self.0.usage.begin()
    }

    pub(super) fn send(&self, command: Command) {
        let _ = self.0.commands.try_send(command);
    }

    /// Begins to hold it, with the time after which this holder lets it rest; `None` when it has awaited.
    pub(super) fn lease(&self, idle: Option<Duration>, reporter: LinkReporter) -> Option<LinkLease> {
        let number = self.0.holders.enter(idle, reporter, &self.0.phase)?;
        let link = self.clone();
        Some(LinkLease { link, number })
    }

    /// The session that is ready at this moment, when it is not the one that was left behind.
    pub(super) fn live_now(&self, old_generation: u64) -> Option<Live> {
        let ready = self.0.ready.load();
        let ready = ready.as_ref().filter(|ready| ready.generation != old_generation)?;
        Some(Live::new(ready.clone()))
    }

    /// The session that is ready, once it is, and when it is not the one that was left behind. When the server is down, the outage.
    pub(super) async fn live_after(&self, old_generation: u64) -> Result<Live, Arc<Outage>> {
        let mut phase = self.0.phase.clone();
        // A caller has_start_begun for one start: whether one has begun, and the outage that it was to end.
        let (mut has_start_begun, mut awaited) = (false, None);
        loop {
            match &*phase.borrow_and_update() {
                Phase::Ready(live) if live.generation != old_generation => return Ok(live.clone()),
                Phase::Ready(_) => self.send(Command::Replace(old_generation)),
                Phase::Connecting(_) => has_start_begun = true,
                Phase::Down(outage) if awaited.as_ref().is_some_and(|awaited| Arc::ptr_eq(awaited, outage)) => {
                    self.send(Command::Start);
                }
                Phase::Down(outage) if !has_start_begun && outage.starts_on_call() => {
                    self.send(Command::Start);
                    (has_start_begun, awaited) = (true, Some(outage.clone()));
                }
                Phase::Down(outage) => return Err(outage.clone()),
                Phase::Idle => {
                    self.send(Command::Start);
                    has_start_begun = true;
                }
                Phase::Disabled | Phase::Closed => return Err(Outage::closed().into()),
            }
            // A command that found the supervisor's mailbox full is given again.
            if let Ok(Err(_)) = tokio::time::timeout(RESEND, phase.changed()).await {
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

    /// Lists it again, unless that was done since `live` was had, and has_start_begun until the listing has awaited, well or not.
    pub(super) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        let mut phase = self.0.phase.clone();
        let is_unchanged = |phase: &Phase| {
            let now = phase.live();
            now.is_some_and(|now| (now.generation, now.listing) == (live.generation, live.listing))
        };
        let waiting = async {
            while is_unchanged(&phase.borrow_and_update()) {
                self.send(Command::Refresh);
                // A command that found the supervisor's mailbox full is given again.
                let _ = tokio::time::timeout(RESEND, phase.changed()).await;
            }
        };
        let _ = deadline
            .at_most(self.plan().spec.limits.list + RESEND)
            .run(waiting)
            .await;
    }

    /// Starts it anew, and has_start_begun until the old session, or what was wrong, is left behind.
    pub(super) async fn reconnect(&self) {
        let mut phase = self.0.phase.clone();
        let old = phase.borrow_and_update().clone();
        let mut is_sent = self.0.commands.try_send(Command::Reconnect).is_ok();
        let is_left = |phase: &Phase| match (phase, &old) {
            (Phase::Ready(now), Phase::Ready(old)) => now.generation != old.generation,
            (Phase::Down(now), Phase::Down(old)) => !Arc::ptr_eq(now, old),
            (Phase::Idle, Phase::Idle) => false,
            _ => true,
        };
        // Closing a server is bounded, so that is never cut short.
        let deadline = Deadline::within(SWITCH);
        while !deadline.has_passed() {
            let waited = tokio::time::timeout(RESEND, phase.wait_for(is_left)).await;
            if is_sent && waited.is_ok() {
                return;
            }
            // The supervisor's mailbox was full.
            is_sent = is_sent || self.0.commands.try_send(Command::Reconnect).is_ok();
        }
    }
}

/// A link that is known and not kept alive.
#[derive(Debug)]
pub(super) struct WeakLink(Weak<LinkInner>);

impl WeakLink {
    pub(super) fn is_dropped(&self) -> bool {
        self.0.strong_count() == 0
    }

    pub(super) fn upgrade(&self) -> Option<Link> {
        self.0.upgrade().map(Link)
    }
}

/// A share in a link. When the last one is dropped, the link ends.
#[derive(Debug)]
pub(super) struct LinkLease {
    link: Link,
    number: u64,
}

impl LinkLease {
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Takes over another plan, and another time to rest. Not when others hold the link too and the plan does not fit theirs.
    pub(super) fn retune(&self, mut plan: ConnectionPlan, idle: Option<Duration>) -> bool {
        let mut holders = self.link.0.holders.lock();
        let old = self.link.plan();
        if !old.is_compatible_with(&plan) {
            if holders.len() > 1 {
                return false;
            }
            // What is listed already bears the name of whoever made the link.
            plan.spec.name = old.spec.name.clone();
            // What is desired_state of the sessions outlasts them.
            plan.spec.desired_state = old.spec.desired_state.clone();
            plan.spec.masker = old.spec.masker.clone();
            if old.masking != plan.masking {
                plan.spec.masker.follow(&plan.masking);
                // What is listed already was masked as the old settings say.
                self.link.send(Command::Refresh);
            }
            *self.link.0.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        }
        if let Some(holder) = holders.get_mut(&self.number) {
            holder.idle = idle;
        }
        true
    }

    /// Sets after how long without a use this holder lets the link rest.
    pub(super) fn set_idle_limit(&self, idle: Option<Duration>) {
        if let Some(holder) = self.link.0.holders.lock().get_mut(&self.number) {
            holder.idle = idle;
        }
    }

    /// Whether there is no other holder.
    pub(super) fn is_sole_holder(&self) -> bool {
        self.link.0.holders.lock().len() <= 1
    }

    /// Lets go. When nobody else holds the link, its end is waited for.
    pub(super) async fn close(&self) {
        self.release();
        if self.link.0.stop.is_cancelled() {
            self.link.0.tasks.wait().await;
        }
    }

    /// The second time changes nothing.
    fn release(&self) {
        let link = &self.link.0;
        if link.holders.leave(self.number) && !link.stop.is_cancelled() {
            link.closing.watch(&link.tasks);
            link.stop.cancel();
        }
    }
}

impl Drop for LinkLease {
    fn drop(&mut self) {
        self.release();
    }
}
