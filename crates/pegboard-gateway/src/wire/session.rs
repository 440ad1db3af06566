//! [`Session`]: a legacy client between its requests.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard::Principal;
use pegboard_base::sync::Mutex;
use tokio::{sync::mpsc, time::Instant};

use super::{
    event_frame::EventId,
    replay::{EventReader, Keeping, MessageSource, ReplayStream},
};
use crate::{
    door::Caller,
    protocol::{EarlyEnd, Endpoint, Outgoing, Peer, Running},
};

/// The limit on the streams of requests that a session keeps. Ended ones are dropped first.
const MAX_STREAMS: usize = 64;

/// The number of the stream for messages that belong to no request.
const GENERAL: u64 = 0;

/// The state of one client between its requests.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) peer: Arc<Peer>,
    /// How often its process had been late among its replicas when it was last seen to be its own.
    lapses: AtomicU64,
    /// The sealed part of its id, once it is known.
    sealed: OnceLock<Option<Box<str>>>,
    caller: Caller,
    general: Arc<ReplayStream>,
    streams: Mutex<VecDeque<Arc<ReplayStream>>>,
    last_stream: AtomicU64,
    keeping: Keeping,
    /// How many requests and streams are open.
    open: AtomicUsize,
    used: Mutex<Instant>,
}

/// Marks a session as in use.
#[derive(Debug)]
pub(super) struct InUse(pub(super) Arc<Session>);

impl Session {
    /// A session that its client has had with another process. Its streams are numbered apart from those, so that the id of an event of theirs
    /// names none of these.
    pub(super) fn reopened(
        endpoint: Arc<Endpoint>,
        caller: Caller,
        opened: (Arc<Peer>, mpsc::Receiver<Outgoing>),
        keeping: Keeping,
    ) -> Self {
        let session = Self::new(endpoint, caller, opened, keeping);
        let mut random = [0; 4];
        // Without random numbers there are no session ids either.
        if getrandom::fill(&mut random).is_ok() {
            let first = (u64::from(u32::from_ne_bytes(random)) + 1) << 20;
            session.last_stream.store(first, Ordering::Relaxed);
        }
        session
    }

    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        caller: Caller,
        (peer, outbox): (Arc<Peer>, mpsc::Receiver<Outgoing>),
        keeping: Keeping,
    ) -> Self {
        Self {
            endpoint,
            peer,
            lapses: AtomicU64::new(0),
            sealed: OnceLock::new(),
            caller,
            general: ReplayStream::new(GENERAL, MessageSource::Outbox(outbox), &keeping),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(GENERAL),
            keeping,
            open: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    /// Returns `true` if this caller opened the session at this endpoint. To any other the session does not exist.
    pub(super) fn belongs_to(&self, caller: &Caller, endpoint: &Arc<Endpoint>) -> bool {
        self.caller == *caller && Arc::ptr_eq(&self.endpoint, endpoint)
    }

    /// Whether it was seen to belong to this process since that was late for the last time.
    pub(super) fn is_own_since(&self, lapses: u64) -> bool {
        self.lapses.load(Ordering::Acquire) == lapses
    }

    /// Notes that it belongs to this process.
    pub(super) fn note_own(&self, lapses: u64) {
        self.lapses.store(lapses, Ordering::Release);
    }

    /// Notes the sealed part of its id.
    pub(super) fn set_sealed(&self, sealed: Option<&str>) {
        // Two requests that open the session again have the same.
        let _ = self.sealed.set(sealed.map(Box::from));
    }

    /// Whether an id with this sealed part is the one that the client was given.
    pub(super) fn is_sealed_as(&self, sealed: Option<&str>) -> bool {
        self.sealed.get().is_none_or(|known| known.as_deref() == sealed)
    }

    /// Returns `true` if this caller opened the session.
    pub(super) fn is_of(&self, caller: &Caller) -> bool {
        self.caller == *caller
    }

    /// Returns `true` if the token that it was opened with is good no longer. Nothing new is started then.
    pub(super) fn is_revoked(&self) -> bool {
        self.caller.revoked.has_ended()
    }

    /// Returns `true` if the session ends with its token now. When the token has expired, the requests that it admitted are answered first.
    pub(super) fn ends_with_token(&self) -> bool {
        self.is_revoked() && !(self.caller.revoked.has_expired() && self.peer.has_requests())
    }

    /// Marks the session as in use until the returned value is dropped.
    pub(super) fn enter(self: Arc<Self>) -> InUse {
        self.open.fetch_add(1, Ordering::Relaxed);
        InUse(self)
    }

    /// The principal that opened the session.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.caller.principal.as_ref()
    }

    /// How long the session has been idle; `None` if it is in use.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let is_open = self.open.load(Ordering::Relaxed) > 0;
        (!is_open).then(|| self.time_since_use())
    }

    /// How long ago the last request or stream ended, or the session was opened.
    pub(super) fn time_since_use(&self) -> Duration {
        self.used.lock().elapsed()
    }

    /// Adds the stream of a request or of a batch.
    pub(super) fn add_stream(&self, calls: Vec<Running>) -> Arc<ReplayStream> {
        let number = self.last_stream.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = ReplayStream::new(number, MessageSource::Calls(calls), &self.keeping);
        let mut streams = self.streams.lock();
        let is_full = streams.len() >= MAX_STREAMS;
        let oldest = if is_full {
            let index = streams.iter().position(|stream| stream.has_ended()).unwrap_or(0);
            streams.remove(index)
        } else {
            None
        };
        streams.push_back(stream.clone());
        drop(streams);
        // It is not ended: its client may still be connected, and just cannot come back.
        drop(oldest);
        stream
    }

    /// Reads the stream of messages that belong to no request.
    pub(super) fn read_general(&self) -> EventReader {
        self.general.read(None, false)
    }

    /// Reads on after an event. Returns `None` if its stream is no longer kept.
    pub(super) fn resume(&self, last: EventId) -> Option<EventReader> {
        if last.stream == GENERAL {
            return Some(self.general.read(Some(last.place), true));
        }
        let streams = self.streams.lock();
        let stream = streams.iter().find(|stream| stream.number() == last.stream)?.clone();
        drop(streams);
        Some(stream.read(Some(last.place), true))
    }

    /// Ends the stream of messages that belong to no request, because the server stops.
    pub(super) fn end_general(&self) {
        self.general.end();
    }

    /// Ends everything that the session runs. Requests in flight are answered with an error by whatever polls them.
    pub(super) fn end(&self) {
        self.general.end();
        self.peer.close(match self.caller.revoked.is_revoked() {
            true => EarlyEnd::TokenWithdrawn,
            false => EarlyEnd::SessionEnded,
        });
    }

    /// Drops the events of streams that no client will come back for.
    pub(super) fn sweep(&self) {
        // Shared, because what is dropped must not be dropped under the lock.
        let streams: Vec<_> = self.streams.lock().iter().cloned().collect();
        streams
            .iter()
            .for_each(|stream| stream.forget_if_stale(self.keeping.linger));
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.used.lock() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
