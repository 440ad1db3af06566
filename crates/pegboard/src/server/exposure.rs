//! What agents see of one catalogue: its definitions without those that are held.

use std::sync::{Arc, Weak};

use crate::pin::{Judged, Listed, PinChange, PinState, PinnedServer, Stamp, command_name};
use pegboard_base::{diagnosis::Code, name::ServerName};
use pegboard_config::{Pins, Scan};
use pegboard_tools::catalog::{Catalog, DefinitionHash, Finding, FindingSeverity, ListWarning, Tool, scan_text};

/// How many findings are reported as warnings; more would not help a person.
const MAX_FINDINGS: usize = 8;
/// How many names a warning lists.
const MAX_NAMES: usize = 5;

/// What agents see of one catalogue.
#[derive(Debug)]
pub(crate) struct Exposure {
    pub(super) source: Weak<Catalog>,
    /// The session whose instructions were considered; zero for none.
    pub(super) generation: u64,
    pub(super) policy: (Pins, Scan),
    pub(super) stamp: Stamp,
    /// The catalogue as agents see it, if it differs from the source.
    pub(super) catalog: Option<Arc<Catalog>>,
    /// The definitions that are not as they were pinned, or suspicious.
    pub(super) changes: Vec<PinChange>,
    /// The tools that are withheld until a person accepts them.
    pub(super) held: Vec<HeldTool>,
    pub(super) held_prompts: Vec<String>,
    pub(super) holds_instructions: bool,
    /// Warnings about definitions that changed or look like attacks.
    pub(super) warnings: Vec<ListWarning>,
}

/// A tool that is withheld until a person accepts its definition.
#[derive(Debug, Clone)]
pub(crate) struct HeldTool {
    pub(crate) tool: Arc<Tool>,
    /// Why: the end of a sentence that begins with the tool.
    pub(crate) reason: String,
}

impl Exposure {
    /// The catalogue as agents see it; `None` if it is the source.
    pub(super) fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }

    /// Whether a prompt is withheld because of what the scanner found in it.
    pub(crate) fn holds_prompt(&self, name: &str) -> bool {
        self.held_prompts.iter().any(|held| held == name)
    }

    /// A warning about a tool that is offered although its definition changed or looks like an attack.
    pub(super) fn warn_about(&self, server: &ServerName, tool: &str) -> Option<String> {
        let is_offered = |change: &&PinChange| change.tool.as_deref() == Some(tool) && !change.held;
        let change = self.changes.iter().find(is_offered)?;
        Some(format!(
            "tool `{}`: {}; `pegboard pins diff {}` shows it",
            change.name(),
            change.reason(),
            command_name(server, tool)
        ))
    }

    /// Holds the definitions whose changes say so.
    pub(super) fn hold(&mut self, catalog: &Catalog, scan: Scan, findings: &Findings) {
        for change in self.changes.iter().filter(|change| change.held) {
            match &change.tool {
                Some(name) => self.held.extend(catalog.tool(name).map(|tool| HeldTool {
                    tool: tool.clone(),
                    reason: change.reason(),
                })),
                None => self.holds_instructions = true,
            }
        }
        if scan == Scan::Block {
            let held = findings
                .prompts
                .iter()
                .filter(|(_, found)| found.severity == FindingSeverity::High);
            self.held_prompts.extend(held.map(|(name, _)| name.clone()));
        }
    }

    /// Holds every definition, because the pins cannot be used.
    pub(super) fn hold_all(&mut self, catalog: &Catalog, why: &str) {
        self.holds_instructions = true;
        self.held = catalog
            .tools
            .iter()
            .map(|tool| HeldTool {
                tool: tool.clone(),
                reason: why.to_owned(),
            })
            .collect();
        self.held_prompts = catalog.prompts.iter().map(|prompt| prompt.name.clone()).collect();
    }

    /// Builds the catalogue that agents see, under another name if the link was created for another server.
    pub(super) fn expose(&mut self, source: &Arc<Catalog>, rename: Option<&ServerName>) {
        if self.held.is_empty() && self.held_prompts.is_empty() && rename.is_none() {
            return;
        }
        let mut catalog = match rename {
            Some(name) => source.under(name),
            None => source.as_ref().clone(),
        };
        // Both are sorted by name.
        let is_held = |tool: &Arc<Tool>| {
            self.held
                .binary_search_by(|held| held.tool.name.cmp(&tool.name))
                .is_ok()
        };
        catalog.tools.retain(|tool| !is_held(tool));
        catalog
            .prompts
            .retain(|prompt| !self.held_prompts.contains(&prompt.name));
        if let Some(name) = rename {
            for held in &mut self.held {
                Arc::make_mut(&mut held.tool).server = name.clone();
            }
        }
        self.catalog = Some(Arc::new(catalog));
    }

    pub(super) fn warn(&mut self, server: &ServerName, findings: &Findings) {
        let names = |is_one: &dyn Fn(&PinChange) -> bool| {
            let names: Vec<&str> = self.changes.iter().filter(|change| is_one(change)).map(item).collect();
            (!names.is_empty()).then(|| list(&names))
        };
        let changed = names(&|change| change.state != PinState::Unchanged && !change.held);
        let held = names(&|change| change.state != PinState::Unchanged && change.held);
        let look =
            format!("`pegboard pins diff {server}` shows what they say, `pegboard pins accept {server}` accepts it");
        let warnings = [
            changed.map(|names| format!("definitions changed since they were pinned: {names}; {look}")),
            held.map(|names| format!("definitions are held until they are accepted: {names}; {look}")),
        ];
        let warnings = warnings.into_iter().flatten();
        let of_items = self.changes.iter().filter_map(|change| {
            let worst = change.findings.iter().max_by_key(|finding| finding.severity)?;
            let held = if change.held { " and is held" } else { "" };
            Some(format!(
                "the definition of {} looks like an attack{held}: {worst}",
                item(change)
            ))
        });
        let of_prompts = findings
            .prompts
            .iter()
            .map(|(name, finding)| format!("the prompt `{}` looks like an attack: {finding}", name.escape_debug()));
        let suspicious: Vec<String> = of_items.chain(of_prompts).collect();
        let surplus = suspicious.len().saturating_sub(MAX_FINDINGS);
        let more = (surplus > 0)
            .then(|| format!("{surplus} more definitions look like attacks; `pegboard pins diff {server}` shows them"));
        let suspicious = suspicious.into_iter().take(MAX_FINDINGS).chain(more);
        let suspicious = suspicious.map(|message| ListWarning::new(Code::DefinitionSuspicious, message));
        let changed = warnings.map(|message| ListWarning::new(Code::DefinitionChanged, message));
        self.warnings = changed.chain(suspicious).collect();
    }
}

