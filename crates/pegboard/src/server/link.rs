//! One connection: its supervisor task, the phase that the supervisor publishes, and leases for the servers that use it.
//!
//! Servers with compatible connection settings lease the same link, so that a server that is configured twice is started once. The link ends
//! when its last lease is released.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::{mpsc, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    closing_links::ClosingLinks,
    connection_plan::ConnectionPlan,
    event_publisher::LinkReporter,
    health_check::HealthCheck,
    known_catalog::KnownCatalog,
    link_context::LinkContext,
    link_parts::LinkParts,
    link_usage::{ReleaseNotifier, Usage, UseGuard},
    outage::Outage,
    phase::{Live, Phase},
    predecessors::Predecessors,
    revision::Revision,
    supervisor::{Command, History, Supervisor},
};
use pegboard_base::{deadline::Deadline, name::ServerName};

/// How often a waiting caller sends its command again, in case the supervisor's channel was full.
pub(super) const RESEND: Duration = Duration::from_secs(1);
/// The longest wait for a reconnect. Closing the old session takes at most this long.
const RECONNECT: Duration = Duration::from_secs(15);
/// The capacity of a supervisor's command channel.
const COMMANDS: usize = 32;

/// A handle to one connection. Only leases keep the connection running, see [`LinkLease`].
#[derive(Debug, Clone)]
pub(super) struct Link(Arc<LinkInner>);

#[derive(Debug)]
struct LinkInner {
    parts: LinkParts,
    /// The name of the server that the link was created for. The tools in its catalogue carry this name.
    name: ServerName,
    phase: watch::Receiver<Phase>,
    /// Commands to the supervisor. A full channel drops commands; callers that wait for an effect send theirs again.
    commands: mpsc::Sender<Command>,
    tasks: TaskTracker,
    /// Tracks the tasks of links without leases until they have ended.
    closing: Arc<ClosingLinks>,
    stop: CancellationToken,
    _stops_on_drop: DropGuard,
}

impl Link {
    /// Creates a link and spawns its supervisor.
    pub(super) fn new(
        plan: ConnectionPlan,
        known: Arc<KnownCatalog>,
        released: Arc<ReleaseNotifier>,
        revision: Arc<Revision>,
        context: &LinkContext,
    ) -> Self {
        let (link, supervisor) = Self::with_supervisor(plan, known, released, revision, context);
        link.0.tasks.spawn(supervisor.run());
        link
    }

    /// Creates a link and a supervisor that does not run yet.
    pub(super) fn with_supervisor(
        plan: ConnectionPlan,
        known: Arc<KnownCatalog>,
        released: Arc<ReleaseNotifier>,
        revision: Arc<Revision>,
        context: &LinkContext,
    ) -> (Self, Supervisor) {
        let (publish, phase) = watch::channel(Phase::Idle);
        let name = plan.spec.name.clone();
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        // Closing lets `wait` return; a closed tracker still accepts tasks.
        tasks.close();
        let closing = TaskTracker::new();
        closing.close();
        let parts = LinkParts::new(plan, known, Usage::new(released));
        let supervisor = Supervisor {
            parts: parts.clone(),
            list_scope: context.list_scope,
            phase: publish,
            commands: receiver,
            revision,
            generations: context.generations.clone(),
            stop: stop.clone(),
            starts: context.starts.clone(),
            processes: context.processes.clone(),
            process: None,
            history: History::new(&context.backoff),
            closing,
            tasks: tasks.clone(),
        };
        let link = Self(Arc::new(LinkInner {
            parts,
            name,
            phase,
            commands,
            _stops_on_drop: stop.clone().drop_guard(),
            closing: context.closing.clone(),
            tasks,
            stop,
        }));
        (link, supervisor)
    }

    pub(super) fn downgrade(&self) -> WeakLink {
        WeakLink(Arc::downgrade(&self.0))
    }

    pub(super) fn plan(&self) -> Arc<ConnectionPlan> {
        self.0.parts.plan()
    }

    /// The name of the server that the link was created for.
    pub(super) fn name(&self) -> &ServerName {
        &self.0.name
    }

