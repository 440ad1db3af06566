//! Rings the events of one server and counts what happens to it.
//!
//! A supervisor owns one connection. A server may have several of them, and a connection may belong to several servers, so supervisors
//! report to the seats of their holders, and each server's herald makes one state of what its seats report.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

use super::phase::{Outage, Phase};
use crate::{
    catalog::CatalogDiff,
    event::{Event, EventSender},
    mask::ServerMasker,
    metrics::ServerCounters,
    name::ServerName,
    outcome::millis,
    status::State,
};

/// The longest reason in an event, in bytes.
const REASON: usize = 4 << 10;

/// Tells listeners of one server.
#[derive(Debug)]
pub(super) struct EventPublisher {
    server: ServerName,
    /// The view that has the server for itself.
    view: OnceLock<Arc<str>>,
    masker: ServerMasker,
    events: EventSender,
    counts: Arc<ServerCounters>,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    state: State,
    /// Counts the pools that the server has had. A connection of an earlier one has no say any more.
    pool: u64,
    /// The states of the connections.
    links: Vec<State>,
    is_muted: bool,
}

impl EventPublisher {
    pub(super) fn new(
        server: ServerName,
        masker: ServerMasker,
        events: EventSender,
        counts: Arc<ServerCounters>,
        state: State,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            view: OnceLock::new(),
            masker,
            events,
            counts,
            shown: Mutex::new(Shown {
                state,
                pool: 0,
                links: Vec::new(),
                is_muted: false,
            }),
        })
    }

    /// Says which view has the server for itself from now on. Listeners are told that the board's server became the view's.
    pub(super) fn belong_to(&self, view: &Arc<str>) {
        let mut shown = self.lock();
        let state = shown.state;
        if state != State::Idle {
            self.show(&mut shown, State::Idle, None, None);
        }
        let _ = self.view.set(view.clone());
        if state != State::Idle {
            self.show(&mut shown, state, None, None);
        }
    }

    /// Tells nothing until it takes the place of another: what a replacement does before that is no state of the server that is used.
    pub(super) fn mute(&self) {
        self.lock().is_muted = true;
    }

    /// Tells of its states from now on, if it did not.
    pub(super) fn unmute(&self) {
        let mut shown = self.lock();
        if std::mem::take(&mut shown.is_muted) {
            let state = std::mem::replace(&mut shown.state, State::Idle);
            self.show(&mut shown, state, None, None);
        }
    }

    /// Speaks for the server from now on, in the place of the one that had its name before, which falls silent.
    pub(super) fn take_over(&self, old: &Self) {
        let from = {
            let mut old = old.lock();
            old.is_muted = true;
            old.state
        };
        let mut shown = self.lock();
        shown.is_muted = false;
        // Told also when both are in the same state: listeners learn that the server is another one.
        let state = shown.state;
        self.send(from, state, None, None);
    }

    /// The server gets a new pool of connections. The number of the pool is needed for their seats.
    pub(super) fn begin_pool(&self, size: usize) -> u64 {
        let mut shown = self.lock();
        shown.pool += 1;
        shown.links = vec![State::Idle; size];
        self.show(&mut shown, State::Idle, None, None);
        shown.pool
    }

    /// The server has no connections any more.
    pub(super) fn end_pool(&self, state: State, why: Option<&Outage>) {
        let mut shown = self.lock();
        shown.pool += 1;
        shown.links.clear();
        self.show(&mut shown, state, why, None);
    }

    fn link_changed(&self, pool: u64, at: usize, phase: &Phase, is_new: bool) {
        let mut shown = self.lock();
        if shown.pool != pool {
            return;
        }
        let Some(link) = shown.links.get_mut(at) else { return };
        *link = phase.state();
        // As `Pool::phase` ranks them. Of equals the first one stays.
        let best = shown.links.iter().copied().rev().max_by_key(|state| rank(*state));
        let (why, ready_after) = match phase {
            Phase::Down(outage) => (Some(outage.as_ref()), None),
            Phase::Connecting(attempt) => (attempt.after.as_deref(), None),
            Phase::Ready(live) => (None, is_new.then_some(live.start)),
            Phase::Disabled | Phase::Idle | Phase::Closed => (None, None),
        };
        if let Some(state) = best {
            self.show(&mut shown, state, why, ready_after);
        }
    }

    /// Rings while the lock is held, so that listeners hear of changes in their order.
    fn show(&self, shown: &mut Shown, state: State, why: Option<&Outage>, ready_after: Option<Duration>) {
        let from = std::mem::replace(&mut shown.state, state);
        let fails_again = from == state && matches!(state, State::Down | State::CrashLooping) && why.is_some();
        if shown.is_muted || (from == state && !fails_again) {
            return;
        }
        self.send(from, state, why, ready_after);
    }

    fn send(&self, from: State, state: State, why: Option<&Outage>, ready_after: Option<Duration>) {
        self.events.send(|| Event::ServerChanged {
            server: self.server.clone(),
            view: self.view(),
            from,
            state,
            reason: why.map(|outage| self.hidden(&outage.message)),
            ready_after_ms: ready_after.map(millis),
            at: Timestamp::now(),
        });
    }

    fn view(&self) -> Option<String> {
        self.view.get().map(|view| view.to_string())
    }

    fn hidden(&self, text: &str) -> String {
        let mut text = self.masker.text(text).into_owned();
        text.truncate(text.floor_char_boundary(REASON));
        text
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventPublisher {
    /// The last handle to the server is gone.
    fn drop(&mut self) {
        self.end_pool(State::Closed, None);
    }
}

fn rank(state: State) -> u8 {
    match state {
        State::Ready => 3,
        State::Connecting => 2,
        State::Down | State::CrashLooping | State::NeedsAuth => 1,
        State::Idle | State::Disabled | State::Misconfigured | State::Closed => 0,
    }
}

/// The place of one connection among those of a server that holds it.
#[derive(Debug, Clone)]
pub(super) struct LinkReporter {
    publisher: Arc<EventPublisher>,
    pool: u64,
    at: usize,
    /// The session that was reported last.
    generation: u64,
    restarts: u32,
}

impl LinkReporter {
    pub(super) fn new(publisher: &Arc<EventPublisher>, pool: u64, at: usize) -> Self {
        Self {
            publisher: publisher.clone(),
            pool,
            at,
            generation: 0,
            restarts: 0,
        }
    }

    /// The connection may have been there before. What happened then belongs to others.
    pub(super) fn join(&mut self, phase: &Phase) {
        self.generation = phase.live().map_or(0, |live| live.generation);
        self.restarts = phase.restarts();
        self.publisher.link_changed(self.pool, self.at, phase, false);
    }

    /// The connection shows a phase.
    pub(super) fn changed(&mut self, phase: &Phase) {
        let counts = &self.publisher.counts;
        if let Some(again) = phase.restarts().checked_sub(self.restarts).filter(|again| *again > 0) {
            self.restarts = phase.restarts();
            counts.restarted(again);
        }
        let session = phase.live().filter(|live| live.generation != self.generation);
        if let Some(live) = session {
            self.generation = live.generation;
            counts.ready(live.start);
        }
        self.publisher
            .link_changed(self.pool, self.at, phase, session.is_some());
    }

    pub(super) fn start_failed(&self) {
        self.publisher.counts.start_failed();
    }

    pub(super) fn probe_failed(&self, reason: &str) {
        let publisher = &self.publisher;
        publisher.counts.probe_failed();
        publisher.events.send(|| Event::ProbeFailed {
            server: publisher.server.clone(),
            view: publisher.view(),
            reason: publisher.hidden(reason),
            at: Timestamp::now(),
        });
    }

    pub(super) fn catalog_changed(&self, diff: &CatalogDiff) {
        let publisher = &self.publisher;
        let kinds = [&diff.tools, &diff.resources, &diff.templates, &diff.prompts];
        publisher.events.send(|| Event::CatalogChanged {
            server: publisher.server.clone(),
            view: publisher.view(),
            added: kinds.iter().map(|kind| kind.added.len()).sum(),
            removed: kinds.iter().map(|kind| kind.removed.len()).sum(),
            changed: kinds.iter().map(|kind| kind.changed.len()).sum(),
            at: Timestamp::now(),
        });
    }
}
