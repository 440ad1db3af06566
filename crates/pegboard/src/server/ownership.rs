//! Whether a server belongs to the board, to a view or principal, or to none because it was removed; and whether it is enabled.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    availability::Availability, instance_history::InstanceHistory, phase::Phase, server_handle::Server,
    view_tag::ViewTag,
};
use pegboard_base::deadline::Deadline;
use pegboard_client::{
    credential::{CredentialSource, Credentials},
    session::{HostHandle, Spec},
};
use pegboard_config::{Scope, ServerConfig, Start};

/// How long the session of a spare may wait for a view before it is closed as idle.
const SPARE: Duration = Duration::from_secs(60);
/// How often a draining server is polled for calls in flight.
const DRAIN_POLL: Duration = Duration::from_millis(10);

impl Server {
    /// Whether the server is enabled: by an operator's last command, or else by its config.
    pub(crate) fn is_enabled(&self) -> bool {
        self.0.switch.get().unwrap_or_else(|| self.config().enabled)
    }

    /// Records an operator's command for this server and its view instances.
    pub(crate) fn set_switch(&self, is_on: bool) {
        self.0.switch.set(Some(is_on));
    }

    /// Lets the config decide again whether the server is enabled.
    pub(crate) fn reset_switch(&self) {
        self.0.switch.set(None);
    }

    /// Inherits the operator's command from the replaced server, unless the new config changes `enabled`.
    pub(crate) fn inherit_switch(&self, old: &Self) {
        if old.config().enabled == self.config().enabled && !self.is_refused() {
            self.0.switch.set(old.0.switch.get());
            self.follow_switch();
        }
    }

    /// Enables or disables the server as [`Server::is_enabled`] says. A server that is disabled here has no calls in flight.
    pub(crate) fn follow_switch(&self) {
        match (self.is_enabled(), self.pool().is_some()) {
            (true, false) => self.switch_on(),
            (false, true) => drop(self.set_availability(Availability::Off)),
            _ => {}
        }
    }

    /// Whether the server starts with the board, or with the view that owns it.
    pub(crate) fn starts_automatically(&self) -> bool {
        let config = self.config();
        let is_wanted = config.start == Start::Eager || config.required;
        self.is_enabled() && is_wanted && self.is_requested()
    }

    /// Whether the server is ready for calls now.
    pub(crate) fn is_ready(&self) -> bool {
        self.phase().live().is_some()
    }

    /// Counts the server as listed, because an instance with the same settings was.
    pub(super) fn mark_listed(&self) {
        if let Some(pool) = self.pool() {
            pool.first().known().mark_listed();
        }
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
        self.config().policy.scope == Scope::Session && self.view().is_none()
    }

    /// Whether all views use this server: no view owns it, and none takes it over.
    pub(crate) fn is_shared(&self) -> bool {
        self.view().is_none() && !self.is_spare()
    }

    /// The view that owns the server, if one does.
    pub(crate) fn view(&self) -> Option<&ViewTag> {
        self.0.view.get()
    }

    /// Makes a view the owner of the server.
    pub(super) fn belong_to(&self, view: &ViewTag) {
        if self.0.view.set(view.clone()).is_ok() {
            self.0.publisher.assign_owner(view);
            self.0.revision.count_on(view.revision.clone());
            if let Some(pool) = self.pool() {
                pool.set_idle_limit(self.config().idle_after());
            }
        }
    }

    /// Whether the views of one principal share the server.
    pub(crate) fn is_of_principal(&self) -> bool {
        self.view().is_some_and(|owner| owner.name.is_none())
    }

    /// The principal that owns the server, or whose view does.
    #[cfg(feature = "oauth")]
    pub(crate) fn principal(&self) -> Option<&pegboard_base::caller::Principal> {
        self.view().and_then(|owner| owner.principal.as_ref())
    }

    /// Asks for a credential before the next request: there is another one.
    #[cfg(feature = "oauth")]
    pub(crate) fn outdate_credential(&self) {
        if let Some(source) = self.credentials() {
            source.outdate();
        }
    }

    /// Whether the server waits for a sign-in, or is being started, maybe with the credential from before the sign-in.
    #[cfg(feature = "oauth")]
    pub(crate) fn may_await_sign_in(&self) -> bool {
        let phase = self.phase();
        matches!(phase, Phase::Connecting(_)) || phase.awaits_credentials()
    }

