//! The handle to one server: its settings, and the parts that own its state.

use std::sync::{Arc, atomic::Ordering};

use arc_swap::{ArcSwap, Guard};
use futures_util::future::BoxFuture;

use super::{
    activation::Activation,
    admission::Admission,
    availability::{Availability, DetachedConnections},
    board_shared::BoardShared,
    connection_plan::ConnectionPlan,
    connections::Connections,
    event_publisher::EventPublisher,
    instance_history::InstanceHistory,
    outage::Outage,
    phase::Phase,
    pool::Pool,
    reporting::Reporting,
    revision::Revision,
    screening::Screening,
    succession::Succession,
    view_owner::ViewOwner,
};
use crate::metrics::ServerCounters;
use crate::status::{LastError, State};
use pegboard_base::{name::ServerName, sync::Mutex};
use pegboard_client::session::Spec;
use pegboard_config::{Scope, ServerConfig, Start};
use pegboard_mask::ServerMasker;
use pegboard_tools::catalog::Catalog;

/// A cheap handle to one server. The server ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Server(pub(super) Arc<ServerInner>);

#[derive(Debug)]
pub(super) struct ServerInner {
    /// Swapped as a whole when settings change that need no new connection. Every call reads it, so reading takes no lock.
    pub(super) config: ArcSwap<ServerConfig>,
    pub(super) spec: Spec,
    pub(super) connections: Connections,
    pub(super) admission: Admission,
    pub(super) screening: Screening,
    pub(super) reporting: Reporting,
    /// The counters of all servers of this name, lock-free.
    pub(super) counts: Arc<ServerCounters>,
    /// What the instances of the server have last learned about it.
    pub(super) history: Arc<InstanceHistory>,
    /// The last failed call.
    pub(super) failed_call: Mutex<Option<LastError>>,
    pub(super) owner: ViewOwner,
    pub(super) succession: Succession<Self>,
    pub(super) shared: Arc<BoardShared>,
}

impl Server {
    /// Creates a server. It is not started yet.
    pub(crate) fn new(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let history = history(&config, shared);
        let server = Self::build(config, spec, history, None, shared);
        server.follow_switch();
        server
    }

    /// Creates a server that the board refuses to start, because it has no room or the config is invalid. Every use fails with `why`.
    pub(crate) fn refuse(config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>, why: Outage) -> Self {
        let history = history(&config, shared);
        let server = Self::build(config, spec, history, None, shared);
        // Published when the server is put on the board.
        server.mute();
        server.connections().set(Availability::Refused(why.into()));
        server
    }

    /// Builds the parts of a server that is off. Instances of one server have the same `activation`.
    pub(super) fn build(
        config: ServerConfig,
        spec: Spec,
        history: Arc<InstanceHistory>,
        activation: Option<Arc<Activation>>,
        shared: &Arc<BoardShared>,
    ) -> Self {
        let counts = shared.tallies.get_or_insert(&spec.name);
        let state = if config.enabled { State::Idle } else { State::Disabled };
        let (name, masker, events) = (spec.name.clone(), spec.masker.clone(), shared.events.clone());
        let reporting = Reporting {
            publisher: EventPublisher::new(name, masker, events, counts.clone(), history.clone(), state),
            revision: match config.policy.scope {
                Scope::Shared | Scope::Pool(_) if spec.owner.is_none() => Revision::on(shared.revision.clone()),
                Scope::Session | Scope::Shared | Scope::Pool(_) => Revision::unseen(),
            },
        };
        let activation = activation.unwrap_or_else(|| Activation::new(config.start));
        Self(Arc::new(ServerInner {
            connections: Connections::new(activation, reporting.clone()),
            admission: Admission::new(&spec.name, &config, shared),
            screening: Screening::new(spec.name.clone(), shared.pins.clone(), reporting.clone()),
            reporting,
            counts,
            history,
            failed_call: Mutex::default(),
            owner: ViewOwner::default(),
            succession: Succession::new(shared.next_server.fetch_add(1, Ordering::Relaxed)),
            shared: shared.clone(),
            config: ArcSwap::from_pointee(config),
            spec,
        }))
    }

    /// Creates a server over an existing link.
    #[cfg(test)]
    #[cfg(feature = "explore")]
    pub(super) fn over(link: &super::link::Link, config: ServerConfig, spec: Spec, shared: &Arc<BoardShared>) -> Self {
        let history = history(&config, shared);
        let server = Self::build(config, spec, history, None, shared);
        let pool = Pool::over(link, &server.0.reporting.publisher);
        server.connections().set(Availability::On(pool.into()));
        server
    }

