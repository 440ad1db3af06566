//! The states of a server that is not ready: idle, connecting, and waiting for the next start.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use pegboard_base::{log_event, timestamp::Timestamp};
use tokio::time::Instant;

use super::{
    command::Command,
    start_attempt::{Started, connect_and_list, process_permit},
    state::{NextState, Supervisor},
};
use crate::server::{
    outage::{Cause, NextStart},
    phase::{Live, Phase, Ready},
};
use pegboard_tools::outcome::millis;

/// The time limit of a start whose package runner may download the server first. Callers do not wait that long.
const FETCH: Duration = Duration::from_secs(600);

impl Supervisor {
    /// Waits for a command that starts the server.
    pub(super) async fn wait_for_command(&mut self) -> NextState {
        self.parts.usage.renew();
        self.publish(Phase::Idle);
        loop {
            match self.next_command().await {
                None => return NextState::Stop,
                Some(Command::Start) => return self.connect(),
                Some(Command::Reconnect) => return self.reconnect(),
                Some(Command::Replace(_) | Command::Suspect(_) | Command::Refused(_) | Command::Refresh) => {}
            }
        }
    }

    /// Starts the server. With `patience`, callers see `Connecting` for that long; the start continues afterwards.
    pub(super) async fn start_server(&mut self, after: Duration, patience: Option<Duration>) -> NextState {
        if patience.is_some() {
            self.publish_connecting();
        }
        if !self.wait_for_predecessors().await {
            return NextState::Stop;
        }
        let plan = self.plan();
        let limit = if plan.spec.fetches_first() {
            FETCH.max(plan.spec.limits.connect_timeout)
        } else {
            plan.spec.limits.connect_timeout
        };
        let (list_scope, starts, processes) = (
            self.list_scope.within(plan.capabilities),
            self.starts.clone(),
            self.processes.clone(),
        );
        let (closing, before) = (self.closing.clone(), self.parts.known.latest());
        let starting = async {
            // Even a zero sleep would last until the timer's next tick.
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            if plan.spec.is_process() {
                // Two processes of one server could fight over a lock, a port or a file.
                closing.wait().await;
            }
            // Bounds processes and sockets, not CPU time: a start mostly waits.
            let began = Instant::now();
            let _permit = starts.acquire_owned().await;
            let process = process_permit(&plan.spec, processes).map_err(|error| *error)?;
            let started = connect_and_list(&plan, (list_scope, before), limit, &closing, process).await;
            started.map(|started| (started, began.elapsed()))
        };
        tokio::pin!(starting);
        // If callers wait as long as the start may take, they see its result instead of `StillStarting`.
        let shorter = patience.filter(|patience| *patience < after + limit);
        let mut waiting_until = match patience {
            Some(_) => shorter.map(|patience| Instant::now() + patience),
            None => self.history.callers_wait_until,
        };
        let started = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return NextState::Stop,
                started = &mut starting => break started,
                () = at(waiting_until) => {
                    waiting_until = None;
                    self.fail_waiting_callers();
                }
                // The start itself satisfies all other commands.
                command = self.commands.recv() => match command {
                    None => return NextState::Stop,
                    Some(Command::Reconnect) => return self.reconnect(),
                    Some(Command::Start) if self.starts_on_call() => {
                        waiting_until = Some(Instant::now() + self.patience());
                        self.publish_connecting();
                    }
                    Some(_) => {}
                }
            }
        };
        match started {
            Ok((started, took)) => NextState::Serve(self.record_start(started, took)),
            Err(error) => self.handle_failed_start(&error),
        }
    }

    /// Waits until the servers before this one have ended, which is not part of the start: callers wait as long as they like. Returns `false` if
    /// the supervisor must stop.
    async fn wait_for_predecessors(&mut self) -> bool {
        let predecessors = self.parts.predecessors.clone();
        if !predecessors.are_any() {
            return true;
        }
        let ended = predecessors.ended();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return false,
                () = &mut ended => return true,
                // The start itself satisfies all commands.
                command = self.commands.recv() => if command.is_none() {
                    return false;
                },
            }
        }
    }

    /// Records a successful start. Returns the ready server.
    pub(super) fn record_start(&mut self, started: Started, took: Duration) -> Live {
        let Started {
            session,
            catalog,
            freshness,
            process,
        } = started;
        for warning in &catalog.warnings {
            tracing::info!("{warning}");
        }
        let (tools, version) = (catalog.tools.len(), &session.peer.version);
        match self.plan().spec.is_for_questions {
            true => tracing::info!(%version, ready_after_ms = millis(took), "a session for its questions is open"),
            // There may be one for each client.
            false if self.plan().spec.owner.is_some() => {
                tracing::debug!(name: log_event::SERVER_READY, tools, %version, ready_after_ms = millis(took), "ready");
            }
            false => {
                tracing::info!(name: log_event::SERVER_READY, tools, %version, ready_after_ms = millis(took), "ready")
            }
        }
        self.history.generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.history.failures = 0;
        self.history.outage_began = None;
        self.history.callers_wait_until = None;
        self.history.was_lost = false;
        self.parts.checks.record(None);
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
            // A sign-in that was missing is no failure of the server.
            last_outage: self
                .history
                .last_outage
                .clone()
                .filter(|outage| outage.cause != Cause::NeedsAuth),
        }))
    }

    /// Whether callers see an outage that a call may end.
    fn starts_on_call(&self) -> bool {
        matches!(&*self.phase.borrow(), Phase::Down(outage) if outage.starts_on_call())
    }

    /// Waits for the next start while the server is down.
    pub(super) async fn wait_for_start(&mut self, next: NextStart) -> NextState {
        let is_for_credentials =
            matches!(&*self.phase.borrow(), Phase::Down(outage) if outage.cause == Cause::NeedsAuth);
        let credentials = self.plan().spec.credentials.clone().filter(|_| is_for_credentials);
        let mut renewed = Box::pin(async move {
            match credentials {
                Some(credentials) => credentials.renewed().await,
                None => std::future::pending().await,
            }
        });
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return NextState::Stop,
                () = &mut renewed => return self.reconnect(),
                () = at(next.automatic) => return NextState::ConnectBehindOutage,
                () = at(self.history.callers_wait_until) => {
                    self.history.callers_wait_until = None;
                    if let Some(outage) = self.history.last_outage.clone() {
                        self.publish(Phase::Down(outage));
                    }
                }
                command = self.commands.recv() => match command {
                    None => return NextState::Stop,
                    Some(Command::Reconnect) => return self.reconnect(),
                    Some(Command::Start) if next.is_on_demand() => {
                        return NextState::Connect { after: Duration::ZERO, patience: self.patience() };
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// The next command; `None` when the supervisor must stop.
    async fn next_command(&mut self) -> Option<Command> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            command = self.commands.recv() => command,
        }
    }
}

/// Waits until `time`; forever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
