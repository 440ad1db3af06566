//! Publishes the events of one server and counts its starts, restarts and failures.
//!
//! A supervisor owns one link. A server may have several links, and a link may belong to several servers. So supervisors report to one
//! [`LinkReporter`] per link and server, and each server's [`EventPublisher`] derives one state from its links.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use pegboard_base::timestamp::Timestamp;

use super::{instance_history::InstanceHistory, known_catalog::names, outage::Outage, phase::Phase, view_tag::ViewTag};
use crate::status::State;
use crate::{
    event::{Event, EventSender},
    metrics::ServerCounters,
    pin::{PinChange, PinState},
};
use pegboard_base::sync::Mutex;
use pegboard_base::{caller::Principal, log_event, name::ServerName};
use pegboard_mask::ServerMasker;
use pegboard_tools::{catalog::CatalogDiff, outcome::millis};

/// The longest reason in an event, in bytes.
const REASON: usize = 4 << 10;

/// Publishes the events of one server.
#[derive(Debug)]
pub(super) struct EventPublisher {
    server: ServerName,
    /// The view or the principal that owns the server.
    owner: OnceLock<ViewTag>,
    masker: ServerMasker,
    events: EventSender,
    counts: Arc<ServerCounters>,
    /// What this instance and others have last learned about the server.
    history: Arc<InstanceHistory>,
    published: Mutex<PublishedState>,
}

#[derive(Debug)]
struct PublishedState {
    state: State,
    /// The number of the current pool. Reports from links of earlier pools are ignored.
    pool: u64,
    /// The states of the links.
    links: Vec<State>,
    is_muted: bool,
}

impl EventPublisher {
    pub(super) fn new(
        server: ServerName,
        masker: ServerMasker,
        events: EventSender,
        counts: Arc<ServerCounters>,
        history: Arc<InstanceHistory>,
        state: State,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            owner: OnceLock::new(),
            masker,
            events,
            counts,
            history,
            published: Mutex::new(PublishedState {
                state,
                pool: 0,
                links: Vec::new(),
                is_muted: false,
            }),
        })
    }

    /// Sets the owner of the server. Subscribers see the board's server become idle and the owner's server take over its state.
    pub(super) fn assign_owner(&self, owner: &ViewTag) {
        let mut published = self.published.lock();
        let state = published.state;
        if state != State::Idle {
            self.publish(&mut published, State::Idle, None, None);
        }
        let _ = self.owner.set(owner.clone());
        if state != State::Idle {
            self.publish(&mut published, state, None, None);
        }
    }

    /// Publishes nothing until the server replaces another: the states of a replacement before that are not those of the server in use.
    pub(super) fn mute(&self) {
        self.published.lock().is_muted = true;
    }

    /// Publishes states from now on, beginning with the current one.
    pub(super) fn unmute(&self) {
        let mut published = self.published.lock();
        if std::mem::take(&mut published.is_muted) {
            let state = std::mem::replace(&mut published.state, State::Idle);
            self.publish(&mut published, state, None, None);
        }
    }

    /// Publishes for the server in place of `old`, which is muted.
    pub(super) fn take_over(&self, old: &Self) {
        let from = {
            let mut old = old.published.lock();
            old.is_muted = true;
            old.state
        };
        let mut published = self.published.lock();
        published.is_muted = false;
        // Published even if both have the same state, so that subscribers learn of the replacement.
        let state = published.state;
        self.send(from, state, None, None);
    }

    /// Begins a new pool of links. Returns its number for the links' reporters.
    pub(super) fn begin_pool(&self, size: usize) -> u64 {
        let mut published = self.published.lock();
        published.pool += 1;
        published.links = vec![State::Idle; size];
        self.publish(&mut published, State::Idle, None, None);
        published.pool
    }

    /// Ends the pool: the server has no links any more.
    pub(super) fn end_pool(&self, state: State, why: Option<&Outage>) {
        let mut published = self.published.lock();
        published.pool += 1;
        published.links.clear();
        self.publish(&mut published, state, why, None);
    }

    fn publish_link_change(&self, pool: u64, index: usize, phase: &Phase, is_new: bool) {
        let mut published = self.published.lock();
        if published.pool != pool {
            return;
        }
        let Some(link) = published.links.get_mut(index) else {
            return;
        };
        *link = phase.state();
        // Ranked as in `Pool::phase`. The first of equals wins.
        let best = published.links.iter().copied().rev().max_by_key(|state| rank(*state));
        let (why, ready_after) = match phase {
            Phase::Down(outage) => (Some(outage.as_ref()), None),
            Phase::Connecting(attempt) => (attempt.after.as_deref(), None),
            Phase::Ready(live) => (None, is_new.then_some(live.start)),
            Phase::Disabled | Phase::Idle | Phase::Closed => (None, None),
        };
        // A connection of several that fails says nothing about a server with others.
        if best == Some(phase.state()) {
            self.history.record(phase);
        }
        if let Some(state) = best {
            self.publish(&mut published, state, why, ready_after);
        }
    }

    /// Sends under the lock, so that subscribers receive changes in order.
    fn publish(
        &self,
        published: &mut PublishedState,
        state: State,
        why: Option<&Outage>,
        ready_after: Option<Duration>,
    ) {
        let from = std::mem::replace(&mut published.state, state);
        let fails_again = from == state && matches!(state, State::Down | State::CrashLooping) && why.is_some();
        if published.is_muted || (from == state && !fails_again) {
            return;
        }
        self.send(from, state, why, ready_after);
    }

    fn send(&self, from: State, state: State, why: Option<&Outage>, ready_after: Option<Duration>) {
        self.events.send_server_change(|| Event::ServerChanged {
            server: self.server.clone(),
            view: self.view(),
            principal: self.principal(),
            from,
            state,
            reason: why.map(|outage| self.mask_reason(&outage.message)),
            ready_after_ms: ready_after.map(millis),
            at: Timestamp::now(),
        });
    }

    pub(super) fn publish_flagged_definitions(&self, changes: &[PinChange], held: usize) {
        let changed = changes.iter().filter(|change| change.state != PinState::Unchanged);
        let suspicious = changes.iter().filter(|change| !change.findings.is_empty());
        let (changed, suspicious) = (changed.count(), suspicious.count());
        // Listings and replies have warnings for people.
        let flagged = changes
            .iter()
            .filter(|change| change.state != PinState::Unchanged || !change.findings.is_empty());
        let tools: Vec<&String> = flagged.filter_map(|change| change.tool.as_ref()).collect();
        let tools = names(tools.into_iter());
        tracing::info!(name: log_event::DEFINITIONS_FLAGGED, server = %self.server, tools, changed, suspicious, held, "definitions were flagged");
        self.events.send_server_change(|| Event::DefinitionsFlagged {
            server: self.server.clone(),
            view: self.view(),
            principal: self.principal(),
            changed,
            suspicious,
            held,
            at: Timestamp::now(),
        });
    }

    fn view(&self) -> Option<String> {
        let owner = self.owner.get()?;
        owner.name.as_ref().map(ToString::to_string)
    }

    fn principal(&self) -> Option<Principal> {
        self.owner.get()?.principal.clone()
    }

    fn mask_reason(&self, text: &str) -> String {
        let mut text = self.masker.text(text).into_owned();
        text.truncate(text.floor_char_boundary(REASON));
        text
    }
}

