//! The state of a ready server: an event loop over its end, commands, catalogue changes, health checks and idleness.

use std::{sync::Arc, time::Duration};

use pegboard_base::log_event;
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    command::Command,
    state::{NextState, Supervisor},
};
use crate::server::{
    health_check::SleepDetector,
    phase::{Live, Phase},
};
use pegboard_client::{
    session::{FaultKind, Session},
    transport::{EndReason, WireEnd},
};
use pegboard_config::Probe;
use pegboard_tools::catalog::{Catalog, diff::CatalogDiff, store::Freshness};

/// How long change notifications are collected before the server is listed again.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The shortest time between two listings because of change notifications.
const RELIST: Duration = Duration::from_secs(1);
/// How often the sleep detector and the age of the listing are checked, and the shortest time between two probes.
const TICK: Duration = Duration::from_secs(15);

/// A call timeout from which on calls have no limit of their own, so that a server which is silent has to be asked whether it lives.
const NO_CALL_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// How long a server may be silent during such calls before it is asked, and between two such questions.
const ASK: Duration = Duration::from_secs(60);
/// How long a server may be silent during such calls before it counts as dead. Long, because one that works on a call may be unable to
/// answer.
const SILENT: Duration = Duration::from_secs(600);

/// An event of a ready server.
enum Event {
    Stop,
    Ended(WireEnd),
    Command(Command),
    Changed,
    Tick,
    /// The server has sent nothing for the probe interval.
    Quiet,
    /// No call has used the server for its idle limit.
    Idle,
}

