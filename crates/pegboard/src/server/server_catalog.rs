//! What is known of a server's tools, and what agents see of them.

use std::sync::Arc;

use super::{
    exposure::{Exposure, HeldTool},
    known_catalog::CatalogChange,
    phase::{Live, Phase},
    pool::Pool,
    screening::{CatalogSource, identity},
    server_handle::Server,
};
use crate::pin::{PinChange, PinError, ServerIdentity};
use pegboard_tools::catalog::{Catalog, FormerNames, ListWarning, store::Freshness};

/// The catalogue of one server: what its connections have listed, after screening and under the server's own name.
pub(crate) struct ServerCatalog<'a>(&'a Server);

impl Server {
    /// What is known of the server's tools, and what agents see of them.
    pub(crate) fn listing(&self) -> ServerCatalog<'_> {
        ServerCatalog(self)
    }
}

impl ServerCatalog<'_> {
    /// The current catalogue, or the last known one while the server is not ready. `None` while it is disabled.
    pub(super) fn current(&self) -> Option<Arc<Catalog>> {
        let server = self.0;
        let pool = server.connections().requested_pool()?;
        match pool.phase() {
            Phase::Ready(live) => Some(self.expose(live, &pool).catalog().clone()),
            Phase::Disabled | Phase::Closed => None,
            Phase::Idle | Phase::Connecting(_) | Phase::Down(_) => {
                // A spare stands for the instances of all views.
                let by_others = || server.0.history.catalog().filter(|_| server.is_spare());
                let latest = by_others().or_else(|| pool.first().known_catalog().latest())?;
                Some(self.expose_known(latest, &pool))
            }
        }
    }

    /// Whether what is known of a server is good enough to list it although it is not started.
    pub(crate) fn is_believed(&self) -> bool {
        let pool = self.0.connections().requested_pool();
        pool.is_some_and(|pool| pool.first().known_catalog().is_believed())
    }

    /// Like [`ServerCatalog::current`], but also the last catalogue of another instance of the server.
    pub(super) fn last(&self) -> Option<Arc<Catalog>> {
        self.current().or_else(|| {
            let pool = self.0.connections().requested_pool()?;
            let latest = self.0.0.history.catalog()?;
            Some(self.expose_known(latest, &pool))
        })
    }

    /// Sets the catalogue of a server before its first start.
    pub(crate) fn preset(&self, mut catalog: Catalog) {
        catalog.mask(&self.0.masker().current());
        if let Some(pool) = self.0.connections().pool() {
            pool.first()
                .known_catalog()
                .learn(&Arc::new(catalog), Freshness::default());
        }
    }

    /// Whether the server was listed successfully in this run of the program.
    pub(crate) fn was_listed(&self) -> bool {
        let pool = self.0.connections().pool();
        pool.is_some_and(|pool| pool.first().known_catalog().was_listed())
    }

    /// Counts the server as listed, because an instance with the same settings was.
    pub(super) fn mark_listed(&self) {
        if let Some(pool) = self.0.connections().pool() {
            pool.first().known_catalog().mark_listed();
        }
    }

    /// The changes of the catalogue, the newest last.
    pub(crate) fn changes(&self) -> Vec<CatalogChange> {
        let pool = self.0.connections().pool();
        pool.map(|pool| pool.first().known_catalog().changes())
            .unwrap_or_default()
    }

    /// The names that the server's tools had before.
    pub(crate) fn former_names(&self) -> FormerNames {
        let pool = self.0.connections().pool();
        pool.map(|pool| pool.first().known_catalog().former_names())
            .unwrap_or_default()
    }

    /// The session with the catalogue that agents see: under this server's name, and without what is held.
    pub(super) fn expose(&self, live: Live, pool: &Pool) -> Live {
        let exposure = self.find_exposure(&live.ready.listed, Some(&live), pool);
        live.with_exposed(exposure.catalog().cloned())
    }

    /// What agents see of a catalogue that no session has at the moment.
    fn expose_known(&self, latest: Arc<Catalog>, pool: &Pool) -> Arc<Catalog> {
        let exposure = self.find_exposure(&latest, None, pool);
        exposure.catalog().cloned().unwrap_or(latest)
    }

    /// What agents see of a catalogue. It is decided once for each catalogue.
    fn find_exposure(&self, catalog: &Arc<Catalog>, live: Option<&Live>, pool: &Pool) -> Arc<Exposure> {
        let (server, screening) = (self.0, &self.0.0.screening);
        let generation = live.map_or(0, |live| live.generation);
        let policy = {
            let config = server.config();
            (config.policy.pins, config.policy.scan)
        };
        if let Some(known) = screening.find(catalog, generation, policy) {
            return known;
        }
        let source = CatalogSource {
            catalog,
            generation,
            instructions: live.map(|live| live.session.peer.instructions.as_deref().unwrap_or_default()),
            listed_as: pool.first().name(),
        };
        screening.screen(source, policy, &self.identity())
    }

    /// What agents see of the current catalogue, if there is one.
    pub(crate) fn exposure(&self) -> Option<Arc<Exposure>> {
        let pool = self.0.connections().requested_pool()?;
        match pool.phase() {
            Phase::Ready(live) => Some(self.find_exposure(&live.ready.listed, Some(&live), &pool)),
            Phase::Disabled | Phase::Closed => None,
            _ => Some(self.find_exposure(&pool.first().known_catalog().latest()?, None, &pool)),
        }
    }

    /// The tools that are withheld until a person accepts them.
    pub(crate) fn held_tools(&self) -> Vec<HeldTool> {
        self.exposure()
            .map(|exposure| exposure.held.clone())
            .unwrap_or_default()
    }

    /// A warning about a tool that is offered although its definition changed or looks like an attack. Cheap if no definition does.
    pub(crate) fn warn_about(&self, tool: &str) -> Option<String> {
        self.exposure()?.warn_about(self.0.name(), tool)
    }

    /// Warnings about definitions that changed or look like attacks.
    pub(crate) fn warnings(&self) -> Vec<ListWarning> {
        self.exposure()
            .map(|exposure| exposure.warnings.clone())
            .unwrap_or_default()
    }

    /// The definitions that are not as they were pinned, or suspicious.
    pub(crate) fn pin_changes(&self) -> Vec<PinChange> {
        self.exposure()
            .map(|exposure| exposure.changes.clone())
            .unwrap_or_default()
    }

    /// The instructions of a running server, unless they are held.
    pub(crate) fn instructions(&self) -> Option<String> {
        let phase = self.0.phase();
        let text = phase.as_live()?.session.peer.instructions.clone()?;
        let exposure = self.exposure()?;
        (!exposure.holds_instructions).then_some(text)
    }

    /// Pins definitions that a person has accepted.
    pub(crate) fn accept_pins(&self, changes: &[&PinChange]) -> Result<(), PinError> {
        self.0.0.screening.accept(&self.identity(), changes)
    }

    /// Reads the pins again if tools are held and another process has changed the pins. Returns whether it did.
    pub(crate) fn recheck_pins(&self) -> bool {
        self.0.0.screening.recheck(|| self.identity())
    }

    /// What the server is, under which its definitions are pinned.
    pub(crate) fn identity(&self) -> ServerIdentity {
        identity(&self.0.spec().target, self.0.name(), &self.0.config())
    }
}
