//! [`BoardReport`]: the status of a board, whether it is ready, and its warnings.

use super::{health, server_factory::ServerFactory, view_opener::ViewOpener};
use crate::{
    audit::AuditLog,
    server::Registry,
    status::{BoardStatus, ServerStatus, Warning},
};
use pegboard_base::name::ServerName;

/// Reports on the servers of a board and on what is written about its calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoardReport<'a> {
    registry: &'a Registry,
    factory: &'a ServerFactory,
    views: &'a ViewOpener,
}

impl<'a> BoardReport<'a> {
    pub(super) fn new(registry: &'a Registry, factory: &'a ServerFactory, views: &'a ViewOpener) -> Self {
        Self {
            registry,
            factory,
            views,
        }
    }

    /// Reads the status of the board.
    pub(super) fn read_status(self) -> BoardStatus {
        let servers = self.registry.status();
        let mut status = BoardStatus {
            queues: self.factory.shared.queues.status(),
            healthy: health::is_healthy(&servers),
            ready: self.are_ready(&servers, &[]),
            warnings: self.collect_warnings(&servers),
            servers,
        };
        status.healthy &= !status.refuses_calls();
        status
    }

    /// Whether every required server besides these is ready.
    pub(super) fn is_ready_without(self, servers: &[ServerName]) -> bool {
        self.are_ready(&self.registry.status(), servers)
    }

    fn are_ready(self, rows: &[ServerStatus], without: &[ServerName]) -> bool {
        let configured = self.registry.configured_servers();
        let required = configured.iter().filter(|server| server.config().required);
        let mut counted = required.filter(|server| !without.contains(server.name()));
        counted.all(|server| health::is_served(server, rows))
    }

    /// Collects servers that are not healthy, definitions that changed or look like attacks, and records that cannot be written.
    fn collect_warnings(self, rows: &[ServerStatus]) -> Vec<Warning> {
        let mut warnings = health::warnings(rows);
        for server in self.registry.all_servers() {
            warnings.extend(health::definition_warnings(&server));
        }
        warnings.dedup_by(|a, b| a.id == b.id);
        let audit = self.views.audit.as_ref().and_then(AuditLog::failure);
        warnings.extend(audit.map(health::audit_warning));
        warnings.extend(self.views.journal.problem().map(health::journal_warning));
        warnings
    }
}
