//! Compares each new catalogue of a server with its pins, and scans it.
//!
//! Every use of a server's catalogue goes through here, so a held tool is in no listing, search or prompt, and cannot be called.

use std::sync::Arc;

use super::{
    exposure::{Exposure, Findings, HeldTool, changes, has_same_changes},
    phase::{Live, Phase},
    pool::Pool,
    server_handle::Server,
};
use crate::pin::{
    Judged, Listed, PinChange, PinError, PinnedServer, ServerIdentity, accept, command_name, judge, record,
};
use pegboard_base::{diagnosis::Code, name::ServerName};
use pegboard_client::transport::Target;
use pegboard_config::{Pins, ServerConfig};
use pegboard_tools::catalog::{Catalog, ListWarning};

/// How many catalogues are remembered: those of the connections of a pool.
const MAX_EXPOSURES: usize = 64;

impl Server {
    /// What agents see of a catalogue. It is decided once for each catalogue.
    pub(super) fn exposure(&self, catalog: &Arc<Catalog>, live: Option<&Live>, pool: &Pool) -> Arc<Exposure> {
        if let Some(known) = self.known_exposure(catalog, live) {
            return known;
        }
        let _screening = self.0.screening.lock();
        if let Some(known) = self.known_exposure(catalog, live) {
            return known;
        }
        let exposure = Arc::new(self.screened(catalog, live, pool));
        let known = self.0.exposures.load_full();
        let is_reported = known.iter().any(|other| has_same_changes(other, &exposure));
        if !exposure.changes.is_empty() && !is_reported {
            let held = exposure.changes.iter().filter(|change| change.held).count();
            self.0.publisher.definitions_flagged(&exposure.changes, held);
        }
        let is_alive = |other: &&Arc<Exposure>| {
            let is_same = other.source.as_ptr() == exposure.source.as_ptr();
            other.source.strong_count() > 0 && !is_same
        };
        let mut exposures: Vec<Arc<Exposure>> = known.iter().filter(is_alive).cloned().collect();
        exposures.truncate(MAX_EXPOSURES - 1);
        exposures.insert(0, exposure.clone());
        self.0.exposures.store(Arc::new(exposures));
        exposure
    }

    fn known_exposure(&self, catalog: &Arc<Catalog>, live: Option<&Live>) -> Option<Arc<Exposure>> {
        let generation = live.map_or(0, |live| live.generation);
        let config = self.config();
        let policy = (config.policy.pins, config.policy.scan);
        let exposures = self.0.exposures.load();
        let known = exposures
            .iter()
            .find(|known| known.source.as_ptr() == Arc::as_ptr(catalog))?;
        // A catalogue of a session that ended has the instructions of that session considered.
        let is_current = known.policy == policy && (known.generation == generation || generation == 0);
        is_current.then(|| known.clone())
    }

    /// Forgets what was decided, so that the pins are read again.
    fn forget_exposures(&self) {
        self.0.exposures.store(Arc::default());
        self.0.revision.bump();
    }

    /// The exposure of the current catalogue, if there is one.
    pub(super) fn current_exposure(&self) -> Option<Arc<Exposure>> {
        let pool = self.pool().filter(|_| self.is_requested())?;
        match pool.phase() {
            Phase::Ready(live) => Some(self.exposure(&live.ready.listed, Some(&live), &pool)),
            Phase::Disabled | Phase::Closed => None,
            _ => Some(self.exposure(&pool.first().known().latest()?, None, &pool)),
        }
    }

    /// The tools that are withheld until a person accepts them.
    pub(crate) fn held_tools(&self) -> Vec<HeldTool> {
        self.current_exposure()
            .map(|exposure| exposure.held.clone())
            .unwrap_or_default()
    }

    /// Whether a prompt is withheld because of what the scanner found in it.
    pub(crate) fn holds_prompt(&self, name: &str) -> bool {
        self.current_exposure()
            .is_some_and(|exposure| exposure.held_prompts.iter().any(|held| held == name))
    }

    /// A warning about a tool that is offered although its definition changed or looks like an attack. Cheap if no definition does.
    pub(crate) fn definition_warning(&self, tool: &str) -> Option<String> {
        let exposure = self.current_exposure()?;
        let of_tool = |change: &&PinChange| change.tool.as_deref() == Some(tool) && !change.held;
        let change = exposure.changes.iter().find(of_tool)?;
        Some(format!(
            "tool `{}`: {}; `pegboard pins diff {}` shows it",
            change.name(),
            change.reason(),
            command_name(self.name(), tool)
        ))
    }

