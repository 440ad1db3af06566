//! The task that owns a server's session. Every state is a function, every transition its return value.
//!
//! What callers see is published as a [`Phase`]. While a server is down they fail at once, and the supervisor goes on trying behind it
//! without going back to `Connecting`, so that no caller waits for a start that will fail again. Two rules soften that: while first starts
//! fail, callers wait for as long as `start_wait` says, and a server that is not restarted unasked is started by the next call.

mod history;
mod serving;
mod start;

pub(super) use history::Memory;

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

use start::{Reached, place_for, reach};

use super::{
    backoff::was_healthy,
    health_check::HealthChecks,
    known_catalog::KnownCatalog,
    link::{Holders, Plan},
    phase::{Attempt, Cause, Live, Moment, NextStart, Outage, Phase, Ready, is_crash},
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
const SHOWN: Duration = Duration::from_secs(1);

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
    pub(super) plan: Arc<RwLock<Arc<Plan>>>,
    pub(super) survey: ListScope,
    pub(super) publish: watch::Sender<Phase>,
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
    pub(super) memory: Memory,
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
    Rest,
    /// Start it after a while, while callers wait, for at most so long.
    Dial {
        after: Duration,
        patience: Duration,
    },
    /// Start it behind an outage that callers see.
    DialBehind,
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
            let mut step = Step::Rest;
            loop {
                step = match step {
                    Step::Rest => self.resting().await,
                    Step::Dial { after, patience } => self.dialing(after, Some(patience)).await,
                    Step::DialBehind => self.dialing(Duration::ZERO, None).await,
                    Step::Serve(live) => self.serving(live).await,
                    Step::Wait(next) => self.waiting(next).await,
                    Step::Stop => break,
                }
            }
            self.show(Phase::Closed);
        }
        .instrument(span)
        .await;
    }

    fn plan(&self) -> Arc<Plan> {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn resting(&mut self) -> Step {
        self.usage.renew();
        self.show(Phase::Idle);
        loop {
            match self.next_command().await {
                None => return Step::Stop,
                Some(Command::Start) => return self.dial(),
                Some(Command::Reconnect) => return self.first_dial(),
                Some(Command::Replace(_) | Command::Suspect(_) | Command::Refresh) => {}
            }
        }
    }

    /// Starts the server. With `patience`, callers see `Connecting` until it has passed; the start itself goes on.
    async fn dialing(&mut self, after: Duration, patience: Option<Duration>) -> Step {
        if patience.is_some() {
            self.show_connecting();
        }
        let plan = self.plan();
        let limit = if plan.spec.fetches_first() {
            FETCH.max(plan.spec.limits.connect)
        } else {
            plan.spec.limits.connect
        };
        let (survey, starts, processes) = (
            self.survey.within(plan.capabilities),
            self.starts.clone(),
            self.processes.clone(),
        );
        let (tasks, before) = (self.tasks.clone(), self.known.latest());
        let reaching = async {
            // Even a wait for nothing would last until the clock's next tick.
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            // It bounds processes and sockets, not the processor: a start is mostly waiting.
            let began = Instant::now();
            let _turn = starts.acquire_owned().await;
            let process = place_for(&plan.spec, processes).map_err(|error| *error)?;
            let reached = reach(&plan, (survey, before), limit, &tasks, process).await;
            reached.map(|reached| (reached, began.elapsed()))
        };
        tokio::pin!(reaching);
        // Callers that can wait as long as the start may take learn how it ends.
        let overtaken = patience.filter(|patience| *patience < after + limit);
        let mut shown_until = match patience {
            Some(_) => overtaken.map(|patience| Instant::now() + patience),
            None => self.memory.held_until,
        };
        let reached = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                reached = &mut reaching => break reached,
                () = at(shown_until) => {
                    shown_until = None;
                    self.turn_callers_away();
                }
                // What else is asked for meanwhile is met by the start itself.
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Reconnect) => return self.first_dial(),
                    Some(Command::Start) if self.is_ended_by_calls() => {
                        shown_until = Some(Instant::now() + self.patience());
                        self.show_connecting();
                    }
                    Some(_) => {}
                }
            }
        };
        match reached {
            Ok((reached, took)) => Step::Serve(self.live(reached, took)),
            Err(error) => self.failed(&error),
        }
    }

    fn live(&mut self, reached: Reached, took: Duration) -> Live {
        let Reached {
            session,
            catalog,
            freshness,
            process,
        } = reached;
        for warning in &catalog.warnings {
            tracing::info!("{warning}");
        }
        let (tools, version) = (catalog.tools.len(), &session.peer.version);
        tracing::info!(tools, %version, ready_after_ms = millis(took), "ready");
        self.memory.generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.memory.failures = 0;
        self.memory.began = None;
        self.memory.held_until = None;
        self.memory.is_lost = false;
        self.checks.ended(None);
        self.process = process;
        let catalog = Arc::new(catalog);
        self.learn(&catalog, freshness);
        Live::new(Arc::new(Ready {
            session: Arc::new(session),
            listed: catalog,
            stale_at: freshness.ttl.map(|ttl| Instant::now() + ttl),
            generation: self.memory.generation,
            listing: 0,
            since: Timestamp::now(),
            start: took,
            restarts: self.memory.restarts,
            last_outage: self.memory.last_outage.clone(),
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
        let is_first = self.memory.generation == 0 && self.plan().restart.start_wait.is_zero();
        let outage = Outage::of_start(error, is_first);
        self.checks.ended(Some(outage.message.clone()));
        if outage.is_final() {
            let cause = outage.cause;
            return self.down(outage, cause, NextStart::NEVER);
        }
        let cause = if self.memory.generation > 0 {
            Cause::RestartFailed
        } else {
            Cause::Failed
        };
        let plan = self.plan();
        let restart = &plan.restart;
        self.memory.failures = self.memory.failures.saturating_add(1);
        if restart.max_attempts.is_some_and(|most| self.memory.failures >= most) {
            let outage = outage.given_up_after(self.memory.failures);
            // A busy agent must not start a broken server with every call.
            let pause = self.memory.schedule(&restart.waits).longest();
            return self.down(outage, cause, NextStart::on_demand_in(pause));
        }
        // A server that says when to come back is not asked before.
        let asked_for = error.retry_after().unwrap_or_default();
        let delay = self.memory.next_wait(&restart.waits).max(asked_for);
        if !restart.enabled {
            let next = match self.next_probe() {
                Some(every) => NextStart {
                    unasked: Some(Instant::now() + every.max(asked_for)),
                    ..NextStart::on_demand_in(SHOWN.max(asked_for))
                },
                None => NextStart::on_demand_in(delay.max(SHOWN)),
            };
            return self.down(outage, cause, next);
        }
        let next = NextStart::unasked_in(delay);
        if self.memory.held_until.is_none_or(|until| until <= Instant::now()) {
            return self.down(outage, cause, next);
        }
        let outage = self.of_this_outage(outage, cause, next);
        self.memory.last_outage = Some(outage);
        self.show_connecting();
        Step::Wait(next)
    }

    /// A session has ended: the server is started again at once, or rarely when it keeps ending. With `for_a_call`, a call waits for the
    /// next session.
    fn lost(&mut self, end: &WireEnd, served: Duration, for_a_call: bool) -> Step {
        tracing::warn!(reason = %self.plan().spec.masker.text(&end.reason.to_string()), "the connection was lost");
        self.memory.restarts = self.memory.restarts.saturating_add(1);
        self.forgive(served);
        self.memory.is_lost = true;
        let plan = self.plan();
        let (restart, outage) = (&plan.restart, Outage::of_end(end));
        if is_crash(end) && self.memory.crashes.exited(Instant::now()) {
            let delay = self.memory.next_wait(&restart.waits);
            let delay = self.memory.crashes.wait(delay);
            tracing::warn!(next_try_in = ?delay, "the server ends again and again");
            let next = if restart.enabled {
                NextStart::unasked_in(delay)
            } else {
                NextStart {
                    unasked: self.next_probe().map(|every| Instant::now() + every.max(delay)),
                    ..NextStart::on_demand_in(delay)
                }
            };
            return self.down(outage, Cause::CrashLooping, next);
        }
        let is_wanted = restart.enabled || for_a_call || self.next_probe().is_some();
        if let EndReason::Replaced(_) = end.reason
            && is_wanted
        {
            // Only this session was of no use: there is no reason to wait before the next.
            return self.restart(outage, Duration::ZERO, restart.wait.max(RENEWAL));
        }
        if !restart.enabled {
            let next = NextStart {
                unasked: self.next_probe().map(|every| Instant::now() + every),
                ..NextStart::on_demand_in(Duration::ZERO)
            };
            return self.down(outage, Cause::Failed, next);
        }
        let delay = self.memory.next_wait(&restart.waits);
        if delay.is_zero() || delay < restart.wait {
            return self.restart(outage, delay, restart.wait);
        }
        self.down(outage, Cause::RestartFailed, NextStart::unasked_in(delay))
    }

    /// Starts the server again while callers wait.
    fn restart(&mut self, outage: Outage, after: Duration, patience: Duration) -> Step {
        let outage = self.of_this_outage(outage, Cause::Failed, NextStart::NEVER);
        self.memory.last_outage = Some(outage);
        Step::Dial { after, patience }
    }

    /// How long after a failure a lost server is looked for by a probe, where no restart is due.
    fn next_probe(&self) -> Option<Duration> {
        let health = self.plan().health;
        let is_probed = health.restarts && health.probe != Probe::Never;
        // What has never been ready is left to the callers.
        health.every.filter(|_| is_probed && self.memory.generation > 0)
    }

    /// A session that was healthy lets what happened before it be forgotten.
    fn forgive(&mut self, served: Duration) {
        if was_healthy(served, true) {
            self.memory.reset();
        }
    }

    /// The server is down from now on, or still.
    fn down(&mut self, outage: Outage, cause: Cause, next: NextStart) -> Step {
        self.memory.held_until = None;
        let outage = self.of_this_outage(outage, cause, next);
        self.memory.last_outage = Some(outage.clone());
        self.show(Phase::Down(outage));
        Step::Wait(next)
    }

    /// A failure as part of the outage that lasts, which begins with it if there is none.
    fn of_this_outage(&mut self, outage: Outage, cause: Cause, next: NextStart) -> Arc<Outage> {
        let began = *self.memory.began.get_or_insert_with(Moment::now);
        Arc::new(outage.with(cause, self.memory.restarts, began, next))
    }

    fn show_connecting(&self) {
        let since = match &*self.publish.borrow() {
            Phase::Connecting(attempt) => attempt.since,
            _ => Timestamp::now(),
        };
        self.show(Phase::Connecting(Attempt {
            since,
            after: self.memory.last_outage.clone(),
            restarts: self.memory.restarts,
        }));
    }

    /// Callers have waited long enough for the start that is under way. They are told why the one before failed, if it did.
    fn turn_callers_away(&mut self) {
        let failed = match self.memory.held_until.take() {
            Some(_) if self.memory.failures > 0 => self.memory.last_outage.as_deref().cloned(),
            _ => None,
        };
        let outage = match failed {
            Some(outage) => Arc::new(outage.with_next(NextStart::NEVER)),
            None => self.of_this_outage(Outage::still_starting(), Cause::StillStarting, NextStart::NEVER),
        };
        self.show(Phase::Down(outage));
    }

    /// Whether callers see an outage that a call ends.
    fn is_ended_by_calls(&self) -> bool {
        matches!(&*self.publish.borrow(), Phase::Down(outage) if outage.is_ended_by_calls())
    }

    async fn waiting(&mut self, next: NextStart) -> Step {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                () = at(next.unasked) => return Step::DialBehind,
                () = at(self.memory.held_until) => {
                    self.memory.held_until = None;
                    if let Some(outage) = self.memory.last_outage.clone() {
                        self.show(Phase::Down(outage));
                    }
                }
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Reconnect) => return self.first_dial(),
                    Some(Command::Start) if next.is_on_demand() => {
                        return Step::Dial { after: Duration::ZERO, patience: self.patience() };
                    }
                    Some(_) => {}
                }
            }
        }
    }

    fn first_dial(&mut self) -> Step {
        self.memory.reset();
        self.memory.is_lost = false;
        self.dial()
    }

    fn dial(&mut self) -> Step {
        let hold = self.plan().restart.start_wait;
        self.memory.held_until = (!hold.is_zero()).then(|| Instant::now() + hold);
        Step::Dial {
            after: Duration::ZERO,
            patience: self.patience().max(hold),
        }
    }

    /// How long callers wait for a start: less for a restart, because the server was there.
    fn patience(&self) -> Duration {
        let plan = self.plan();
        if self.memory.is_lost {
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
    fn show(&self, mut phase: Phase) {
        let ready = phase.live().map(|live| live.ready.clone());
        self.publish.send_modify(|shown| {
            std::mem::swap(shown, &mut phase);
            self.ready.store(ready);
            self.revision.bump();
        });
        let shown = self.publish.borrow().clone();
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