/// What the scanner found in one listing.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// For each tool of the catalogue, or empty if there are none.
    tools: Vec<Vec<Finding>>,
    instructions: Vec<Finding>,
    /// The worst finding of each suspicious prompt.
    prompts: Vec<(String, Finding)>,
}

impl Findings {
    /// Scans a listing, unless scans are off.
    pub(super) fn scan(scan: Scan, listed: Listed<'_>) -> Self {
        if scan == Scan::Off {
            return Self::default();
        }
        let tools: Vec<Vec<Finding>> = listed.catalog.tools.iter().map(|tool| tool.findings()).collect();
        let prompts = listed.catalog.prompts.iter().filter_map(|prompt| {
            let worst = prompt.findings().into_iter().max_by_key(|finding| finding.severity)?;
            Some((prompt.name.clone(), worst))
        });
        Self {
            prompts: prompts.collect(),
            instructions: listed
                .instructions
                .map(|text| scan_text("instructions", text))
                .unwrap_or_default(),
            tools: match tools.iter().all(Vec::is_empty) {
                true => Vec::new(),
                false => tools,
            },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.instructions.is_empty() && self.prompts.is_empty()
    }
}

/// The definitions that differ from their pins or are suspicious. A person's acceptance covers findings too.
pub(super) fn changes(
    listed: Listed<'_>,
    (pins, scan): (Pins, Scan),
    pinned: Option<&PinnedServer>,
    judged: &Judged,
    findings: &Findings,
) -> Vec<PinChange> {
    let mut changes = Vec::new();
    let is_held = |state: PinState, findings: &[Finding]| {
        let by_scan = scan == Scan::Block && findings.iter().any(|finding| finding.severity == FindingSeverity::High);
        by_scan || (pins.holds() && state != PinState::Unchanged)
    };
    for (index, tool) in listed.catalog.tools.iter().enumerate() {
        let state = judged.tools.get(index).copied().unwrap_or(PinState::Unchanged);
        let found = findings.tools.get(index).map(Vec::as_slice).unwrap_or_default();
        if state == PinState::Unchanged && found.is_empty() {
            continue;
        }
        let (pin, hash) = (
            pinned.and_then(|pinned| pinned.tools.get(&tool.name)),
            tool.definition_hash(),
        );
        if pin.is_some_and(|pin| pin.accepted && pin.hash == hash) {
            continue;
        }
        changes.push(PinChange {
            server: listed.server.clone(),
            tool: Some(tool.name.clone()),
            state,
            held: is_held(state, found),
            findings: found.to_vec(),
            hash,
            old: pin.and_then(|pin| pin.definition.clone()),
            new: tool.definition_text(),
        });
    }
    let (state, found) = (
        judged.instructions.unwrap_or(PinState::Unchanged),
        &findings.instructions,
    );
    let text = listed.instructions.unwrap_or_default();
    let hash = DefinitionHash::compute(text);
    let pin = pinned.and_then(|pinned| pinned.instructions.as_ref());
    let is_accepted = pin.is_some_and(|pin| pin.accepted && pin.hash == hash);
    if (state != PinState::Unchanged || !found.is_empty()) && !is_accepted {
        changes.push(PinChange {
            server: listed.server.clone(),
            tool: None,
            state,
            held: is_held(state, found),
            findings: found.clone(),
            hash,
            old: pin.and_then(|pin| pin.definition.clone()),
            new: text.to_owned(),
        });
    }
    changes
}

pub(super) fn has_same_changes(one: &Exposure, other: &Exposure) -> bool {
    let keys = |exposure: &Exposure| -> Vec<_> {
        let changes = exposure.changes.iter();
        changes
            .map(|change| (change.tool.clone(), change.hash, change.held))
            .collect()
    };
    keys(one) == keys(other)
}

/// The name of a definition within its server.
fn item(change: &PinChange) -> &str {
    change.tool.as_deref().unwrap_or("its instructions")
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
