//! The state in which a server is ready: its end, its changes, its health and what is asked of it, one event at a time.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior};

use super::{Command, Step, Supervisor};
use crate::{
    server::{
        phase::{Live, Phase},
        probe::Wakefulness,
    },
    session::Session,
    transport::{EndReason, WireEnd},
};

/// How long change notices are gathered before the server is listed again.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The shortest time between two listings, however many notices come.
const RELIST: Duration = Duration::from_secs(1);
/// How often it is looked whether a probe is due.
const TICK: Duration = Duration::from_secs(15);
/// A server that was silent for so long is asked whether it is well.
const QUIET: Duration = Duration::from_secs(60);
/// How long the answer may take.
const PROBE: Duration = Duration::from_secs(5);

/// What can happen to a server that is ready.
enum Event {
    Stop,
    Ended(WireEnd),
    Asked(Command),
    Changed,
    Tick,
}

impl Supervisor {
    pub(super) async fn serving(&mut self, mut live: Live) -> Step {
        self.show(Phase::Ready(live.clone()));
        let session = live.session.clone();
        let began = Instant::now();
        let mut awake = Wakefulness::new();
        let mut tick = tokio::time::interval_at(Instant::now() + TICK, TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Kept across turns of the loop, so that a notice is not lost when something else happens meanwhile.
        let mut change = Box::pin(settled_change(&session, Duration::ZERO));
        let mut keeping = Box::pin(session.keep());
        loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled() => Event::Stop,
                end = session.ended() => Event::Ended(end),
                command = self.commands.recv() => command.map_or(Event::Stop, Event::Asked),
                () = &mut change => Event::Changed,
                _ = tick.tick() => Event::Tick,
                never = &mut keeping => match never {},
            };
            let end = match event {
                Event::Stop => {
                    session.close().await;
                    return Step::Stop;
                }
                Event::Ended(end) => end,
                Event::Asked(Command::Disable) => {
                    session.close().await;
                    return Step::Off;
                }
                Event::Asked(Command::Reconnect) => {
                    self.memory.restarts = self.memory.restarts.saturating_add(1);
                    session.close().await;
                    return self.first_dial();
                }
                Event::Asked(Command::Replace(generation)) if generation == live.generation => {
                    // Others may still learn on the old session what became of their calls, while the new one is opened.
                    let old = live.session;
                    self.tasks.spawn(async move { old.close().await });
                    return self.lost(&closed("its session was of no use any more"), began.elapsed());
                }
                Event::Asked(Command::Suspect(generation)) if generation == live.generation => {
                    match self.probe(&session).await {
                        Ok(()) => continue,
                        Err(end) => end,
                    }
                }
                Event::Asked(Command::Refresh) => {
                    self.relist(&mut live).await;
                    continue;
                }
                // A stale request, or one that is met already.
                Event::Asked(_) => continue,
                Event::Changed => {
                    change = Box::pin(settled_change(&session, RELIST));
                    self.relist(&mut live).await;
                    continue;
                }
                Event::Tick if awake.woke() || session.quiet_for() >= QUIET => match self.probe(&session).await {
                    Ok(()) => continue,
                    Err(end) => end,
                },
                Event::Tick if is_stale(&live) => {
                    self.relist(&mut live).await;
                    continue;
                }
                Event::Tick => continue,
            };
            let step = self.lost(&end, began.elapsed());
            session.close().await;
            return step;
        }
    }

    /// Asks a quiet server whether it is well. Any answer will do.
    async fn probe(&self, session: &Session) -> Result<(), WireEnd> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ok(()),
            end = session.ended() => Err(end),
            alive = session.is_alive(PROBE) => if alive {
                Ok(())
            } else {
                Err(closed(&format!("it did not answer a probe within {} s", PROBE.as_secs())))
            }
        }
    }

    /// Lists the server again and shows the new catalogue in one step. The old one stays when the new one cannot be had.
    async fn relist(&self, live: &mut Live) {
        let listed = tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            listed = live.session.catalog(self.survey) => listed,
        };
        match listed {
            Ok((catalog, freshness)) => {
                live.catalog = Arc::new(catalog);
                live.stale_at = freshness.ttl.map(|ttl| Instant::now() + ttl);
                self.known.learn(&live.catalog, freshness);
                self.show(Phase::Ready(live.clone()));
            }
            Err(fault) => {
                tracing::warn!(%fault, "the changed listing could not be read; the old one stays");
                // Shown again for those who wait for the end of the listing.
                self.show(Phase::Ready(live.clone()));
            }
        }
    }
}

/// Whether the server's own time for its listing has passed, and it does not tell of changes by itself.
fn is_stale(live: &Live) -> bool {
    !live.session.announces_changes() && live.stale_at.is_some_and(|at| Instant::now() >= at)
}

fn closed(why: &str) -> WireEnd {
    WireEnd::new(EndReason::Replaced(why.to_owned()))
}

/// Waits for a change notice, not before `pause` has passed, and a little longer for the notices that follow it.
async fn settled_change(session: &Session, pause: Duration) {
    tokio::time::sleep(pause).await;
    session.changed().await;
    tokio::time::sleep(DEBOUNCE).await;
}
