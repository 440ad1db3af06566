//! [`Connections`]: whether a server may be used, and commands to the connections of one that may.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio_util::sync::CancellationToken;

use super::{
    activation::Activation,
    availability::{Availability, DetachedConnections},
    link_usage::UseGuard,
    outage::{Cause, Outage},
    phase::{Live, Phase},
    pool::Pool,
    refused_credentials,
    reporting::Reporting,
    supervisor::Command,
};
use crate::status::State;
use pegboard_base::{
    deadline::Deadline,
    diagnosis::{Diagnosis, Place},
    name::ServerName,
    sync::Mutex,
};
use pegboard_client::session::{DesiredState, Fault, Root, Stage};

/// The connections of one server while it may be used, or why it may not.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Read by every call without a lock.
    availability: ArcSwap<Availability>,
    /// Held while the availability changes.
    change_lock: Mutex<()>,
    /// Shared with the other instances of the server.
    activation: Arc<Activation>,
    reporting: Reporting,
}

impl Connections {
    /// Creates the connections of a server that is off.
    pub(super) fn new(activation: Arc<Activation>, reporting: Reporting) -> Self {
        Self {
            availability: ArcSwap::from_pointee(Availability::Off),
            change_lock: Mutex::default(),
            activation,
            reporting,
        }
    }

    /// What the program and operators have said about the server.
    pub(crate) fn activation(&self) -> &Arc<Activation> {
        &self.activation
    }

    pub(super) fn load(&self) -> Guard<Arc<Availability>> {
        self.availability.load()
    }

    /// Changes the availability and returns the old one.
    pub(super) fn set(&self, availability: Availability) -> Arc<Availability> {
        let _guard = self.change_lock.lock();
        self.swap(availability)
    }

    /// Changes the availability while the lock is held.
    fn swap(&self, availability: Availability) -> Arc<Availability> {
        let publisher = &self.reporting.publisher;
        match &availability {
            // The links report their own states.
            Availability::On(_) => {}
            Availability::Off => publisher.end_pool(State::Disabled, None),
            Availability::Refused(outage) => {
                let state = Phase::Down(outage.clone()).state();
                publisher.end_pool(state, Some(outage));
            }
            Availability::Closed => publisher.end_pool(State::Closed, None),
        }
        let old = self.availability.swap(Arc::new(availability));
        self.reporting.revision.bump();
        old
    }

    /// Enables a server that is off, with the connections that `open` creates.
    pub(super) fn enable(&self, open: impl FnOnce() -> Pool) {
        let _guard = self.change_lock.lock();
        if matches!(self.load().as_ref(), Availability::Off) {
            self.availability.store(Arc::new(Availability::On(open().into())));
            self.reporting.revision.bump();
        }
    }

    /// Disables the server. Its connections close when the returned value is closed or dropped.
    pub(crate) fn disable(&self) -> DetachedConnections {
        let _guard = self.change_lock.lock();
        // A server that was closed meanwhile stays closed.
        let is_on = matches!(self.load().as_ref(), Availability::On(_));
        DetachedConnections(is_on.then(|| self.swap(Availability::Off)))
    }

    /// Closes the server and waits until its process has exited, unless other servers share it.
    pub(super) async fn close(&self) {
        if let Availability::On(pool) = &*self.set(Availability::Closed) {
            pool.close().await;
        }
    }

    /// The pool, unless the server is disabled, refused or closed.
    pub(super) fn pool(&self) -> Option<Arc<Pool>> {
        match self.load().as_ref() {
            Availability::On(pool) => Some(pool.clone()),
            Availability::Off | Availability::Refused(_) | Availability::Closed => None,
        }
    }

    /// The pool, if the server may be started too.
    pub(super) fn requested_pool(&self) -> Option<Arc<Pool>> {
        self.pool().filter(|_| self.activation.is_requested())
    }

