//! The task that owns a server's session. Every state is a function, every transition its return value.
//!
//! What callers see is published as a [`Phase`]. While a server is down they fail at once, and the supervisor goes on trying behind it
//! without going back to `Connecting`, so that no caller waits for a start that will fail again. Two rules soften that: while first starts
//! fail, callers wait for as long as `start_wait` says, and a server that is not restarted automatic is started by the next call.

mod history;
mod serving;
mod start;

pub(super) use history::History;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use start::{Started, connect_and_list, process_permit};

use super::{
    backoff::was_healthy,
    health_check::HealthChecks,
    known_catalog::KnownCatalog,
    link::{ConnectionPlan, Holders},
    phase::{Attempt, Cause, Live, NextStart, Outage, OutageStart, Phase, Ready, is_crash},
    revision::Revision,
    usage::Usage,
};
use crate::{
    catalog::{Catalog, store::Freshness},
    config::Probe,
    outcome::millis,
    session::{ConnectError, ListScope},
    transport::{EndReason, WireEnd},
};

/// How long callers wait at least for a session that takes the place of another: its server is there.
const RENEWAL: Duration = Duration::from_secs(10);
/// How long a program that fetches its server first may take, behind the backs of callers that have long been told.
const FETCH: Duration = Duration::from_secs(600);
/// How long an outage is shown at least, where the next call starts the server: callers who waited must learn of it.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

/// What is asked of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Somebody needs the server.
    Start,
    /// The session of this generation is of no use any more.
    Replace(u64),
    /// The session of this generation may be dead: find out.
    Suspect(u64),
    /// List it again.
    Refresh,
    /// Start it anew, whatever its state.
    Reconnect,
}

/// The owner of a server's session.
pub(super) struct Supervisor {
    /// What the connection is made of. It may change while it lives.
    pub(super) plan: Arc<RwLock<Arc<ConnectionPlan>>>,
    pub(super) list_scope: ListScope,
    pub(super) phase: watch::Sender<Phase>,
    /// What is published of a server that is ready, for those who need not wait.
    pub(super) ready: Arc<ArcSwapOption<Ready>>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Raised with everything that is published.
    pub(super) revision: Arc<Revision>,
    /// Counts the sessions of the whole board.
    pub(super) generations: Arc<AtomicU64>,
    pub(super) stop: CancellationToken,
    /// How many servers of the board may be starting at once.
    pub(super) starts: Arc<Semaphore>,
    /// How many processes the board may have.
    pub(super) processes: Arc<Semaphore>,
    /// The place of our process among them.
    pub(super) process: Option<OwnedSemaphorePermit>,
    pub(super) history: History,
    /// Where health checks are noted.
    pub(super) checks: Arc<HealthChecks>,
    /// What the server offered last.
    pub(super) known: Arc<KnownCatalog>,
    pub(super) usage: Arc<Usage>,
    pub(super) holders: Arc<Holders>,
    /// All that must have ended before the server counts as closed.
    pub(super) tasks: TaskTracker,
}

enum Step {
    /// Wait until somebody needs the server.
    Idle,
    /// Start it after a while, while callers wait, for at most so long.
    Connect {
        after: Duration,
        patience: Duration,
    },
    /// Start it behind an outage that callers see.
    ConnectBehindOutage,
    Serve(Live),
    /// Wait for the next start.
    Wait(NextStart),
    Stop,
}

impl Supervisor {
    pub(super) async fn run(mut self) {
        // Wherever a line of it is logged, the name is too.
        let span = tracing::error_span!("server", name = %self.plan().spec.name);
        async {
            let mut step = Step::Idle;
            loop {
                step = match step {
                    Step::Idle => self.idle().await,
                    Step::Connect { after, patience } => self.connecting(after, Some(patience)).await,
                    Step::ConnectBehindOutage => self.connecting(Duration::ZERO, None).await,
                    Step::Serve(live) => self.serving(live).await,
                    Step::Wait(next) => self.waiting(next).await,
                    Step::Stop => break,
                }
            }
            self.publish(Phase::Closed);
        }
        .instrument(span)
        .await;
    }