impl Drop for EventPublisher {
    /// The last handle to the server was dropped.
    fn drop(&mut self) {
        self.end_pool(State::Closed, None);
    }
}

fn rank(state: State) -> u8 {
    match state {
        State::Ready => 3,
        State::Connecting => 2,
        State::Down | State::CrashLooping | State::NeedsAuth => 1,
        State::Idle | State::Disabled | State::Misconfigured | State::PendingTrust | State::Closed => 0,
    }
}

/// Reports the phases of one link to one of the servers that lease it.
#[derive(Debug, Clone)]
pub(super) struct LinkReporter {
    /// `None` for a link whose phases are not those of the server.
    publisher: Option<Arc<EventPublisher>>,
    pool: u64,
    index: usize,
    /// The generation of the last reported session.
    generation: u64,
    restarts: u32,
}

impl LinkReporter {
    pub(super) fn new(publisher: &Arc<EventPublisher>, pool: u64, index: usize) -> Self {
        Self {
            publisher: Some(publisher.clone()),
            pool,
            index,
            generation: 0,
            restarts: 0,
        }
    }

    /// Reports nothing.
    pub(super) fn silent() -> Self {
        Self {
            publisher: None,
            pool: 0,
            index: 0,
            generation: 0,
            restarts: 0,
        }
    }

    /// Starts to report a link that may be in use already. Its earlier sessions and restarts are not counted for this server.
    pub(super) fn attach(&mut self, phase: &Phase) {
        self.generation = phase.as_live().map_or(0, |live| live.generation);
        self.restarts = phase.restarts();
        if let Some(publisher) = &self.publisher {
            publisher.publish_link_change(self.pool, self.index, phase, false);
        }
    }

    /// Reports a new phase of the link.
    pub(super) fn report_phase(&mut self, phase: &Phase) {
        let Some(publisher) = &self.publisher else {
            return;
        };
        let counts = &publisher.counts;
        if let Some(again) = phase.restarts().checked_sub(self.restarts).filter(|again| *again > 0) {
            self.restarts = phase.restarts();
            counts.add_restarts(again);
        }
        let session = phase.as_live().filter(|live| live.generation != self.generation);
        if let Some(live) = session {
            self.generation = live.generation;
            counts.record_ready(live.start);
        }
        publisher.publish_link_change(self.pool, self.index, phase, session.is_some());
    }

    pub(super) fn report_failed_start(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.counts.count_failed_start();
        }
    }

    pub(super) fn report_failed_probe(&self, reason: &str) {
        let Some(publisher) = &self.publisher else {
            return;
        };
        publisher.counts.count_failed_probe();
        publisher.events.send(|| Event::ProbeFailed {
            server: publisher.server.clone(),
            view: publisher.view(),
            principal: publisher.principal(),
            reason: publisher.mask_reason(reason),
            at: Timestamp::now(),
        });
    }

    pub(super) fn report_catalog_change(&self, diff: &CatalogDiff) {
        let Some(publisher) = &self.publisher else {
            return;
        };
        let kinds = [&diff.tools, &diff.resources, &diff.templates, &diff.prompts];
        publisher.events.send_server_change(|| Event::CatalogChanged {
            server: publisher.server.clone(),
            view: publisher.view(),
            principal: publisher.principal(),
            added: kinds.iter().map(|kind| kind.added.len()).sum(),
            removed: kinds.iter().map(|kind| kind.removed.len()).sum(),
            changed: kinds.iter().map(|kind| kind.changed.len()).sum(),
            at: Timestamp::now(),
        });
    }
}
