//! Compares each new catalogue of a server with its pins, and scans it.
//!
//! Every use of a server's catalogue goes through here, so a held tool is in no listing, search or prompt, and cannot be called.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{
    exposure::{Exposure, Findings, changes, has_same_changes},
    reporting::Reporting,
};
use crate::pin::{Judged, Listed, PinChange, PinError, PinStore, PinnedServer, ServerIdentity, accept, judge, record};
use pegboard_base::{diagnosis::Code, name::ServerName, sync::Mutex};
use pegboard_client::transport::Target;
use pegboard_config::{Pins, Scan, ServerConfig};
use pegboard_tools::catalog::{Catalog, ListWarning};

/// How many catalogues are remembered: those of the connections of a pool.
const MAX_EXPOSURES: usize = 64;

/// Decides what agents see of each catalogue of one server, once for each catalogue.
#[derive(Debug)]
pub(super) struct Screening {
    server: ServerName,
    pins: PinStore,
    reporting: Reporting,
    /// What agents see of the latest catalogues. Every call reads it, so reading takes no lock.
    exposures: ArcSwap<Vec<Arc<Exposure>>>,
    /// Held while a new catalogue is compared with its pins.
    lock: Mutex<()>,
}

/// A catalogue to screen, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogSource<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    /// The session that listed it; zero if that has ended.
    pub(super) generation: u64,
    /// The instructions of that session.
    pub(super) instructions: Option<&'a str>,
    /// The name of the server that the link was created for.
    pub(super) listed_as: &'a ServerName,
}

impl Screening {
    pub(super) fn new(server: ServerName, pins: PinStore, reporting: Reporting) -> Self {
        Self {
            server,
            pins,
            reporting,
            exposures: ArcSwap::default(),
            lock: Mutex::default(),
        }
    }

    /// Returns what was decided about a catalogue under this policy. Takes no lock.
    pub(super) fn find(&self, catalog: &Arc<Catalog>, generation: u64, policy: (Pins, Scan)) -> Option<Arc<Exposure>> {
        let exposures = self.exposures.load();
        let known = exposures
            .iter()
            .find(|known| known.source.as_ptr() == Arc::as_ptr(catalog))?;
        // A catalogue of a session that ended has the instructions of that session considered.
        let is_current = known.policy == policy && (known.generation == generation || generation == 0);
        is_current.then(|| known.clone())
    }

    /// Decides what agents see of a catalogue, unless that was decided in the meantime.
    pub(super) fn screen(
        &self,
        source: CatalogSource<'_>,
        policy: (Pins, Scan),
        identity: &ServerIdentity,
    ) -> Arc<Exposure> {
        let _guard = self.lock.lock();
        if let Some(known) = self.find(source.catalog, source.generation, policy) {
            return known;
        }
        let exposure = Arc::new(self.decide(source, policy, identity));
        let known = self.exposures.load_full();
        let is_reported = known.iter().any(|other| has_same_changes(other, &exposure));
        if !exposure.changes.is_empty() && !is_reported {
            let held = exposure.changes.iter().filter(|change| change.held).count();
            self.reporting
                .publisher
                .publish_flagged_definitions(&exposure.changes, held);
        }
        let is_alive = |other: &&Arc<Exposure>| {
            let is_same = other.source.as_ptr() == exposure.source.as_ptr();
            other.source.strong_count() > 0 && !is_same
        };
        let mut exposures: Vec<Arc<Exposure>> = known.iter().filter(is_alive).cloned().collect();
        exposures.truncate(MAX_EXPOSURES - 1);
        exposures.insert(0, exposure.clone());
        self.exposures.store(Arc::new(exposures));
        exposure
    }

    /// Forgets what was decided, so that the pins are read again.
    fn forget(&self) {
        self.exposures.store(Arc::default());
        self.reporting.revision.bump();
    }

    /// Pins definitions that a person has accepted.
    pub(super) fn accept(&self, identity: &ServerIdentity, changes: &[&PinChange]) -> Result<(), PinError> {
        self.pins
            .update(identity, |pinned| accept(pinned, &self.server, changes))?;
        self.forget();
        Ok(())
    }

    /// Reads the pins again if tools are held and another process has changed the pins. Returns whether it did.
    pub(super) fn recheck(&self, identity: impl FnOnce() -> ServerIdentity) -> bool {
        let exposures = self.exposures.load();
        let holds = |exposure: &&Arc<Exposure>| !exposure.held.is_empty() || exposure.holds_instructions;
        let Some(newest) = exposures.first().filter(holds) else {
            return false;
        };
        let is_changed = self.pins.stamp(&identity()) != newest.stamp;
        if is_changed {
            self.forget();
        }
        is_changed
    }