    fn plan(&self) -> Arc<ConnectionPlan> {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn idle(&mut self) -> Step {
        self.usage.renew();
        self.publish(Phase::Idle);
        loop {
            match self.next_command().await {
                None => return Step::Stop,
                Some(Command::Start) => return self.connect_step(),
                Some(Command::Reconnect) => return self.reconnect_step(),
                Some(Command::Replace(_) | Command::Suspect(_) | Command::Refresh) => {}
            }
        }
    }

    /// Starts the server. With `patience`, callers see `Connecting` until it has passed; the start itself goes on.
    async fn connecting(&mut self, after: Duration, patience: Option<Duration>) -> Step {
        if patience.is_some() {
            self.publish_connecting();
        }
        let plan = self.plan();
        let limit = if plan.spec.fetches_first() {
            FETCH.max(plan.spec.limits.connect)
        } else {
            plan.spec.limits.connect
        };
        let (list_scope, starts, processes) = (
            self.list_scope.within(plan.capabilities),
            self.starts.clone(),
            self.processes.clone(),
        );
        let (tasks, before) = (self.tasks.clone(), self.known.latest());
        let starting = async {
            // Even a wait for nothing would last until the clock's next tick.
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            // It bounds processes and sockets, not the processor: a start is mostly waiting.
            let began = Instant::now();
            let _turn = starts.acquire_owned().await;
            let process = process_permit(&plan.spec, processes).map_err(|error| *error)?;
            let started = connect_and_list(&plan, (list_scope, before), limit, &tasks, process).await;
            started.map(|started| (started, began.elapsed()))
        };
        tokio::pin!(starting);
        // Callers that can wait as long as the start may take learn how it ends.
        let overtaken = patience.filter(|patience| *patience < after + limit);
        let mut shown_until = match patience {
            Some(_) => overtaken.map(|patience| Instant::now() + patience),
            None => self.history.callers_wait_until,
        };
        let started = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                started = &mut starting => break started,
                () = at(shown_until) => {
                    shown_until = None;
                    self.fail_waiting_callers();
                }
                // What else is asked for meanwhile is met by the start itself.
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Reconnect) => return self.reconnect_step(),
                    Some(Command::Start) if self.starts_on_call() => {
                        shown_until = Some(Instant::now() + self.patience());
                        self.publish_connecting();
                    }
                    Some(_) => {}
                }
            }
        };
        match started {
            Ok((started, took)) => Step::Serve(self.live(started, took)),
            Err(error) => self.failed(&error),
        }
    }

    fn live(&mut self, started: Started, took: Duration) -> Live {
        let Started {
            session,
            catalog,
            freshness,
            process,
        } = started;
        for warning in &catalog.warnings {
            tracing::info!("{warning}");
        }
        let (tools, version) = (catalog.tools.len(), &session.facts.version);
        tracing::info!(tools, %version, ready_after_ms = millis(took), "ready");
        self.history.generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.history.failures = 0;
        self.history.outage_began = None;
        self.history.callers_wait_until = None;
        self.history.was_lost = false;
        self.checks.record(None);
        self.process = process;
        let catalog = Arc::new(catalog);
        self.learn(&catalog, freshness);
        Live::new(Arc::new(Ready {
            session: Arc::new(session),
            listed: catalog,
            stale_at: freshness.ttl.map(|ttl| Instant::now() + ttl),
            generation: self.history.generation,
            listing: 0,
            since: Timestamp::now(),
            start: took,
            restarts: self.history.restarts,
            last_outage: self.history.last_outage.clone(),
        }))
    }

    /// Remembers what the server offers, and reports how that differs from before.
    fn learn(&self, catalog: &Arc<Catalog>, freshness: Freshness) {
        if let Some(diff) = self.known.learn(catalog, freshness) {
            self.holders.report(|reporter| reporter.catalog_changed(&diff));
        }
    }

    /// A start has failed: callers learn why, and it is tried again unless that cannot help.
    fn failed(&mut self, error: &ConnectError) -> Step {
        // A target of its own: a program that shows outages itself can leave it out.
        tracing::warn!(
            target: "pegboard::start",
            error = %self.plan().spec.masker.text(&error.to_string()),
            "the start failed"
        );
        self.holders.report(|reporter| reporter.start_failed());
        // Where callers wait while starts fail, all of them are repeated.
        let is_first = self.history.generation == 0 && self.plan().restart.start_wait.is_zero();
        let outage = Outage::of_start(error, is_first);
        self.checks.record(Some(outage.message.clone()));
        if outage.is_final() {
            let cause = outage.cause;
            return self.down(outage, cause, NextStart::NEVER);
        }
        let cause = if self.history.generation > 0 {
            Cause::RestartFailed
        } else {
            Cause::Failed
        };
        let plan = self.plan();
        let restart = &plan.restart;
        self.history.failures = self.history.failures.saturating_add(1);
        if restart.max_attempts.is_some_and(|most| self.history.failures >= most) {
            let outage = outage.given_up_after(self.history.failures);
            // A busy agent must not start a broken server with every call.
            let pause = self.history.schedule(&restart.waits).longest();
            return self.down(outage, cause, NextStart::on_demand_in(pause));
        }
        // A server that says when to come back is not asked before.
        let asked_for = error.retry_after().unwrap_or_default();
        let delay = self.history.next_wait(&restart.waits).max(asked_for);
        if !restart.enabled {
            let next = match self.probe_delay() {
                Some(every) => NextStart {
                    automatic: Some(Instant::now() + every.max(asked_for)),
                    ..NextStart::on_demand_in(MIN_OUTAGE.max(asked_for))
                },
                None => NextStart::on_demand_in(delay.max(MIN_OUTAGE)),
            };
            return self.down(outage, cause, next);
        }
        let next = NextStart::automatic_in(delay);
        if self
            .history
            .callers_wait_until
            .is_none_or(|until| until <= Instant::now())
        {
            return self.down(outage, cause, next);
        }
        let outage = self.in_current_outage(outage, cause, next);
        self.history.last_outage = Some(outage);
        self.publish_connecting();
        Step::Wait(next)
    }

    /// A session has ended: the server is started again at once, or rarely when it keeps closing. With `for_a_call`, a call waits for the
    /// next session.
    fn lost(&mut self, end: &WireEnd, served: Duration, for_a_call: bool) -> Step {
        tracing::warn!(reason = %self.plan().spec.masker.text(&end.reason.to_string()), "the connection was lost");
        self.history.restarts = self.history.restarts.saturating_add(1);
        self.reset_if_healthy(served);
        self.history.was_lost = true;
        let plan = self.plan();
        let (restart, outage) = (&plan.restart, Outage::of_end(end));
        if is_crash(end) && self.history.crashes.exited(Instant::now()) {
            let delay = self.history.next_wait(&restart.waits);
            let delay = self.history.crashes.wait(delay);
            tracing::warn!(next_try_in = ?delay, "the server ends again and again");
            let next = if restart.enabled {
                NextStart::automatic_in(delay)
            } else {
                NextStart {
                    automatic: self.probe_delay().map(|every| Instant::now() + every.max(delay)),
                    ..NextStart::on_demand_in(delay)
                }
            };
            return self.down(outage, Cause::CrashLooping, next);
        }
        let is_wanted = restart.enabled || for_a_call || self.probe_delay().is_some();
        if let EndReason::Replaced(_) = end.reason
            && is_wanted
        {
            // Only this session was of no use: there is no reason to wait before the next.
            return self.restart(outage, Duration::ZERO, restart.wait.max(RENEWAL));
        }
        if !restart.enabled {
            let next = NextStart {
                automatic: self.probe_delay().map(|every| Instant::now() + every),
                ..NextStart::on_demand_in(Duration::ZERO)
            };
            return self.down(outage, Cause::Failed, next);
        }
        let delay = self.history.next_wait(&restart.waits);
        if delay.is_zero() || delay < restart.wait {
            return self.restart(outage, delay, restart.wait);
        }
        self.down(outage, Cause::RestartFailed, NextStart::automatic_in(delay))
    }

    /// Starts the server again while callers wait.
    fn restart(&mut self, outage: Outage, after: Duration, patience: Duration) -> Step {
        let outage = self.in_current_outage(outage, Cause::Failed, NextStart::NEVER);
        self.history.last_outage = Some(outage);
        Step::Connect { after, patience }
    }

    /// How long after a failure a lost server is looked for by a probe, where no restart is due.
    fn probe_delay(&self) -> Option<Duration> {
        let health = self.plan().health;
        let is_probed = health.restarts && health.probe != Probe::Never;
        // What has never been ready is left to the callers.
        health.every.filter(|_| is_probed && self.history.generation > 0)
    }

    /// A session that was healthy lets what happened before it be forgotten.
    fn reset_if_healthy(&mut self, served: Duration) {
        if was_healthy(served, true) {
            self.history.reset();
        }
    }

    /// The server is down from now on, or still.
    fn down(&mut self, outage: Outage, cause: Cause, next: NextStart) -> Step {
        self.history.callers_wait_until = None;
        let outage = self.in_current_outage(outage, cause, next);
        self.history.last_outage = Some(outage.clone());
        self.publish(Phase::Down(outage));
        Step::Wait(next)
    }

    /// A failure as part of the outage that lasts, which begins with it if there is none.
    fn in_current_outage(&mut self, outage: Outage, cause: Cause, next: NextStart) -> Arc<Outage> {
        let began = *self.history.outage_began.get_or_insert_with(OutageStart::now);
        Arc::new(outage.with(cause, self.history.restarts, began, next))
    }

    fn publish_connecting(&self) {
        let since = match &*self.phase.borrow() {
            Phase::Connecting(attempt) => attempt.since,
            _ => Timestamp::now(),
        };
        self.publish(Phase::Connecting(Attempt {
            since,
            after: self.history.last_outage.clone(),
            restarts: self.history.restarts,
        }));
    }

    /// Callers have waited long enough for the start that is under way. They are told why the one before failed, if it did.
    fn fail_waiting_callers(&mut self) {
        let failed = match self.history.callers_wait_until.take() {
            Some(_) if self.history.failures > 0 => self.history.last_outage.as_deref().cloned(),
            _ => None,
        };
        let outage = match failed {
            Some(outage) => Arc::new(outage.with_next(NextStart::NEVER)),
            None => self.in_current_outage(Outage::still_starting(), Cause::StillStarting, NextStart::NEVER),
        };
        self.publish(Phase::Down(outage));
    }

    /// Whether callers see an outage that a call ends.
    fn starts_on_call(&self) -> bool {
        matches!(&*self.phase.borrow(), Phase::Down(outage) if outage.starts_on_call())
    }

    async fn waiting(&mut self, next: NextStart) -> Step {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                () = at(next.automatic) => return Step::ConnectBehindOutage,
                () = at(self.history.callers_wait_until) => {
                    self.history.callers_wait_until = None;
                    if let Some(outage) = self.history.last_outage.clone() {
                        self.publish(Phase::Down(outage));
                    }
                }
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Reconnect) => return self.reconnect_step(),
                    Some(Command::Start) if next.is_on_demand() => {
                        return Step::Connect { after: Duration::ZERO, patience: self.patience() };
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn reconnect_step(&mut self) -> Step {
        self.history.reset();
        self.history.was_lost = false;
        self.connect_step()
    }

    fn connect_step(&mut self) -> Step {
        let hold = self.plan().restart.start_wait;
        self.history.callers_wait_until = (!hold.is_zero()).then(|| Instant::now() + hold);
        Step::Connect {
            after: Duration::ZERO,
            patience: self.patience().max(hold),
        }
    }

    /// How long callers wait for a start: less for a restart, because the server was there.
    fn patience(&self) -> Duration {
        let plan = self.plan();
        if self.history.was_lost {
            plan.restart.wait
        } else {
            plan.spec.limits.connect
        }
    }

    /// The next command; `None` when the server must end.
    async fn next_command(&mut self) -> Option<Command> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            command = self.commands.recv() => command,
        }
    }

    /// All change as one: whoever sees the new phase sees the new revision too, and does not look into what was built for the old one.
    fn publish(&self, mut phase: Phase) {
        let ready = phase.live().map(|live| live.ready.clone());
        self.phase.send_modify(|shown| {
            std::mem::swap(shown, &mut phase);
            self.ready.store(ready);
            self.revision.bump();
        });
        let shown = self.phase.borrow().clone();
        self.holders.report(|reporter| reporter.changed(&shown));
    }
}

/// Waits until `time`, or for ever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