    /// Creates the connections that the settings ask for. They are not started yet.
    fn open_pool(&self) -> Pool {
        let (config, inner) = (self.config(), &self.0);
        let plan = ConnectionPlan::new(inner.spec.clone(), &config);
        let idle = self.idle_after(&config);
        Pool::new(&plan, &config, idle, &inner.reporting, (&inner.shared, &inner.history))
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.0.spec.name
    }

    /// The current settings, for a short read.
    pub(crate) fn config(&self) -> Guard<Arc<ServerConfig>> {
        self.0.config.load()
    }

    /// The current settings, for callers that keep them.
    pub(crate) fn config_snapshot(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }

    /// How to connect to the server.
    pub(crate) fn spec(&self) -> &Spec {
        &self.0.spec
    }

    /// Masks secrets in the server's messages.
    pub(crate) fn masker(&self) -> &ServerMasker {
        &self.0.spec.masker
    }

    /// Whether the server may be used, and commands to its connections.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    /// What the program and operators have said about the server.
    pub(crate) fn activation(&self) -> &Activation {
        self.0.connections.activation()
    }

    /// The queues, the circuit breaker and the retry budget.
    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// The current catalogue, or the last known one while the server is not ready. `None` while it is disabled.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        self.listing().current()
    }

    /// The view that owns the server, if one does.
    pub(crate) fn owner(&self) -> &ViewOwner {
        &self.0.owner
    }

    /// Distinguishes servers that had the same name one after the other.
    pub(crate) fn number(&self) -> u64 {
        self.0.succession.number()
    }

    /// Whether the server was removed from the board, and which one has its slot.
    pub(super) fn succession(&self) -> &Succession<ServerInner> {
        &self.0.succession
    }

    /// The counters of all servers of this name.
    pub(crate) fn counts(&self) -> &Arc<ServerCounters> {
        &self.0.counts
    }

    /// Applies settings that need no new connection. The connections stay, unless their number changes or other servers share them and keep the
    /// old settings; in these cases they are detached and returned.
    pub(crate) fn retune(&self, config: &ServerConfig) -> DetachedConnections {
        let (inner, connections) = (&self.0, self.connections());
        let old = self.config();
        inner.admission.retune(&old, config, &inner.shared);
        inner.spec.masker.set_policy(&config.policy.masking);
        inner.spec.masker.own_secrets(config.secrets());
        if config.start != Start::Explicit {
            self.activation().request();
        }
        inner.config.store(Arc::new(config.clone()));
        let plan = ConnectionPlan::new(inner.spec.clone(), config);
        let idle = self.idle_after(config);
        let stays = connections.pool().is_none_or(|pool| pool.retune(&plan, config, idle));
        if stays && old.roots != config.roots {
            connections.set_roots(&plan.spec.desired_state.roots());
        }
        if stays {
            return DetachedConnections(None);
        }
        let detached = connections.set(Availability::On(self.open_pool().into()));
        if config.start == Start::Eager && !inner.spec.is_private() {
            connections.start();
        }
        DetachedConnections(Some(detached))
    }

    /// The current phase.
    pub(crate) fn phase(&self) -> Phase {
        let connections = self.connections();
        match connections.load().as_ref() {
            Availability::On(_) if !self.activation().is_requested() => Phase::Idle,
            Availability::On(pool) => match pool.phase() {
                Phase::Ready(live) => Phase::Ready(self.listing().expose(live, pool)),
                phase => phase,
            },
            Availability::Off => Phase::Disabled,
            Availability::Refused(outage) => Phase::Down(outage.clone()),
            Availability::Closed => Phase::Closed,
        }
    }

    /// Enables the server.
    pub(crate) fn switch_on(&self) {
        self.connections().enable(|| self.open_pool());
    }

    /// Restarts the server and waits until the old session is closed.
    pub(crate) fn reconnect(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.admission().breaker().reset();
            self.connections().reconnect().await;
        })
    }

    /// Closes the server and waits until its process has exited, unless other servers share it.
    pub(crate) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.connections().close().await;
        })
    }
}

/// The history of a server without instances so far.
pub(super) fn history(config: &ServerConfig, shared: &BoardShared) -> Arc<InstanceHistory> {
    // Only the instances of a session-scoped server come and go.
    let is_per_view = config.policy.scope == Scope::Session;
    InstanceHistory::new(is_per_view.then(|| shared.revision.clone()))
}
