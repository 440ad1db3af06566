//! Where a server belongs: to the board, to one view, or off the board with its last calls.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use super::{Server, Standing};
use crate::{
    config::{Scope, ServerConfig, Start},
    deadline::Deadline,
};

/// How long a spare session of a server that each view has for itself waits for a view.
const SPARE: Duration = Duration::from_secs(60);
/// How often a server that leaves the board is asked whether its calls have ended.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Who owns a server that each view has for itself.
#[derive(Debug, Clone)]
pub(crate) struct ViewTag {
    /// What status calls the view.
    pub(crate) name: Arc<str>,
    pub(super) number: u64,
    /// Counts the changes of the view's servers.
    pub(super) revision: Arc<AtomicU64>,
}

impl Server {
    /// Whether it is started with the board, or with the view that owns it, without anyone asking for it.
    pub(crate) fn starts_unasked(&self) -> bool {
        let config = self.config();
        let is_wanted = config.start == Start::Eager || config.required;
        config.enabled && is_wanted && self.is_asked_for()
    }

    /// Whether it is ready for calls at this moment.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase().live().is_some()
    }

    /// Counts it as started well, because a copy of it was.
    pub(super) fn vouch(&self) {
        if let Some(pool) = self.pool() {
            pool.first().known().mark_listed();
        }
    }

    /// Whether both are handles to the same server.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// After how long without a use its connection rests.
    pub(super) fn idle_after(&self, config: &ServerConfig) -> Option<Duration> {
        if self.is_spare() && !config.required {
            return Some(SPARE);
        }
        config.idle_after()
    }

    /// Whether it belongs to no view although each view has one of its own: views are given copies of it, or itself.
    pub(crate) fn is_spare(&self) -> bool {
        self.config().policy.scope == Scope::Session && self.view().is_none()
    }

    /// The view that owns it, if one does.
    pub(crate) fn view(&self) -> Option<&ViewTag> {
        self.0.view.get()
    }

    /// Makes it the server of one view.
    pub(super) fn belong_to(&self, view: &ViewTag) {
        if self.0.view.set(view.clone()).is_ok() {
            self.0.herald.belongs_to(&view.name);
            self.0.revision.count_on(view.revision.clone());
            if let Some(pool) = self.pool() {
                pool.rest_after(self.config().idle_after());
            }
        }
    }

    /// Another server with the same settings and a process or connection of its own, which starts idle.
    pub(super) fn fresh(&self) -> Self {
        let mut fresh = Self::without_link(self.config().as_ref().clone(), self.0.spec.clone(), &self.0.shared);
        if let Some(inner) = Arc::get_mut(&mut fresh.0) {
            inner.is_asked_for = self.0.is_asked_for.clone();
        }
        match self.standing().as_ref() {
            Standing::On(pool) => {
                fresh.switch_on();
                fresh.set_roots(&pool.first().plan().spec.standing.roots());
            }
            Standing::Refused(outage) => drop(fresh.stand(Standing::Refused(outage.clone()))),
            Standing::Off | Standing::Closed => {}
        }
        fresh
    }

    /// Marks it as off the board. Calls that hold on to it end on its connection; those that have not reached it when it closes go to `next`.
    pub(crate) fn leave_to(&self, next: Option<&Self>) {
        let _ = self.0.left.set(next.map(|next| Arc::downgrade(&next.0)));
    }

    /// Whether it is off the board.
    pub(crate) fn has_left(&self) -> bool {
        self.0.left.get().is_some()
    }

    /// The server that took its place on the board, if one did and is still there.
    pub(super) fn successor(&self) -> Option<Self> {
        self.0.left.get()?.as_ref()?.upgrade().map(Self)
    }

    /// Waits until no call uses it, at most until `deadline`, and closes it.
    pub(crate) async fn drain(&self, deadline: Deadline) {
        while self.busy() > 0 && !deadline.has_passed() {
            tokio::time::sleep(DRAIN_POLL.min(deadline.remaining())).await;
        }
        self.close().await;
    }
}
