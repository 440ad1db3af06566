//! Legacy sessions and their resumable streams.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::body::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::{mpsc, watch};

use crate::{
    server::{Frame, lock},
    wire::peer::Peer,
};

/// The open sessions by id.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<BTreeMap<String, Arc<Session>>>,
    next: AtomicU64,
}

impl Sessions {
    pub(crate) fn ids(&self) -> Vec<String> {
        lock(&self.open).keys().cloned().collect()
    }

    pub(crate) fn forget(&self) {
        lock(&self.open).clear();
    }

    /// Opens a session. Returns its id: the given one, or the next free one.
    pub(super) fn open(&self, id: Option<String>, session: Arc<Session>) -> String {
        // Numbers continue after a restart, so that an old id never names a new session.
        let id = id.unwrap_or_else(|| format!("session-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        lock(&self.open).insert(id.clone(), session);
        id
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.open).get(id).cloned()
    }

    pub(super) fn close(&self, id: &str) {
        lock(&self.open).remove(id);
    }
}

/// One client of streamable HTTP.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) peer: Peer,
    tapes: Mutex<Vec<watch::Sender<Tape>>>,
}

/// The recorded events of a resumable stream.
#[derive(Debug, Default)]
struct Tape {
    events: Vec<Bytes>,
    ended: bool,
}

impl Session {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            tapes: Mutex::default(),
        }
    }

    /// Records a stream from its priming event on, also while no client reads it.
    pub(super) fn record(
        &self,
        retry_ms: Option<u64>,
        mut outgoing: mpsc::Receiver<Frame>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let tape = watch::Sender::new(Tape::default());
        let number = {
            let mut tapes = lock(&self.tapes);
            tapes.push(tape.clone());
            tapes.len() - 1
        };
        let retry = retry_ms.map(|ms| format!("retry: {ms}\n")).unwrap_or_default();
        let priming = format!("id: {number}-0\n{retry}data: \n\n");
        tape.send_modify(|tape| tape.events.push(priming.into()));
        let events = play(tape.subscribe(), 0);
        tokio::spawn(async move {
            while let Some(frame) = outgoing.recv().await {
                match frame {
                    Frame::Message { text, last } => tape.send_modify(|tape| {
                        let head = format!("id: {number}-{}\nevent: message\ndata: ", tape.events.len());
                        tape.events.push([head.as_bytes(), &text, b"\n\n"].concat().into());
                        tape.ended |= last;
                    }),
                    Frame::Raw(bytes) => tape.send_modify(|tape| tape.events.push(bytes)),
                    Frame::Close | Frame::Reset => tape.send_modify(|tape| tape.ended = true),
                    Frame::Mark(_) => {}
                }
            }
            tape.send_modify(|tape| tape.ended = true);
        });
        events
    }

    /// The events after this one.
    pub(super) fn resume(&self, last: &str) -> Option<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let (number, index) = last.split_once('-')?;
        let (number, index): (usize, usize) = (number.parse().ok()?, index.parse().ok()?);
        let tape = lock(&self.tapes).get(number)?.subscribe();
        Some(play(tape, index.checked_add(1)?))
    }
}

fn play(tape: watch::Receiver<Tape>, from: usize) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    stream::unfold((tape, from), |(mut tape, at)| async move {
        let event = {
            // An error means that the session has ended, and the stream with it.
            let now = tape.wait_for(|tape| tape.events.len() > at || tape.ended).await.ok()?;
            now.events.get(at).cloned()
        };
        Some((Ok(event?), (tape, at + 1)))
    })
}
