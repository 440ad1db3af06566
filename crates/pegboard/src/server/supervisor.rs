//! The task that owns a server's session. Every state is a function, every transition its return value.
//!
//! What callers see is published as a [`Phase`]. While a server is down they fail at once, and the supervisor goes on trying behind it
//! without going back to `Connecting`, so that nobody waits for a start that will fail again.

mod serving;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::{
    backoff::{Backoff, CrashLoop, was_healthy},
    known::Known,
    phase::{Attempt, Cause, Live, Outage, Phase, is_crash},
};
use crate::{
    catalog::{Catalog, store::Freshness},
    session::{ConnectError, Session, Spec, Survey, connect},
    transport::{EndReason, WireEnd},
};

/// How long callers wait for a server that was lost, before they are told that its restart takes longer.
const RESTART_WAIT: Duration = Duration::from_secs(10);
/// How long a program that fetches its server first may take, behind the backs of callers that have long been told.
const FETCH: Duration = Duration::from_secs(600);

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
    /// Switch it off until it is switched on again.
    Disable,
    /// Switch it on.
    Enable,
}

/// The owner of a server's session.
pub(super) struct Supervisor {
    pub(super) spec: Arc<Spec>,
    pub(super) survey: Survey,
    pub(super) publish: watch::Sender<Phase>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Raised with everything that is published.
    pub(super) revision: Arc<AtomicU64>,
    pub(super) stop: CancellationToken,
    /// How many servers of the board may be starting at once.
    pub(super) starts: Arc<Semaphore>,
    pub(super) memory: Memory,
    /// What the server offered last.
    pub(super) known: Arc<Known>,
    /// All that must have ended before the server counts as closed.
    pub(super) tasks: TaskTracker,
}

/// What a supervisor remembers between sessions.
pub(super) struct Memory {
    backoff: Backoff,
    crashes: CrashLoop,
    generation: u64,
    restarts: u32,
    last_outage: Option<Arc<Outage>>,
}

impl Memory {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            crashes: CrashLoop::default(),
            generation: 0,
            restarts: 0,
            last_outage: None,
        }
    }
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
    /// Wait before the next start.
    Wait(Duration),
    /// Wait until an operator does something.
    Halt,
    /// Wait until it is switched on.
    Off,
    Stop,
}

impl Supervisor {
    pub(super) async fn run(mut self, enabled: bool) {
        let span = tracing::info_span!("server", name = %self.spec.name);
        async {
            let mut step = if enabled { Step::Rest } else { Step::Off };
            loop {
                step = match step {
                    Step::Rest => self.resting().await,
                    Step::Dial { after, patience } => self.dialing(after, Some(patience)).await,
                    Step::DialBehind => self.dialing(Duration::ZERO, None).await,
                    Step::Serve(live) => self.serving(live).await,
                    Step::Wait(delay) => self.waiting(delay).await,
                    Step::Halt => self.halted().await,
                    Step::Off => self.off().await,
                    Step::Stop => break,
                }
            }
            self.show(Phase::Closed);
        }
        .instrument(span)
        .await;
    }

    async fn resting(&mut self) -> Step {
        self.show(Phase::Idle);
        loop {
            match self.next_command().await {
                None => return Step::Stop,
                Some(Command::Start | Command::Reconnect | Command::Enable) => return self.first_dial(),
                Some(Command::Disable) => return Step::Off,
                Some(Command::Replace(_) | Command::Suspect(_) | Command::Refresh) => {}
            }
        }
    }

