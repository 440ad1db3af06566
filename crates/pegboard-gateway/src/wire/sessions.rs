//! [`Sessions`]: the legacy sessions of all endpoints in the memory of this process, limited in number and in idle time.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pegboard::Principal;
use pegboard_base::sync::{Mutex, RwLock};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::{
    replay::Keeping,
    secret_id::SecretId,
    session::{InUse, Session},
    session_store::{NotOpened, SessionStore},
};
use crate::{
    door::Caller,
    protocol::{Endpoint, Outgoing, Peer},
};

/// A session that was idle for this long may be evicted for a new one.
const EVICTABLE: Duration = Duration::from_secs(60);

/// The interval of the search for idle sessions.
const SWEEP: Duration = Duration::from_secs(10);

/// How many ended sessions are remembered. An id that is forgotten opens its session again for the same caller: without anything that it had.
const MAX_OVER: usize = 4096;

type Open = HashMap<SecretId, Arc<Session>>;

/// All sessions of a gateway.
#[derive(Debug)]
pub(super) struct Sessions {
    open: RwLock<Open>,
    max: usize,
    idle: Duration,
    /// The newest ids that clients have ended, or that ended with their tokens.
    over: Mutex<VecDeque<SecretId>>,
    keeping: Keeping,
    has_sweeper: AtomicBool,
    /// For the task that ends idle sessions.
    this: Weak<Self>,
}

/// What has become of a session that was to be added.
enum Inserted {
    Here,
    /// There is one with this id.
    Known(Arc<Session>),
    /// Too many sessions are in use, and the caller has its share of them.
    Full,
}

impl Sessions {
    pub(super) fn new(max: usize, ended: Duration, linger: Duration) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            open: RwLock::default(),
            max,
            idle: ended,
            over: Mutex::default(),
            keeping: Keeping {
                all: Arc::default(),
                tasks: TaskTracker::new(),
                linger,
            },
            has_sweeper: AtomicBool::new(false),
        })
    }

    /// Adds a session, unless there is one with this id.
    fn insert(&self, id: SecretId, session: &Arc<Session>, caller: &Caller) -> Inserted {
        let mut open = self.open.write();
        if let Some(known) = open.get(&id) {
            return Inserted::Known(known.clone());
        }
        let evicted = if open.len() >= self.max {
            let evicted = find_evictable(&open, caller).or_else(|| find_in_largest_share(&open, caller));
            let Some(id) = evicted else {
                return Inserted::Full;
            };
            open.remove(&id)
        } else {
            None
        };
        open.insert(id, session.clone());
        drop(open);
        if let Some(evicted) = evicted {
            evicted.end();
        }
        if !self.has_sweeper.swap(true, Ordering::AcqRel) {
            self.keeping.tasks.spawn(sweep(self.this.clone()));
        }
        Inserted::Here
    }

    /// Notes ids that are of no use any more, although their clients keep them.
    fn note_all_over(&self, ids: impl IntoIterator<Item = SecretId>) {
        let mut over = self.over.lock();
        for id in ids {
            if over.len() >= MAX_OVER {
                over.pop_front();
            }
            over.push_back(id);
        }
    }

    /// Ends idle sessions and those that were opened while their token was revoked, and drops what others keep for clients that do not come
    /// back.
    fn sweep(&self) {
        let mut open = self.open.write();
        let idle: Vec<_> = open
            .extract_if(|_, session| {
                session.ends_with_token() || session.idle_time().is_some_and(|idle| idle >= self.idle)
            })
            .collect();
        let others: Vec<_> = open.values().cloned().collect();
        drop(open);
        // One that was idle goes on when its client comes back.
        let withdrawn = idle.iter().filter(|(_, session)| session.ends_with_token());
        self.note_all_over(withdrawn.map(|(id, _)| *id));
        idle.iter().for_each(|(_, session)| session.end());
        others.iter().for_each(|session| session.sweep());
    }
}