    /// Warnings about definitions that changed or look like attacks.
    pub(crate) fn definition_warnings(&self) -> Vec<ListWarning> {
        self.current_exposure()
            .map(|exposure| exposure.warnings.clone())
            .unwrap_or_default()
    }

    /// The definitions that are not as they were pinned, or suspicious.
    pub(crate) fn pin_changes(&self) -> Vec<PinChange> {
        self.current_exposure()
            .map(|exposure| exposure.changes.clone())
            .unwrap_or_default()
    }

    /// The instructions of a running server, unless they are held.
    pub(crate) fn instructions(&self) -> Option<String> {
        let phase = self.phase();
        let text = phase.live()?.session.peer.instructions.clone()?;
        let exposure = self.current_exposure()?;
        (!exposure.holds_instructions).then_some(text)
    }

    /// Pins definitions that a person has accepted.
    pub(crate) fn accept_pins(&self, changes: &[&PinChange]) -> Result<(), PinError> {
        let store = &self.0.shared.pins;
        store.update(&self.identity(), |pinned| accept(pinned, &self.0.name, changes))?;
        self.forget_exposures();
        Ok(())
    }

    /// Reads the pins again if tools are held and another process has changed the pins. Returns whether it did.
    pub(crate) fn recheck_held(&self) -> bool {
        let exposures = self.0.exposures.load();
        let holds = |exposure: &&Arc<Exposure>| !exposure.held.is_empty() || exposure.holds_instructions;
        let Some(newest) = exposures.first().filter(holds) else {
            return false;
        };
        let is_changed = self.0.shared.pins.stamp(&self.identity()) != newest.stamp;
        if is_changed {
            self.forget_exposures();
        }
        is_changed
    }

    /// What the server is, under which its definitions are pinned.
    pub(crate) fn identity(&self) -> ServerIdentity {
        identity(&self.0.spec.target, &self.0.name, &self.config())
    }

    fn screened(&self, catalog: &Arc<Catalog>, live: Option<&Live>, pool: &Pool) -> Exposure {
        let config = self.config_snapshot();
        let (pins, scan) = (config.policy.pins, config.policy.scan);
        let server = &self.0.name;
        let instructions = live.map(|live| live.session.peer.instructions.as_deref().unwrap_or_default());
        let listed = Listed {
            server,
            catalog,
            instructions,
        };
        let findings = Findings::of(scan, listed);
        let stamp = || self.0.shared.pins.stamp(&self.identity());
        // Before the pins are read, so that a change in the meantime is noticed later.
        let before = stamp();
        let (pinned, judged, failed) = match pins == Pins::Off && findings.is_empty() {
            true => (None, Judged::default(), None),
            false => self.judged(pins, listed),
        };
        let mut exposure = Exposure {
            source: Arc::downgrade(catalog),
            generation: live.map_or(0, |live| live.generation),
            policy: (pins, scan),
            stamp: if judged.records { stamp() } else { before },
            catalog: None,
            changes: changes(listed, (pins, scan), pinned.as_ref(), &judged, &findings),
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
        exposure.expose(catalog, (*pool.first().name() != *server).then_some(server));
        exposure
    }

    /// Compares a listing with its pins and records what is new. Also returns why that failed, if it did.
    fn judged(&self, pins: Pins, listed: Listed<'_>) -> (Option<PinnedServer>, Judged, Option<PinError>) {
        let (store, identity) = (&self.0.shared.pins, self.identity());
        let pinned = match store.load(&identity) {
            Ok(pinned) => pinned,
            Err(error) => return (None, Judged::default(), Some(error)),
        };
        let judged = judge(pins, pinned.as_ref(), listed);
        let failed = match judged.records {
            true => store.update(&identity, |pinned| record(pins, pinned, listed)).err(),
            false => None,
        };
        (pinned, judged, failed)
    }
}

/// What a server is: its transport, or its name if it runs in this process.
pub(crate) fn identity(target: &Target, name: &ServerName, config: &ServerConfig) -> ServerIdentity {
    match target {
        Target::InProcess(_) => ServerIdentity::in_process(name),
        Target::Configured(_) | Target::StandIn(_) => ServerIdentity::of(config),
    }
}