    /// The current phase, whose events were sent.
    pub(super) fn phase(&self) -> Phase {
        let _published = self.0.parts.holders.by_number.lock();
        self.0.phase.borrow().clone()
    }

    pub(super) fn known_catalog(&self) -> &KnownCatalog {
        &self.0.parts.known
    }

    /// The servers that must have ended before the connection is made.
    pub(super) fn predecessors(&self) -> &Predecessors {
        &self.0.parts.predecessors
    }

    /// The newest health check.
    pub(super) fn last_check(&self) -> Option<HealthCheck> {
        self.0.parts.checks.last()
    }

    /// How many requests use the connection now.
    pub(super) fn uses(&self) -> usize {
        self.0.parts.usage.count()
    }

    /// Registers a use of the connection. Returns `None` while the connection is being closed because it was idle.
    pub(super) fn begin_use(&self) -> Option<Arc<UseGuard>> {
        self.0.parts.usage.begin()
    }

    pub(super) fn send(&self, command: Command) {
        let _ = self.0.commands.try_send(command);
    }

    /// Leases the link to a server that lets it idle for at most `idle`. Returns `None` if the link has ended.
    pub(super) fn lease(&self, idle: Option<Duration>, reporter: LinkReporter) -> Option<LinkLease> {
        let number = self.0.parts.holders.enter(idle, reporter, &self.0.phase)?;
        let link = self.clone();
        Some(LinkLease { link, number })
    }

    /// Returns the current session if it is ready and its generation is not `old_generation`.
    pub(super) fn live_now(&self, old_generation: u64) -> Option<Live> {
        let ready = self.0.parts.ready.load();
        let ready = ready.as_ref().filter(|ready| ready.generation != old_generation)?;
        Some(Live::new(ready.clone()))
    }

    /// Waits for a session whose generation is not `old_generation`, and starts the server if needed. Fails with the outage if the server is
    /// down, unless a restart is due within the caller's time and the wait for restarts.
    pub(super) async fn live_after(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        let mut phase = self.0.phase.clone();
        let patience = self.restart_patience(deadline);
        // A caller waits for one start at most. `awaited` is the outage that this start should end.
        let (mut has_start_begun, mut awaited) = (false, None);
        phase.mark_unchanged();
        loop {
            let mut pause = RESEND;
            match self.phase() {
                Phase::Ready(live) if live.generation != old_generation => return Ok(live),
                Phase::Ready(_) => self.send(Command::Replace(old_generation)),
                Phase::Connecting(_) => has_start_begun = true,
                Phase::Down(outage) if awaited.as_ref().is_some_and(|awaited| Arc::ptr_eq(awaited, &outage)) => {
                    self.send(Command::Start);
                }
                Phase::Down(outage) if !has_start_begun && outage.starts_on_call() => {
                    self.send(Command::Start);
                    (has_start_begun, awaited) = (true, Some(outage));
                }
                Phase::Down(outage) if !patience.has_passed() && outage.restarts_by(patience.instant()) => {
                    pause = pause.min(patience.remaining());
                }
                Phase::Down(outage) => return Err(outage),
                Phase::Idle => {
                    self.send(Command::Start);
                    has_start_begun = true;
                }
                Phase::Disabled | Phase::Closed => return Err(Outage::closed().into()),
            }
            // The command may have been dropped, because the channel was full.
            if let Ok(Err(_)) = tokio::time::timeout(pause, phase.changed()).await {
                return Err(Outage::closed().into());
            }
        }
    }

    /// Until when a caller waits for restarts after one has failed. With a `start_wait` all callers have shared one wait already.
    fn restart_patience(&self, deadline: Deadline) -> Deadline {
        let restart = &self.plan().restart;
        match restart.start_wait.is_zero() {
            true => deadline.at_most(restart.wait),
            false => Deadline::within(Duration::ZERO),
        }
    }

    /// Waits for the next change of the phase.
    pub(super) async fn changed(&self) {
        let mut phase = self.0.phase.clone();
        phase.mark_unchanged();
        let _ = phase.changed().await;
    }