    fn decide(&self, source: CatalogSource<'_>, (pins, scan): (Pins, Scan), identity: &ServerIdentity) -> Exposure {
        let (server, catalog) = (&self.server, source.catalog);
        let listed = Listed {
            server,
            catalog,
            instructions: source.instructions,
        };
        let findings = Findings::scan(scan, listed);
        // Before the pins are read, so that a change in the meantime is noticed later.
        let before = self.pins.stamp(identity);
        let (pinned, judged, failed) = match pins == Pins::Off && findings.is_empty() {
            true => (None, Judged::default(), None),
            false => self.judge(pins, listed, &findings, identity),
        };
        let mut exposure = Exposure {
            source: Arc::downgrade(catalog),
            generation: source.generation,
            policy: (pins, scan),
            stamp: match judged.records {
                true => self.pins.stamp(identity),
                false => before,
            },
            catalog: None,
            changes: changes(listed, (pins, scan), pinned.as_deref(), &judged, &findings),
            held: Vec::new(),
            held_prompts: Vec::new(),
            holds_instructions: false,
            warnings: Vec::new(),
        };
        exposure.warn(server, &findings);
        match &failed {
            Some(error) if pins.holds() => exposure.hold_all(catalog, &error.to_string()),
            _ => exposure.hold(catalog, scan, &findings),
        }
        let failed = failed.map(|error| ListWarning::new(Code::PinsUnusable, error.to_string()));
        exposure.warnings.extend(failed);
        exposure.expose(catalog, (source.listed_as != server).then_some(server));
        exposure
    }

    /// Compares a listing with its pins and records what is new. Returns the pins as they were if there is something to show, and why that failed,
    /// if it did.
    fn judge(
        &self,
        pins: Pins,
        listed: Listed<'_>,
        findings: &Findings,
        identity: &ServerIdentity,
    ) -> (Option<Arc<PinnedServer>>, Judged, Option<PinError>) {
        let marks = match self.pins.load_marks(identity) {
            Ok(marks) => marks,
            Err(error) => return (None, Judged::default(), Some(error)),
        };
        let judged = judge(pins, marks.as_ref(), listed);
        let before = match judged.is_unchanged() && findings.is_empty() {
            true => Ok(None),
            false => self.pins.load(identity),
        };
        let (pinned, failed) = match before {
            Ok(pinned) if judged.records => {
                let recorded = self.pins.update(identity, |pinned| record(pins, pinned, listed));
                (pinned, recorded.err())
            }
            Ok(pinned) => (pinned, None),
            Err(error) => (None, Some(error)),
        };
        (pinned, judged, failed)
    }
}

/// What a server is: its transport, or its name if it runs in this process.
pub(crate) fn identity(target: &Target, name: &ServerName, config: &ServerConfig) -> ServerIdentity {
    match target {
        Target::InProcess(_) => ServerIdentity::in_process(name),
        Target::Configured(_) | Target::StandIn(_) => ServerIdentity::new(config),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        event::EventSender,
        server::{event_publisher::EventPublisher, instance_history::InstanceHistory, revision::Revision},
        status::State,
    };
    use pegboard_mask::ServerMasker;

    fn name() -> ServerName {
        ServerName::parse("one").expect("a name")
    }

    fn screening() -> Screening {
        let (masker, events) = (ServerMasker::default(), EventSender::default());
        let history = InstanceHistory::new(None);
        let reporting = Reporting {
            publisher: EventPublisher::new(name(), masker, events, Arc::default(), history, State::Idle),
            revision: Revision::unseen(),
        };
        Screening::new(name(), PinStore::in_memory(), reporting)
    }

    fn catalog(description: &str) -> Arc<Catalog> {
        let tool: Value = json!({ "description": description, "inputSchema": { "type": "object" } });
        let mut catalog = Catalog::default();
        let tools = [("read".to_owned(), tool)].into();
        catalog.add_configured(&name(), &tools, pegboard_tools::catalog::HeaderRule::Ignored);
        Arc::new(catalog)
    }

    fn screen(screening: &Screening, catalog: &Arc<Catalog>, pins: Pins) -> Arc<Exposure> {
        let source = CatalogSource {
            catalog,
            generation: 1,
            instructions: None,
            listed_as: &name(),
        };
        screening.screen(source, (pins, Scan::Off), &ServerIdentity::in_process(&name()))
    }

    #[test]
    fn a_catalogue_is_screened_once_for_each_policy_and_session() {
        let (screening, catalog) = (screening(), catalog("reads"));
        let policy = (Pins::Warn, Scan::Off);
        assert!(screening.find(&catalog, 1, policy).is_none());
        let first = screen(&screening, &catalog, Pins::Warn);
        assert!(Arc::ptr_eq(&first, &screen(&screening, &catalog, Pins::Warn)));
        assert!(
            screening.find(&catalog, 0, policy).is_some(),
            "the session may have ended"
        );
        assert!(
            screening.find(&catalog, 2, policy).is_none(),
            "its instructions may differ"
        );
        assert!(screening.find(&catalog, 1, (Pins::Block, Scan::Off)).is_none());
    }

    #[test]
    fn a_changed_tool_is_held_until_it_is_accepted() {
        let screening = screening();
        let identity = ServerIdentity::in_process(&name());
        assert!(screen(&screening, &catalog("reads"), Pins::Block).held.is_empty());
        let changed = catalog("reads and sends");
        let exposure = screen(&screening, &changed, Pins::Block);
        assert_eq!(exposure.held.len(), 1);
        assert!(exposure.catalog().is_some_and(|catalog| catalog.tools.is_empty()));
        let changes: Vec<&PinChange> = exposure.changes.iter().collect();
        screening.accept(&identity, &changes).expect("pins in memory");
        assert!(screen(&screening, &changed, Pins::Block).held.is_empty());
    }
}
