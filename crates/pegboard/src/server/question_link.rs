//! A further connection to a server that speaks both eras, in the older one, for calls whose client answers questions.
//!
//! In the newest era a server returns its questions as results. Tools that were written for the older era send them during the call instead, which
//! only a connection of that era can carry. The connection is opened when the first call needs it, and closed when it is idle or its pool closes.

use std::{sync::Arc, time::Duration};

use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use super::{
    connection_plan::ConnectionPlan,
    link::LinkLease,
    outage::{Cause, Outage},
    supervisor::Command,
};

/// How long the connection is not tried again after a failure that may pass.
const PAUSE: Duration = Duration::from_secs(60);

/// The connection of a pool for calls in which the server may send questions.
#[derive(Debug, Default)]
pub(super) struct QuestionLink(Mutex<QuestionState>);

#[derive(Debug, Default)]
enum QuestionState {
    /// No call has needed it.
    #[default]
    Unused,
    Open(Arc<LinkLease>),
    Refused(Refusal),
    /// Its pool is closed.
    Closed,
}

/// A failure to open the connection.
#[derive(Debug)]
struct Refusal {
    /// The generation of the session beside it. The server of another session may be another one.
    generation: u64,
    /// Until when it counts; `None` if the server does not speak the older era.
    until: Option<Instant>,
}

impl Refusal {
    fn holds(&self, generation: u64) -> bool {
        self.generation == generation && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl QuestionLink {
    /// The connection beside the session of this generation. `open` opens it if there is none. Returns `None` if it was refused or cannot be
    /// opened.
    pub(super) fn lease(&self, generation: u64, open: impl FnOnce() -> Option<LinkLease>) -> Option<Arc<LinkLease>> {
        let mut state = self.0.lock();
        match &*state {
            QuestionState::Open(lease) => return Some(lease.clone()),
            QuestionState::Refused(refusal) if refusal.holds(generation) => return None,
            QuestionState::Closed => return None,
            QuestionState::Unused | QuestionState::Refused(_) => {}
        }
        let lease = Arc::new(open()?);
        *state = QuestionState::Open(lease.clone());
        Some(lease)
    }

    /// Notes that the connection could not be opened, and closes it.
    pub(super) fn refuse(&self, lease: &Arc<LinkLease>, generation: u64, outage: &Outage) {
        let until = (outage.cause != Cause::Broken).then(|| Instant::now() + PAUSE);
        let mut state = self.0.lock();
        if matches!(&*state, QuestionState::Open(open) if Arc::ptr_eq(open, lease)) {
            *state = QuestionState::Refused(Refusal { generation, until });
        }
    }

    /// Applies another plan. Without one, or if other servers share the connection, it is closed.
    pub(super) fn retune(&self, plan: Option<ConnectionPlan>, idle: Option<Duration>) {
        let mut state = self.0.lock();
        if let QuestionState::Open(lease) = &*state
            && !plan.is_some_and(|plan| lease.retune(plan, idle))
        {
            *state = QuestionState::Unused;
        }
    }

    /// Sends a command about a session. Other commands are for the connection that the server is listed on.
    pub(super) fn send(&self, command: Command) {
        let is_about_session = matches!(command, Command::Replace(_) | Command::Suspect(_) | Command::Refused(_));
        if let QuestionState::Open(lease) = &*self.0.lock()
            && is_about_session
        {
            lease.link().send(command);
        }
    }

    /// How many requests use the connection, if no other server shares it.
    pub(super) fn uses(&self) -> usize {
        match &*self.0.lock() {
            QuestionState::Open(lease) if lease.is_sole_holder() => lease.link().uses(),
            _ => 0,
        }
    }

    /// Closes the connection and forgets refusals.
    pub(super) fn reset(&self) {
        let mut state = self.0.lock();
        if !matches!(*state, QuestionState::Closed) {
            *state = QuestionState::Unused;
        }
    }

    /// Opens no connection from now on. Returns the open one.
    pub(super) fn close(&self) -> Option<Arc<LinkLease>> {
        match std::mem::replace(&mut *self.0.lock(), QuestionState::Closed) {
            QuestionState::Open(lease) => Some(lease),
            QuestionState::Unused | QuestionState::Refused(_) | QuestionState::Closed => None,
        }
    }
}
