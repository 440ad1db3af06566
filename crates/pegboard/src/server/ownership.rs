//! Whether a server belongs to the board, to a view or principal, or to none because it was removed; and whether it is enabled.

use std::{sync::Arc, time::Duration};

use super::{availability::Availability, server_handle::Server, view_tag::ViewTag};
use pegboard_base::deadline::Deadline;
use pegboard_config::{Scope, ServerConfig, Start};

/// How long the session of a spare may wait for a view before it is closed as idle.
const SPARE: Duration = Duration::from_secs(60);
/// How often a draining server is polled for calls in flight.
const DRAIN_POLL: Duration = Duration::from_millis(10);

impl Server {
    /// Whether the server is enabled: by an operator's last command, or else by its config.
    pub(crate) fn is_enabled(&self) -> bool {
        self.activation().is_enabled(self.config().enabled)
    }

    /// Inherits the operator's command from the replaced server, unless the new config changes `enabled`.
    pub(crate) fn inherit_switch(&self, old: &Self) {
        if old.config().enabled == self.config().enabled && !self.connections().is_refused() {
            self.activation().inherit_command(old.activation());
            self.follow_switch();
        }
    }

    /// Enables or disables the server as [`Server::is_enabled`] says. A server that is disabled here has no calls in flight.
    pub(crate) fn follow_switch(&self) {
        match (self.is_enabled(), self.connections().pool().is_some()) {
            (true, false) => self.switch_on(),
            (false, true) => drop(self.connections().set(Availability::Off)),
            _ => {}
        }
    }

    /// Whether the server starts with the board, or with the view that owns it.
    pub(crate) fn starts_automatically(&self) -> bool {
        let config = self.config();
        let is_wanted = config.start == Start::Eager || config.required;
        self.is_enabled() && is_wanted && self.activation().is_requested()
    }

    /// Whether the server is ready for calls now.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase().as_live().is_some()
    }

    /// Whether both are handles to the same server.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How long the connection may be idle before it is closed.
    pub(super) fn idle_after(&self, config: &ServerConfig) -> Option<Duration> {
        if self.is_spare() && !config.required {
            return Some(SPARE);
        }
        config.idle_after()
    }

    /// Whether this is a session-scoped server without an owner. The next view takes it over, or gets a fresh instance.
    pub(crate) fn is_spare(&self) -> bool {
        self.config().policy.scope == Scope::Session && self.owner().tag().is_none()
    }

    /// Whether all views use this server: no view owns it, and none takes it over.
    pub(crate) fn is_shared(&self) -> bool {
        self.owner().tag().is_none() && !self.is_spare()
    }

    /// Whether the server is one process for all callers, which must not run beside another one of its name.
    pub(crate) fn runs_alone(&self) -> bool {
        let is_shared = self.config().policy.scope == Scope::Shared && self.owner().tag().is_none();
        is_shared && self.spec().is_process() && !self.spec().is_private()
    }

    /// Makes a view the owner of the server.
    pub(super) fn belong_to(&self, view: &ViewTag) {
        let reporting = &self.0.reporting;
        if self.owner().assign(view) {
            reporting.publisher.assign_owner(view);
            reporting.revision.count_on(view.revision.clone());
            if let Some(pool) = self.connections().pool() {
                pool.set_idle_limit(self.config().idle_after());
            }
        }
    }

    /// Marks the server as removed from the board. Its calls in flight complete on its connection; calls that have not reached it when it
    /// closes go to `next`, if that server has the same rules.
    pub(crate) fn hand_over_to(&self, next: Option<&Self>) {
        let succession = self.succession();
        succession.retire();
        if let Some(next) = next {
            succession.give_slot(&next.0, next.succession());
            next.0.reporting.publisher.take_over(&self.0.reporting.publisher);
        }
    }

    /// The server that occupies the slot on the board now, if this one was removed.
    pub(super) fn successor(&self) -> Option<Self> {
        let next = self.succession().successor().map(Self)?;
        (!next.is(self)).then_some(next)
    }

    /// Publishes no events until the server replaces another one or [`Server::unmute`] is called.
    pub(crate) fn mute(&self) {
        self.0.reporting.publisher.mute();
    }

    /// Publishes events from now on.
    pub(super) fn unmute(&self) {
        self.0.reporting.publisher.unmute();
    }

    /// How many calls are in flight or queued.
    pub(crate) fn count_calls(&self) -> usize {
        let queue = self.admission().stats();
        queue.depth + queue.in_use.max(self.connections().uses())
    }

    /// Waits until no call is in flight, at most until `deadline`, and closes the server.
    pub(crate) async fn drain(&self, deadline: Deadline) {
        let pool = self.connections().pool();
        wait_while(|| self.count_calls() > 0, deadline).await;
        let old = self.connections().set(Availability::Closed);
        // A call may have taken the connection just before.
        wait_while(|| pool.as_ref().is_some_and(|pool| pool.uses() > 0), deadline).await;
        if let Availability::On(pool) = &*old {
            pool.close().await;
        }
    }
}

async fn wait_while(is_so: impl Fn() -> bool, deadline: Deadline) {
    while is_so() && !deadline.has_passed() {
        tokio::time::sleep(DRAIN_POLL.min(deadline.remaining())).await;
    }
}