impl Supervisor {
    pub(super) async fn serve(&mut self, mut live: Live) -> NextState {
        self.parts.usage.renew();
        self.publish(Phase::Ready(live.clone()));
        let session = live.session.clone();
        let (usage, holders) = (self.parts.usage.clone(), self.parts.holders.clone());
        let began = Instant::now();
        let mut sleep = SleepDetector::new();
        let mut silence = Silence::default();
        let mut tick = tokio::time::interval_at(Instant::now() + TICK, TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Kept across iterations, so that another event does not lose a notification.
        let mut change = Box::pin(wait_for_settled_change(&session, Duration::ZERO));
        let mut keeping = Box::pin(session.reconcile());
        let mut quiet = Box::pin(wait_for_probe(
            &session,
            self.probe_schedule(),
            Due::AfterInterval,
            Duration::ZERO,
        ));
        let idle = || Box::pin(usage.wait_until_idle(|| holders.idle_after()));
        let mut idling = idle();
        let end = loop {
            let event = tokio::select! {
                biased;
                () = self.stop.cancelled() => Event::Stop,
                end = session.ended() => Event::Ended(end),
                command = self.commands.recv() => command.map_or(Event::Stop, Event::Command),
                () = &mut change => Event::Changed,
                _ = tick.tick() => Event::Tick,
                () = &mut quiet => Event::Quiet,
                () = &mut idling => Event::Idle,
                never = &mut keeping => match never {},
            };
            match event {
                Event::Stop => {
                    self.close(&session).await;
                    return NextState::Stop;
                }
                Event::Ended(end) => break end,
                Event::Command(Command::Reconnect) => {
                    self.history.restarts = self.history.restarts.saturating_add(1);
                    session.abort(closed("it was started anew"));
                    self.close(&session).await;
                    return self.reconnect();
                }
                Event::Command(Command::Replace(generation)) if generation == live.generation => {
                    self.retire(&session);
                    return self.handle_lost_session(
                        &closed("its session was of no use any more"),
                        began.elapsed(),
                        true,
                    );
                }
                Event::Command(Command::Refused(generation)) if generation == live.generation => {
                    // The credential may only lack a right for one request. If it opens nothing any more, the next start says so.
                    if let Err(end) = self.probe(&mut live).await {
                        self.retire(&session);
                        return self.handle_lost_session(&end, began.elapsed(), true);
                    }
                }
                Event::Command(Command::Suspect(generation)) if generation == live.generation => {
                    if let Err(end) = self.probe(&mut live).await {
                        break end;
                    }
                }
                Event::Command(Command::Refresh) => self.relist(&mut live).await,
                // An outdated command, or one that is satisfied already.
                Event::Command(_) => {}
                Event::Changed => {
                    change = Box::pin(wait_for_settled_change(&session, RELIST));
                    self.relist(&mut live).await;
                }
                Event::Tick if sleep.has_slept() => {
                    if let Err(end) = self.probe(&mut live).await {
                        break end;
                    }
                }
                Event::Tick if is_stale(&live) => self.relist(&mut live).await,
                Event::Tick => {
                    if let Err(end) = self.check_silence(&session, &mut silence).await {
                        break end;
                    }
                }
                Event::Quiet => {
                    // A server that works on a call may be unable to answer a probe: it is probed soon after. One that cannot be reached works on
                    // none, however many calls are tried again and again.
                    let is_busy = self.parts.usage.count() > 0 && !session.is_in_doubt();
                    if !is_busy && let Err(end) = self.probe(&mut live).await {
                        break end;
                    }
                    let due = if is_busy { Due::Postponed } else { Due::AfterInterval };
                    quiet.set(wait_for_probe(&session, self.probe_schedule(), due, TICK));
                }
                Event::Idle => {
                    if self.parts.usage.end() {
                        match self.plan().spec.owner {
                            // There may be one for each client.
                            Some(_) => tracing::debug!(name: log_event::SERVER_STOPPED, "{UNUSED}"),
                            None => tracing::info!(name: log_event::SERVER_STOPPED, "{UNUSED}"),
                        }
                        self.reset_if_healthy(began.elapsed());
                        self.close(&session).await;
                        return NextState::Idle;
                    }
                    idling = idle();
                }
            }
        };
        let step = self.handle_lost_session(&end, began.elapsed(), false);
        // Requests in flight fail with this reason; requests that were not sent are retried in the next session.
        session.abort(end);
        self.close_before(step, &session).await
    }

    /// Closes a session in the background: other calls may still get their responses on it while the next one is opened. A process has ended
    /// before the next one is started.
    fn retire(&mut self, session: &Arc<Session>) {
        let (old, process) = (session.clone(), self.process.take());
        self.closing.spawn(async move {
            old.close().await;
            drop(process);
        });
    }

    /// Closes a session before the next one is opened. The callers' patience starts now, not when the old session has closed.
    async fn close_before(&mut self, step: NextState, session: &Arc<Session>) -> NextState {
        let NextState::Connect { after, patience } = step else {
            self.close(session).await;
            return step;
        };
        self.publish_connecting();
        if !self.plan().spec.is_process() {
            // The next session needs no resource of the old one.
            let old = session.clone();
            self.tasks.spawn(async move { old.close().await });
            return NextState::Connect { after, patience };
        }
        let until = Instant::now() + patience;
        let closing = session.close();
        tokio::pin!(closing);
        let is_late = tokio::time::timeout_at(until, &mut closing).await.is_err();
        if is_late {
            self.fail_waiting_callers();
            closing.await;
        }
        self.process = None;
        if is_late {
            return NextState::ConnectBehindOutage;
        }
        let patience = until.saturating_duration_since(Instant::now());
        NextState::Connect { after, patience }
    }

    /// Closes a session and releases its process permit.
    async fn close(&mut self, session: &Session) {
        session.close().await;
        self.process = None;
    }

    /// The kind of probe and its interval; `None` if the server is not probed.
    fn probe_schedule(&self) -> Option<(Probe, Duration)> {
        let health = self.plan().health;
        let every = health.interval.filter(|_| health.probe != Probe::Never)?;
        Some((health.probe, every))
    }

    /// Probes the server. A changed tool listing replaces the catalogue.
    async fn probe(&self, live: &mut Live) -> Result<(), WireEnd> {
        let (plan, session) = (self.plan(), live.session.clone());
        let health = plan.health;
        let probe = match health.probe {
            // A request was lost on its way, so this is no probe of a server that is well.
            Probe::Never if session.is_in_doubt() => Probe::Auto,
            probe => probe,
        };
        let asking = async {
            match probe {
                Probe::Never => Ok(None),
                Probe::ListTools if session.peer.offers("tools") => {
                    let listing = session.relist_tools(&plan.described, live.catalog(), health.timeout);
                    listing.await.map(Some)
                }
                Probe::ListTools | Probe::Auto => session.probe(health.timeout).await.map(|()| None),
            }
        };
        let answer = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(()),
            end = session.ended() => return Err(end),
            answer = asking => answer,
        };
        let fault = match answer {
            Ok(None) if probe == Probe::Never => return Ok(()),
            Ok(listed) => {
                self.parts.checks.record(None);
                let listed = listed.filter(|(catalog, _)| !CatalogDiff::between(live.catalog(), catalog).is_empty());
                if let Some((catalog, freshness)) = listed {
                    self.replace_catalog(live, catalog, freshness);
                }
                return Ok(());
            }
            Err(fault) => fault,
        };
        // If the config describes the tools, the server may refuse to list them.
        if fault.is_busy() || (fault.is_response() && !plan.described.is_empty()) {
            self.parts.checks.record(None);
            return Ok(());
        }
        let why = match &fault.kind {
            FaultKind::TimedOut { .. } => {
                format!("it did not answer a probe within {} s", health.timeout.as_secs_f64())
            }
            _ => format!("a probe failed: {fault}"),
        };
        tracing::warn!(name: log_event::SERVER_PROBE_FAILED, reason = %plan.spec.masker.text(&why), "a probe failed");
        self.parts.holders.report(|reporter| reporter.report_failed_probe(&why));
        self.parts.checks.record(Some(why.clone()));
        Err(closed(&why))
    }

