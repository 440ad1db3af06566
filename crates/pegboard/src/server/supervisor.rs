//! The task that owns a server's session. Every state is a function, every transition its return value.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use super::phase::{Attempt, Live, Outage, Phase};
use crate::session::{ConnectError, Session, Spec, Survey, connect};

/// How long change notices are gathered before the server is listed again.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The shortest time between two listings, however many notices come.
const RELIST: Duration = Duration::from_secs(1);

/// The owner of a server's session.
pub(super) struct Supervisor {
    pub(super) spec: Spec,
    pub(super) survey: Survey,
    pub(super) publish: watch::Sender<Phase>,
    pub(super) nudged: mpsc::Receiver<()>,
    pub(super) revision: Arc<AtomicU64>,
    pub(super) stop: CancellationToken,
    /// All that must have ended before the server counts as closed.
    pub(super) tasks: TaskTracker,
}

enum Step {
    /// Wait until somebody needs the server.
    Rest {
        attempts: u64,
    },
    Dial(Attempt),
    Serve(Live),
    Stop,
}

impl Supervisor {
    pub(super) async fn run(mut self) {
        let span = tracing::info_span!("server", name = %self.spec.name);
        async {
            let mut step = Step::Rest { attempts: 0 };
            loop {
                step = match step {
                    Step::Rest { attempts } => self.resting(attempts).await,
                    Step::Dial(attempt) => self.dialing(attempt).await,
                    Step::Serve(live) => self.serving(live).await,
                    Step::Stop => break,
                }
            }
            self.show(Phase::Closed);
        }
        .instrument(span)
        .await;
    }

    async fn resting(&mut self, attempts: u64) -> Step {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Step::Stop,
            nudge = self.nudged.recv() => match nudge {
                None => Step::Stop,
                Some(()) => Step::Dial(Attempt { number: attempts + 1, since: Timestamp::now() }),
            },
        }
    }

    async fn dialing(&mut self, attempt: Attempt) -> Step {
        self.show(Phase::Connecting(attempt));
        let reached = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Step::Stop,
            reached = self.reach() => reached,
        };
        match reached {
            Ok((session, catalog)) => {
                for warning in &catalog.warnings {
                    tracing::warn!("{warning}");
                }
                tracing::debug!(tools = catalog.tools.len(), version = %session.facts.version, "ready");
                Step::Serve(Live {
                    session: Arc::new(session),
                    catalog: Arc::new(catalog),
                    attempt: Attempt {
                        since: Timestamp::now(),
                        ..attempt
                    },
                })
            }
            Err(error) => {
                tracing::debug!(%error, "cannot be reached");
                self.show(Phase::Down(Outage::of_start(&error, attempt.number)));
                Step::Rest {
                    attempts: attempt.number,
                }
            }
        }
    }

    /// Connects and lists. A server that cannot be listed is not left running.
    async fn reach(&self) -> Result<(Session, crate::catalog::Catalog), ConnectError> {
        let session = connect(&self.spec, &self.tasks).await?;
        match session.catalog(self.survey).await {
            Ok(catalog) => Ok((session, catalog)),
            Err(fault) => {
                session.close().await;
                Err(ConnectError { fault })
            }
        }
    }

    async fn serving(&mut self, mut live: Live) -> Step {
        self.show(Phase::Ready(live.clone()));
        let session = live.session.clone();
        // Kept across turns of the loop, so that a notice is not lost when something else happens meanwhile.
        let mut change = Box::pin(settled_change(&session));
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    session.close().await;
                    return Step::Stop;
                }
                end = session.ended() => {
                    tracing::debug!(reason = %end.reason, "the session ended");
                    self.show(Phase::Down(Outage::of_end(&end, live.attempt.number)));
                    session.close().await;
                    return Step::Rest { attempts: live.attempt.number };
                }
                Some(()) = self.nudged.recv() => {}
                () = &mut change => {
                    change = Box::pin(settled_change(&session));
                    // Whatever ends the server ends this too, and is seen to in the next turn of the loop.
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        _ = session.ended() => {}
                        () = self.list_again(&mut live) => {}
                    }
                }
            }
        }
    }

    /// Takes the changed list in, and rests. The old list stays when the new one cannot be had.
    async fn list_again(&self, live: &mut Live) {
        match live.session.catalog(self.survey).await {
            Ok(catalog) => {
                live.catalog = Arc::new(catalog);
                self.show(Phase::Ready(live.clone()));
            }
            Err(fault) => tracing::warn!(%fault, "the changed listing could not be read"),
        }
        tokio::time::sleep(RELIST).await;
    }

    fn show(&self, phase: Phase) {
        self.publish.send_replace(phase);
        self.revision.fetch_add(1, Ordering::Release);
    }
}

/// Waits for a change notice, and a little longer for those that follow it.
async fn settled_change(session: &Session) {
    session.changed().await;
    tokio::time::sleep(DEBOUNCE).await;
}
