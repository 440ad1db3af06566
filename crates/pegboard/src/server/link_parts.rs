//! [`LinkParts`]: what a link and its supervisor share.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::{
    connection_plan::ConnectionPlan, health_check::HealthChecks, known_catalog::KnownCatalog, link_holders::Holders,
    link_usage::Usage, phase::Ready, predecessors::Predecessors,
};
use pegboard_base::sync::RwLock;

/// What a link and its supervisor share: one of them writes it, the other reads it.
#[derive(Debug, Clone)]
pub(super) struct LinkParts {
    /// The settings of the connection. They may change while it lives.
    pub(super) plan: Arc<RwLock<Arc<ConnectionPlan>>>,
    /// Mirrors the phase while it is `Ready`, from when its events were sent. Every call reads it, so reading takes no lock.
    pub(super) ready: Arc<ArcSwapOption<Ready>>,
    /// The last known catalogue.
    pub(super) known: Arc<KnownCatalog>,
    pub(super) usage: Arc<Usage>,
    pub(super) holders: Arc<Holders>,
    /// Records health checks.
    pub(super) checks: Arc<HealthChecks>,
    /// The servers that must have ended before the first start.
    pub(super) predecessors: Arc<Predecessors>,
}

impl LinkParts {
    pub(super) fn new(plan: ConnectionPlan, known: Arc<KnownCatalog>, usage: Arc<Usage>) -> Self {
        Self {
            plan: Arc::new(RwLock::new(Arc::new(plan))),
            ready: Arc::default(),
            known,
            usage,
            holders: Arc::default(),
            checks: Arc::default(),
            predecessors: Arc::default(),
        }
    }

    /// The current settings of the connection.
    pub(super) fn plan(&self) -> Arc<ConnectionPlan> {
        self.plan.read().clone()
    }
}