impl SessionStore for Sessions {
    fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        opened: (Arc<Peer>, mpsc::Receiver<Outgoing>),
    ) -> Result<SecretId, NotOpened> {
        let id = SecretId::random().map_err(|_| NotOpened::NoId)?;
        let session = Session::new(endpoint.clone(), caller.clone(), opened, self.keeping.clone());
        match self.insert(id, &Arc::new(session), caller) {
            Inserted::Here => Ok(id),
            Inserted::Known(_) | Inserted::Full => Err(NotOpened::Full),
        }
    }

    fn reopen(
        &self,
        id: SecretId,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        opened: (Arc<Peer>, mpsc::Receiver<Outgoing>),
    ) -> Result<InUse, NotOpened> {
        let session = Session::reopened(endpoint.clone(), caller.clone(), opened, self.keeping.clone());
        let session = Arc::new(session);
        let entered = session.clone().enter();
        match self.insert(id, &session, caller) {
            Inserted::Here => Ok(entered),
            Inserted::Known(known) => {
                session.end();
                match known.belongs_to(caller, endpoint) {
                    true => Ok(known.enter()),
                    false => Err(NotOpened::OfOther),
                }
            }
            Inserted::Full => Err(NotOpened::Full),
        }
    }

    fn is_over(&self, id: SecretId) -> bool {
        self.over.lock().contains(&id)
    }

    fn hand_over(&self, id: SecretId) {
        let session = self.open.write().remove(&id);
        if let Some(session) = session {
            session.end();
        }
    }

    fn note_over(&self, id: SecretId) {
        self.note_all_over([id]);
    }

    fn enter(&self, id: SecretId, caller: &Caller, endpoint: &Arc<Endpoint>) -> Option<InUse> {
        let open = self.open.read();
        let session = open.get(&id).filter(|session| session.belongs_to(caller, endpoint))?;
        Some(session.clone().enter())
    }

    fn end(&self, id: SecretId, caller: &Caller, endpoint: &Arc<Endpoint>) -> bool {
        let mut open = self.open.write();
        if !open
            .get(&id)
            .is_some_and(|session| session.belongs_to(caller, endpoint))
        {
            return false;
        }
        let session = open.remove(&id);
        drop(open);
        self.note_all_over([id]);
        if let Some(session) = session {
            session.end();
        }
        true
    }

    fn end_listening(&self) {
        let open = self.open.read();
        let sessions: Vec<_> = open.values().cloned().collect();
        drop(open);
        sessions.iter().for_each(|session| session.end_general());
    }

    fn end_revoked(&self) {
        let mut open = self.open.write();
        let revoked: Vec<_> = open.extract_if(|_, session| session.ends_with_token()).collect();
        drop(open);
        self.note_all_over(revoked.iter().map(|(id, _)| *id));
        revoked.iter().for_each(|(_, session)| session.end());
    }

    fn end_all(&self) {
        let open = std::mem::take(&mut *self.open.write());
        open.values().for_each(|session| session.end());
    }

    fn len(&self) -> usize {
        self.open.read().len()
    }
}

/// Sweeps until the sessions are dropped.
async fn sweep(sessions: Weak<Sessions>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match sessions.upgrade() {
            Some(sessions) => sessions.sweep(),
            None => return,
        }
    }
}

/// The session that makes room for a new one: the one that has been idle longest, first among the caller's own.
fn find_evictable(open: &Open, caller: &Caller) -> Option<SecretId> {
    let candidates = open.iter().filter_map(|(id, session)| {
        let idle = session.idle_time().filter(|idle| *idle >= EVICTABLE)?;
        Some(((session.is_of(caller), idle), *id))
    });
    candidates.max_by_key(|(rank, _)| *rank).map(|(_, id)| id)
}

/// The session that makes room for a caller with less than its share, while others have more than theirs: one of the principal with the
/// most sessions, idle rather than in use, and then the one that was used least recently.
fn find_in_largest_share(open: &Open, caller: &Caller) -> Option<SecretId> {
    let mut counts: HashMap<Option<&Principal>, usize> = HashMap::new();
    for session in open.values() {
        *counts.entry(session.principal()).or_default() += 1;
    }
    let own = *counts.entry(caller.principal.as_ref()).or_default();
    let (largest, most) = counts.iter().max_by_key(|(_, count)| **count)?;
    // With one more, the caller must not have more than is left to the other.
    if own + 1 >= *most {
        return None;
    }
    let of_largest = open.iter().filter(|(_, session)| session.principal() == *largest);
    of_largest
        .max_by_key(|(_, session)| (session.idle_time().is_some(), session.time_since_use()))
        .map(|(id, _)| *id)
}

#[cfg(test)]
mod tests;