    /// The pool of the server called `name`, or why the server may not be used.
    pub(super) fn require<'s>(
        &self,
        availability: &'s Availability,
        name: &ServerName,
        is_retired: impl FnOnce() -> bool,
    ) -> Result<&'s Arc<Pool>, Arc<Outage>> {
        match availability {
            Availability::On(_) if !self.activation.is_requested() => Err(Outage::not_requested(name).into()),
            Availability::On(pool) => Ok(pool),
            Availability::Off if self.activation.is_disabled_by_operator() => {
                Err(Outage::disabled_by_operator(name).into())
            }
            Availability::Off => Err(Outage::disabled().into()),
            Availability::Refused(outage) => Err(outage.clone()),
            Availability::Closed if is_retired() => Err(Outage::removed().into()),
            Availability::Closed => Err(Outage::closed().into()),
        }
    }

    /// Whether this is still the server's pool.
    pub(super) fn is_current(&self, pool: &Arc<Pool>) -> bool {
        self.pool().is_some_and(|now| Arc::ptr_eq(&now, pool))
    }

    /// Whether the board refuses to start the server, because it has no room or the config is invalid.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.load().as_ref(), Availability::Refused(_))
    }

    /// Why the board refuses to start the server, if it does.
    pub(crate) fn refusal(&self) -> Option<Arc<Outage>> {
        match self.load().as_ref() {
            Availability::Refused(outage) => Some(outage.clone()),
            Availability::On(_) | Availability::Off | Availability::Closed => None,
        }
    }

    /// Whether both servers are refused for the same reason.
    pub(crate) fn is_refused_like(&self, other: &Self) -> bool {
        match (self.refusal(), other.refusal()) {
            (Some(ours), Some(theirs)) => ours.message == theirs.message,
            _ => false,
        }
    }

    /// Whether the server's config is invalid or not approved.
    pub(crate) fn is_misconfigured(&self) -> bool {
        let is_it = |cause| matches!(cause, Cause::Misconfigured | Cause::PendingTrust);
        self.refusal().is_some_and(|outage| is_it(outage.cause))
    }

    /// Requests a start without waiting for it.
    pub(crate) fn start(&self) {
        if let Some(pool) = self.pool() {
            pool.start();
        }
    }

    /// Replaces the session of this generation, because it is unusable. Does nothing if there is a newer one.
    pub(crate) fn replace(&self, generation: u64) {
        self.send(Command::Replace(generation));
    }

    /// Probes the session of this generation, because it may be dead, and replaces it if the probe fails.
    pub(crate) fn suspect(&self, generation: u64) {
        self.send(Command::Suspect(generation));
    }

    /// Checks whether the credential of a session is still good for anything, because the server has refused it.
    pub(crate) fn check_credential(&self, generation: u64) {
        self.send(Command::Refused(generation));
    }

    /// Lists the server again.
    pub(crate) fn refresh(&self) {
        self.send(Command::Refresh);
    }

    fn send(&self, command: Command) {
        if let Some(pool) = self.pool() {
            pool.send(command);
        }
    }

    /// Lists the server again, unless it was listed since `live` was obtained, and waits until the listing has succeeded or failed.
    pub(crate) async fn refresh_and_wait(&self, live: &Live, deadline: Deadline) {
        if let Some(pool) = self.pool() {
            pool.refresh_and_wait(live, deadline).await;
        }
    }

    /// Permits the start of the server, restarts it and waits until the old session is closed.
    pub(super) async fn reconnect(&self) {
        self.activation.request();
        if let Some(pool) = self.pool() {
            pool.reconnect().await;
        }
    }

    /// Keeps the connection that a waiting call will need from being closed as idle.
    pub(super) fn keep_from_idling(&self) -> Option<Arc<UseGuard>> {
        self.pool().and_then(|pool| pool.keep_from_idling())
    }

    /// How many requests use connections that no other server shares.
    pub(super) fn uses(&self) -> usize {
        self.pool().map_or(0, |pool| pool.uses())
    }

    /// The subscriptions, log level and roots that apply to every session, shared with all servers on the same link. `None` if the server has
    /// no connections, because it is disabled, refused or closed.
    pub(crate) fn desired_state(&self) -> Option<Arc<DesiredState>> {
        self.pool().map(|pool| pool.first().plan().spec.desired_state.clone())
    }

    /// Sets the roots until the server is disabled. Returns `false` if it has no connections.
    pub(crate) fn set_roots(&self, roots: &[Root]) -> bool {
        let desired_state = self.desired_state();
        if let Some(desired_state) = &desired_state {
            desired_state.set_roots(roots);
        }
        desired_state.is_some()
    }

    /// What a person can do about a request that the server refused with status 401 or 403; `None` for other failures.
    pub(crate) fn credentials_hint(&self, fault: &Fault) -> Option<String> {
        refused_credentials::hint(&self.pool()?.first().plan().spec, fault)
    }

    /// What is wrong with the server if a request to it failed in this way, as data.
    pub(crate) fn diagnose(&self, name: &ServerName, fault: &Fault) -> Diagnosis {
        let plan = self.pool().map(|pool| pool.first().plan());
        let spec = plan.as_ref().map(|plan| &plan.spec);
        let mut diagnosis = fault.diagnosis(Stage::Call, spec.is_some_and(|spec| spec.is_process()));
        let code = spec.and_then(|spec| refused_credentials::code(spec, fault));
        diagnosis.code = code.unwrap_or(diagnosis.code);
        let host = spec.and_then(|spec| spec.target.host());
        diagnosis.at(Place::server(name.as_str()).host(host))
    }

    /// Starts the server only after its predecessor has `ended`.
    pub(super) fn start_after(&self, ended: &CancellationToken) {
        for link in self.pool().iter().flat_map(|pool| pool.links()) {
            link.predecessors().add(ended.clone());
        }
    }

    /// Whether the start of the server waits for the end of the one that it replaces.
    pub(crate) fn waits_for_predecessor(&self) -> bool {
        self.pool().is_some_and(|pool| pool.first().predecessors().are_any())
    }

    /// Waits until the server may start.
    pub(crate) async fn await_predecessor(&self) {
        if let Some(pool) = self.pool() {
            pool.first().predecessors().ended().await;
        }
    }
}