    /// Whether the server has no connection and makes none.
    #[cfg(feature = "oauth")]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase(), Phase::Idle)
    }

    /// Whether only one view or principal with credentials of its own uses the server's connections.
    pub(crate) fn is_private(&self) -> bool {
        self.0.spec.owner.is_some()
    }

    /// Whether the server starts with the view that owns it. A connection with credentials starts when it is used.
    pub(super) fn starts_with_view(&self) -> bool {
        self.config().policy.scope == Scope::Session && self.starts_automatically()
    }

    /// The source of the server's credentials, if the program supplies them.
    pub(super) fn credentials(&self) -> Option<&Arc<CredentialSource>> {
        self.0.spec.credentials.as_ref()
    }

    /// The provider of the credentials that the server's config names.
    pub(super) fn configured_credentials(&self) -> Option<&Arc<dyn Credentials>> {
        self.0.spec.configured_credentials.as_ref()
    }

    /// Creates an idle server with the same settings, its own connection and no owner.
    pub(crate) fn fresh(&self) -> Self {
        self.fresh_for(None)
    }

    /// Like [`Server::fresh`]. The host of the view that will own the server answers its requests, in place of the board's host.
    pub(super) fn fresh_for(&self, host: Option<&HostHandle>) -> Self {
        let mut spec = self.0.spec.clone();
        if let Some(host) = host {
            spec.host = host.host().clone();
        }
        self.copy_with(spec, self.0.history.clone())
    }

    /// Creates an idle server with the same settings and another way to connect.
    pub(super) fn copy_with(&self, spec: Spec, history: Arc<InstanceHistory>) -> Self {
        let mut fresh = Self::without_link(self.config().as_ref().clone(), spec, history, &self.0.shared);
        if let Some(inner) = Arc::get_mut(&mut fresh.0) {
            inner.is_requested = self.0.is_requested.clone();
            inner.switch = self.0.switch.clone();
        }
        match self.availability().as_ref() {
            Availability::On(pool) => {
                fresh.switch_on();
                fresh.set_roots(&pool.first().plan().spec.desired_state.roots());
            }
            Availability::Refused(outage) => drop(fresh.set_availability(Availability::Refused(outage.clone()))),
            Availability::Off | Availability::Closed => {}
        }
        fresh
    }

    /// Marks the server as removed from the board. Its calls in flight complete on its connection; calls that have not reached it when it
    /// closes go to `next`, if that server has the same rules.
    pub(crate) fn hand_over_to(&self, next: Option<&Self>) {
        self.0.is_retired.store(true, Ordering::Release);
        if let Some(next) = next {
            let slot = self.0.slot.get_or_init(Arc::default);
            slot.occupy(&next.0);
            let _ = next.0.slot.set(slot.clone());
            next.0.publisher.take_over(&self.0.publisher);
        }
    }

    /// Whether the server is one process for all callers, which must not run beside another one of its name.
    pub(crate) fn runs_alone(&self) -> bool {
        let is_shared = self.config().policy.scope == Scope::Shared && self.view().is_none();
        is_shared && self.0.spec.is_process() && !self.is_private()
    }

    /// Starts the server only after `old` has ended.
    pub(super) fn start_after(&self, old: &Self) {
        for link in self.pool().iter().flat_map(|pool| pool.links()) {
            link.predecessors().add(old.0.ended.clone());
        }
    }

    /// Whether the start of the server waits for the end of the one that it replaces.
    pub(crate) fn waits_for_predecessor(&self) -> bool {
        self.pool().is_some_and(|pool| pool.first().predecessors().are_any())
    }

    /// Waits until the server may start.
    pub(crate) async fn predecessor_ended(&self) {
        if let Some(pool) = self.pool() {
            pool.first().predecessors().ended().await;
        }
    }

    /// Whether a call that this server admits is admitted by `next` too.
    pub(super) fn has_same_rules_as(&self, next: &Self) -> bool {
        let (ours, theirs) = (self.config(), next.config());
        let with_their_transport = ServerConfig {
            transport: theirs.transport.clone(),
            era: theirs.era.clone(),
            ..ours.as_ref().clone()
        };
        with_their_transport == **theirs && !ours.policy.serial
    }

    /// Distinguishes servers that had the same name one after the other.
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    /// Publishes no events until the server replaces another one or [`Server::unmute`] is called.
    pub(crate) fn mute(&self) {
        self.0.publisher.mute();
    }

    /// Publishes events from now on.
    pub(super) fn unmute(&self) {
        self.0.publisher.unmute();
    }

    /// Whether the server was removed from the board.
    pub(crate) fn is_retired(&self) -> bool {
        self.0.is_retired.load(Ordering::Acquire)
    }

    /// The server that occupies the slot on the board now, if this one was removed.
    pub(super) fn successor(&self) -> Option<Self> {
        let next = self.0.slot.get()?.occupant().map(Self)?;
        (self.is_retired() && !next.is(self)).then_some(next)
    }

    /// Whether the server is idle and was listed in this run of the program.
    pub(crate) fn is_idle_and_listed(&self) -> bool {
        matches!(self.phase(), Phase::Idle) && self.was_listed()
    }

    /// Waits until no call is in flight, at most until `deadline`, and closes the server.
    pub(crate) async fn drain(&self, deadline: Deadline) {
        let pool = self.pool();
        wait_while(|| self.busy() > 0, deadline).await;
        let old = self.set_availability(Availability::Closed);
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