    /// Asks a silent server whether it lives, while calls without a limit of their own wait for it. Any message is a sign of life.
    async fn check_silence(&self, session: &Session, silence: &mut Silence) -> Result<(), WireEnd> {
        let plan = self.plan();
        // A server that is not read for want of room is not silent.
        let is_limited = plan.spec.limits.call_timeout < NO_CALL_LIMIT;
        if self.parts.usage.count() == 0 || is_limited || session.is_held_up() {
            *silence = Silence::default();
            return Ok(());
        }
        let now = Instant::now();
        let since = *silence.waiting_since.get_or_insert(now);
        let silent_for = session.idle_for().min(now - since);
        if silent_for >= SILENT {
            let seconds = SILENT.as_secs();
            let why = format!("it sent nothing for {seconds} s, not even an answer to a probe, while a call waited");
            self.parts.checks.record(Some(why.clone()));
            return Err(closed(&why));
        }
        if silent_for >= ASK && silence.asked_at.is_none_or(|at| now - at >= ASK) {
            silence.asked_at = Some(now);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                end = session.ended() => return Err(end),
                // An error is an answer too. Without one the server may still be busy.
                _ = session.probe(plan.health.timeout) => {}
            }
        }
        Ok(())
    }

    /// Publishes another catalogue of the same session.
    fn replace_catalog(&self, live: &mut Live, catalog: Catalog, freshness: Freshness) {
        for warning in catalog
            .warnings
            .iter()
            .filter(|warning| !live.catalog().warnings.contains(warning))
        {
            tracing::warn!("{warning}");
        }
        let ready = Arc::make_mut(&mut live.ready);
        ready.listed = Arc::new(catalog);
        ready.listing += 1;
        self.learn(&ready.listed, freshness);
        self.publish(Phase::Ready(live.clone()));
    }

    /// Lists the server again and publishes the new catalogue. If the listing fails, the old catalogue stays.
    async fn relist(&self, live: &mut Live) {
        let plan = self.plan();
        let list_scope = self.list_scope.within(plan.capabilities);
        let listed = tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            listed = live.session.catalog(list_scope, &plan.described, Some(live.catalog())) => listed,
        };
        match listed {
            Ok((catalog, freshness)) => {
                Arc::make_mut(&mut live.ready).stale_at = freshness.ttl.map(|ttl| Instant::now() + ttl);
                self.replace_catalog(live, catalog, freshness);
            }
            Err(fault) => {
                tracing::warn!(%fault, "the changed listing could not be read; the old one stays");
                // Published again to wake callers that wait for the listing to end.
                Arc::make_mut(&mut live.ready).listing += 1;
                self.publish(Phase::Ready(live.clone()));
            }
        }
    }
}

const UNUSED: &str = "nobody uses it; it is stopped until somebody does";

/// What is known about a server that is silent while calls wait for it.
#[derive(Debug, Default)]
struct Silence {
    /// Since when calls have been in flight without a break.
    waiting_since: Option<Instant>,
    /// When the server was last asked.
    asked_at: Option<Instant>,
}

/// Whether the listing's TTL has passed on a server that sends no change notifications.
fn is_stale(live: &Live) -> bool {
    !live.session.sends_list_changed() && live.stale_at.is_some_and(|at| Instant::now() >= at)
}

fn closed(why: &str) -> WireEnd {
    WireEnd::new(EndReason::Replaced(why.to_owned()))
}

/// When a probe by listing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    AfterInterval,
    /// It was due while the server worked on a call.
    Postponed,
}

/// Waits until the next probe is due, and at least for `pause`: when the server has sent nothing for the probe interval. Listings are due by
/// time alone, because other traffic says nothing about them.
async fn wait_for_probe(session: &Session, probe_schedule: Option<(Probe, Duration)>, due: Due, pause: Duration) {
    let Some((probe, limit)) = probe_schedule else {
        return std::future::pending().await;
    };
    if probe == Probe::ListTools {
        let wait = match due {
            Due::AfterInterval => limit,
            Due::Postponed => pause.min(limit),
        };
        return tokio::time::sleep(wait).await;
    }
    tokio::time::sleep(pause.min(limit)).await;
    loop {
        let remaining = limit.saturating_sub(session.idle_for());
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining).await;
    }
}

/// Waits at least for `pause`, then for a change notification, then a little longer for further ones.
async fn wait_for_settled_change(session: &Session, pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    session.list_changed().await;
    tokio::time::sleep(DEBOUNCE).await;
}
