//! The catalogue of a server, under the server's own name.

use std::sync::Arc;

use super::{
    known_catalog::CatalogChange,
    phase::{Live, Phase},
    pool::Pool,
    server_handle::Server,
};
use pegboard_tools::catalog::{Catalog, FormerNames, store::Freshness};

impl Server {
    /// The current catalogue, or the last known one while the server is not ready. `None` while it is disabled.
    pub(crate) fn catalog(&self) -> Option<Arc<Catalog>> {
        let pool = self.pool().filter(|_| self.is_requested())?;
        match pool.phase() {
            Phase::Ready(live) => Some(self.exposed(live, &pool).catalog().clone()),
            Phase::Disabled | Phase::Closed => None,
            Phase::Idle | Phase::Connecting(_) | Phase::Down(_) => {
                // A spare stands for the instances of all views.
                let of_others = || self.0.history.catalog().filter(|_| self.is_spare());
                let latest = of_others().or_else(|| pool.first().known().latest())?;
                let exposure = self.exposure(&latest, None, &pool);
                Some(exposure.catalog().cloned().unwrap_or(latest))
            }
        }
    }

    /// Like [`Server::catalog`], but also with the last catalogue of another instance of the server.
    pub(super) fn last_catalog(&self) -> Option<Arc<Catalog>> {
        self.catalog().or_else(|| {
            let pool = self.pool().filter(|_| self.is_requested())?;
            let latest = self.0.history.catalog()?;
            let exposure = self.exposure(&latest, None, &pool);
            Some(exposure.catalog().cloned().unwrap_or(latest))
        })
    }

    /// Sets the catalogue of a server before its first start.
    pub(crate) fn preset_catalog(&self, mut catalog: Catalog) {
        catalog.mask(&self.masker().current());
        if let Some(pool) = self.pool() {
            pool.first().known().learn(&Arc::new(catalog), Freshness::default());
        }
    }

    /// Whether the server was listed successfully in this run of the program.
    pub(crate) fn was_listed(&self) -> bool {
        self.pool().is_some_and(|pool| pool.first().known().was_listed())
    }

    /// The changes of the catalogue, the newest last.
    pub(crate) fn changes(&self) -> Vec<CatalogChange> {
        let pool = self.pool();
        pool.map(|pool| pool.first().known().changes()).unwrap_or_default()
    }

    /// The session with the catalogue that agents see: under this server's name, and without what is held.
    pub(super) fn exposed(&self, live: Live, pool: &Pool) -> Live {
        let exposure = self.exposure(&live.ready.listed, Some(&live), pool);
        live.exposing(exposure.catalog().cloned())
    }

    /// The names that the server's tools had before.
    pub(crate) fn former_names(&self) -> FormerNames {
        let pool = self.pool();
        pool.map(|pool| pool.first().known().former_names()).unwrap_or_default()
    }
}