    /// Lists the server again, unless it was listed since `live` was obtained, and waits until the listing has succeeded or failed.
    pub(super) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        let mut phase = self.0.phase.clone();
        let is_unchanged = |phase: &Phase| {
            let now = phase.as_live();
            now.is_some_and(|now| (now.generation, now.listing) == (live.generation, live.listing))
        };
        let waiting = async {
            phase.mark_unchanged();
            while is_unchanged(&self.phase()) {
                self.send(Command::Refresh);
                // The command may have been dropped, because the channel was full.
                let _ = tokio::time::timeout(RESEND, phase.changed()).await;
            }
        };
        let _ = deadline
            .at_most(self.plan().spec.limits.list_timeout + RESEND)
            .run(waiting)
            .await;
    }

    /// Restarts the server, and waits until the old session is closed or the old outage is over.
    pub(super) async fn reconnect(&self) {
        let mut phase = self.0.phase.clone();
        let old = phase.borrow_and_update().clone();
        let mut is_sent = self.0.commands.try_send(Command::Reconnect).is_ok();
        let has_restarted = |phase: &Phase| match (phase, &old) {
            (Phase::Ready(now), Phase::Ready(old)) => now.generation != old.generation,
            (Phase::Down(now), Phase::Down(old)) => !Arc::ptr_eq(now, old),
            (Phase::Idle, Phase::Idle) => false,
            _ => true,
        };
        // Closing a session is bounded, so this wait does not cut it short.
        let deadline = Deadline::within(RECONNECT);
        while !deadline.has_passed() {
            let waited = tokio::time::timeout(RESEND, phase.wait_for(has_restarted))
                .await
                .is_ok();
            // The events of the restart were sent when the phase can be read.
            drop(self.phase());
            // A supervisor that is gone restarts nothing.
            if is_sent && waited || self.0.commands.is_closed() {
                return;
            }
            // The channel was full.
            is_sent = is_sent || self.0.commands.try_send(Command::Reconnect).is_ok();
        }
    }
}

/// A reference to a link that does not keep it alive.
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

/// A server's share in a link. Releasing the last lease ends the link.
#[derive(Debug)]
pub(super) struct LinkLease {
    link: Link,
    number: u64,
}

impl LinkLease {
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Applies another plan and idle limit. Returns `false` and changes nothing if other servers lease the link and the plan is not
    /// compatible with it.
    pub(super) fn retune(&self, mut plan: ConnectionPlan, idle: Option<Duration>) -> bool {
        let mut holders = self.link.0.parts.holders.by_number.lock();
        let old = self.link.plan();
        if !old.is_compatible_with(&plan) {
            if holders.len() > 1 {
                return false;
            }
            // The current catalogue carries the name of the server that the link was created for.
            plan.spec.name = old.spec.name.clone();
            // Subscriptions, log level and roots outlive sessions.
            plan.spec.desired_state = old.spec.desired_state.clone();
            plan.spec.masker = old.spec.masker.clone();
            if old.masking != plan.masking {
                plan.spec.masker.set_policy(&plan.masking);
                // The current catalogue was masked under the old settings.
                self.link.send(Command::Refresh);
            }
            *self.link.0.parts.plan.write() = Arc::new(plan);
        }
        if let Some(holder) = holders.get_mut(&self.number) {
            holder.idle = idle;
        }
        true
    }

    /// Sets how long the link may be idle before this server agrees to close it.
    pub(super) fn set_idle_limit(&self, idle: Option<Duration>) {
        if let Some(holder) = self.link.0.parts.holders.by_number.lock().get_mut(&self.number) {
            holder.idle = idle;
        }
    }

    /// Whether no other server leases the link.
    pub(super) fn is_sole_holder(&self) -> bool {
        self.link.0.parts.holders.by_number.lock().len() <= 1
    }

    /// Releases the lease. If it was the last one, waits until the link has ended.
    pub(super) async fn close(&self) {
        self.release();
        if self.link.0.stop.is_cancelled() {
            self.link.0.tasks.wait().await;
        }
    }

    /// Releases the lease without waiting. Idempotent.
    fn release(&self) {
        let link = &self.link.0;
        if link.parts.holders.leave(self.number) && !link.stop.is_cancelled() {
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
