//! Legacy sessions: opened by `initialize`, ended by DELETE, limited in number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::demo::in_flight::InFlight;
use crate::demo::message::Fault;
use crate::demo::protocol::Peer;
use crate::demo::wire::secret_id::secret_id;

/// The limit on open sessions: far more than local clients need.
const MAX_SESSIONS: usize = 256;

/// A session that was idle for this long may be evicted for a new one.
const IDLE: Duration = Duration::from_secs(60);

/// All sessions of the server.
#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    stop: CancellationToken,
}

/// The state of one client between its requests.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Peer,
    pub(super) in_flight: InFlight,
    /// Cancelled when the session ends.
    pub(super) stop: CancellationToken,
    last_used: Mutex<Instant>,
    has_stream: AtomicBool,
}

/// The permit for the single GET stream of a session.
#[derive(Debug)]
pub(super) struct Listening(Arc<Session>);

impl Sessions {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self {
            open: Mutex::default(),
            stop,
        }
    }

    /// Opens a session and returns its id. Fails if too many sessions are in use.
    pub(super) fn open(&self) -> Result<(String, Arc<Session>), Fault> {
        let id = secret_id().map_err(|_| Fault::new(Fault::INTERNAL, "no random numbers for a session id"))?;
        let session = Arc::new(Session::stateless(&self.stop));
        let mut open = self.sessions();
        if open.len() >= MAX_SESSIONS && !make_room(&mut open) {
            return Err(Fault::new(
                Fault::BUSY,
                format!("{MAX_SESSIONS} sessions are in use; end one or try later"),
            ));
        }
        open.insert(id.clone(), session.clone());
        Ok((id, session))
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.sessions().get(id).cloned()?;
        *session.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Some(session)
    }

    /// Ends a session. Returns `false` if there is none with this id.
    pub(super) fn end(&self, id: &str) -> bool {
        let session = self.sessions().remove(id);
        session.inspect(|session| session.stop.cancel()).is_some()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts the session that has been idle longest, if it exceeds [`IDLE`].
fn make_room(open: &mut HashMap<String, Arc<Session>>) -> bool {
    let quietest = open
        .iter()
        .filter(|(_, session)| !session.is_busy())
        .min_by_key(|(_, session)| session.last_used());
    let Some((id, session)) = quietest.filter(|(_, session)| session.last_used().elapsed() >= IDLE) else {
        return false;
    };
    session.stop.cancel();
    let id = id.clone();
    open.remove(&id);
    true
}

impl Session {
    /// A session without an id, for a single modern request.
    pub(super) fn stateless(stop: &CancellationToken) -> Self {
        let stop = stop.child_token();
        Self {
            peer: Peer::default(),
            in_flight: InFlight::new(stop.clone()),
            stop,
            last_used: Mutex::new(Instant::now()),
            has_stream: AtomicBool::new(false),
        }
    }

    /// Takes the permit for the session's stream, unless it is taken.
    pub(super) fn listen(self: &Arc<Self>) -> Option<Listening> {
        (!self.has_stream.swap(true, Ordering::AcqRel)).then(|| Listening(self.clone()))
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_busy(&self) -> bool {
        self.has_stream.load(Ordering::Acquire) || !self.in_flight.is_empty()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.has_stream.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_house_makes_room_only_for_the_long_quiet() {
        let sessions = Sessions::new(CancellationToken::new());
        let (first, _) = sessions.open().unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 1..MAX_SESSIONS {
            sessions.open().unwrap();
        }
        assert_eq!(sessions.open().unwrap_err().code, Fault::BUSY);
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        sessions.open().unwrap();
        assert!(sessions.get(&first).is_none());
        assert_eq!(sessions.open().unwrap_err().code, Fault::BUSY);
    }

    #[tokio::test]
    async fn a_session_ends_once_and_has_one_stream() {
        let sessions = Sessions::new(CancellationToken::new());
        let (id, session) = sessions.open().unwrap();
        let listening = session.listen().unwrap();
        assert!(session.listen().is_none());
        drop(listening);
        assert!(session.listen().is_some());
        assert!(sessions.end(&id));
        assert!(session.stop.is_cancelled());
        assert!(!sessions.end(&id));
    }
}