    /// Starts the server. With `patience`, callers see `Connecting` until it has passed; the start itself goes on.
    async fn dialing(&mut self, after: Duration, patience: Option<Duration>) -> Step {
        if patience.is_some() {
            self.show(Phase::Connecting(Attempt {
                since: Timestamp::now(),
                after: self.memory.last_outage.clone(),
                restarts: self.memory.restarts,
            }));
        }
        let limit = if self.spec.fetches_first() {
            FETCH
        } else {
            self.spec.limits.connect
        };
        let (spec, survey, starts) = (self.spec.clone(), self.survey, self.starts.clone());
        let tasks = self.tasks.clone();
        let reaching = async {
            tokio::time::sleep(after).await;
            reach(&spec, survey, starts, limit, &tasks).await
        };
        tokio::pin!(reaching);
        // Whoever can wait as long as the start may take learns how it ends.
        let overtaken = patience.filter(|patience| *patience < after + limit);
        let mut shown_until = overtaken.map(|patience| Instant::now() + patience);
        let reached = loop {
            let overdue = async {
                match shown_until {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                reached = &mut reaching => break reached,
                () = overdue => {
                    shown_until = None;
                    let outage = Outage::still_starting().with(Cause::StillStarting, self.memory.restarts, None);
                    self.show(Phase::Down(outage.into()));
                }
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Disable) => return Step::Off,
                    Some(_) => {}
                }
            }
        };
        match reached {
            Ok(reached) => Step::Serve(self.live(reached)),
            Err(error) => self.failed(&error),
        }
    }

    fn live(&mut self, reached: Reached) -> Live {
        let Reached {
            session,
            catalog,
            freshness,
        } = reached;
        for warning in &catalog.warnings {
            tracing::warn!("{warning}");
        }
        tracing::info!(tools = catalog.tools.len(), version = %session.facts.version, "ready");
        self.memory.generation += 1;
        let catalog = Arc::new(catalog);
        self.known.learn(&catalog, freshness);
        Live {
            session: Arc::new(session),
            catalog,
            stale_at: freshness.ttl.map(|ttl| Instant::now() + ttl),
            generation: self.memory.generation,
            since: Timestamp::now(),
            restarts: self.memory.restarts,
            last_outage: self.memory.last_outage.clone(),
        }
    }

    /// A start has failed: callers learn why, and it is tried again unless that cannot help.
    fn failed(&mut self, error: &ConnectError) -> Step {
        tracing::info!(error = %self.spec.veil.text(&error.to_string()), "cannot be reached");
        let outage = Outage::of_start(error);
        if outage.is_final() {
            let cause = outage.cause;
            self.down(outage, cause, None);
            return Step::Halt;
        }
        let cause = if self.memory.generation > 0 {
            Cause::RestartFailed
        } else {
            Cause::Failed
        };
        // A server that says when to come back is not asked before.
        let delay = self.memory.backoff.next().max(error.retry_after().unwrap_or_default());
        self.down(outage, cause, Some(delay));
        Step::Wait(delay)
    }

    /// A session has ended: the server is started again at once, or rarely when it keeps ending.
    fn lost(&mut self, end: &WireEnd, served: Duration) -> Step {
        tracing::info!(reason = %end.reason, "the session ended");
        self.memory.restarts = self.memory.restarts.saturating_add(1);
        if was_healthy(served, true) {
            self.memory.backoff.reset();
            self.memory.crashes.reset();
        }
        let outage = Outage::of_end(end);
        if let EndReason::Replaced(_) = end.reason {
            // The server is there and only this session was of no use, so nobody need wait for the next.
            self.memory.last_outage = Some(Arc::new(outage));
            return Step::Dial {
                after: Duration::ZERO,
                patience: RESTART_WAIT,
            };
        }
        if is_crash(end) && self.memory.crashes.exited(Instant::now()) {
            let delay = self.memory.crashes.wait(self.memory.backoff.next());
            self.down(outage, Cause::CrashLooping, Some(delay));
            return Step::Wait(delay);
        }
        self.memory.last_outage = Some(Arc::new(outage));
        match self.memory.backoff.next() {
            delay if delay < RESTART_WAIT => Step::Dial {
                after: delay,
                patience: RESTART_WAIT,
            },
            delay => {
                let outage = Outage::of_end(end);
                self.down(outage, Cause::RestartFailed, Some(delay));
                Step::Wait(delay)
            }
        }
    }

    fn down(&mut self, outage: Outage, cause: Cause, retry_in: Option<Duration>) {
        let outage = Arc::new(outage.with(cause, self.memory.restarts, retry_in));
        self.memory.last_outage = Some(outage.clone());
        self.show(Phase::Down(outage));
    }

    async fn waiting(&mut self, delay: Duration) -> Step {
        let due = tokio::time::sleep(delay);
        tokio::pin!(due);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Step::Stop,
                () = &mut due => return Step::DialBehind,
                command = self.commands.recv() => match command {
                    None => return Step::Stop,
                    Some(Command::Reconnect) => return self.first_dial(),
                    Some(Command::Disable) => return Step::Off,
                    Some(_) => {}
                }
            }
        }
    }

    async fn halted(&mut self) -> Step {
        loop {
            match self.next_command().await {
                None => return Step::Stop,
                Some(Command::Reconnect | Command::Enable) => return self.first_dial(),
                Some(Command::Disable) => return Step::Off,
                Some(_) => {}
            }
        }
    }

    async fn off(&mut self) -> Step {
        self.show(Phase::Disabled);
        loop {
            match self.next_command().await {
                None => return Step::Stop,
                Some(Command::Enable) => return self.first_dial(),
                Some(_) => {}
            }
        }
    }

    fn first_dial(&mut self) -> Step {
        self.memory.backoff.reset();
        self.memory.crashes.reset();
        Step::Dial {
            after: Duration::ZERO,
            patience: self.spec.limits.connect,
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

    /// Both change as one: whoever sees the new phase sees the new revision too, and does not look into what was built for the old one.
    fn show(&self, mut phase: Phase) {
        self.publish.send_modify(|shown| {
            std::mem::swap(shown, &mut phase);
            self.revision.fetch_add(1, Ordering::Release);
        });
    }
}

/// A server that was connected to and listed.
struct Reached {
    session: Session,
    catalog: Catalog,
    freshness: Freshness,
}

/// Connects and lists, once it is this server's turn to start. A server that cannot be listed is not left running.
async fn reach(
    spec: &Spec,
    survey: Survey,
    starts: Arc<Semaphore>,
    limit: Duration,
    tasks: &TaskTracker,
) -> Result<Reached, ConnectError> {
    let _turn = starts.acquire_owned().await;
    let session = connect(spec, limit, tasks).await?;
    match session.catalog(survey).await {
        Ok((catalog, freshness)) => Ok(Reached {
            session,
            catalog,
            freshness,
        }),
        Err(fault) => {
            session.close().await;
            Err(ConnectError { fault, only_era: false })
        }
    }
}

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
