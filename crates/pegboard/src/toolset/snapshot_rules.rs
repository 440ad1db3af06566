//! The settings of a view that determine its snapshot.

use crate::call::{Audience, ShownRules, View};
use pegboard_base::name::{NameRules, NameStyle};
use pegboard_tools::provider::Provider;

/// The settings of a view that determine its snapshot, besides its servers.
#[derive(Debug)]
pub(super) struct SnapshotRules {
    shown: ShownRules,
    naming: Option<NameStyle>,
    name_rules: Option<NameRules>,
    dialect: (Provider, Option<usize>),
    resource_tools: bool,
    audience: Audience,
}

impl SnapshotRules {
    /// Copies the settings of a view that has no tools of its own.
    pub(super) fn new(view: &View) -> Self {
        Self {
            shown: view.rules.to_shown_rules(),
            naming: view.naming.clone(),
            name_rules: view.name_rules,
            dialect: view.dialect(),
            resource_tools: view.resource_tools,
            audience: view.audience,
        }
    }

    /// Whether a view has equal settings. Compares them in place, because every new toolset is compared.
    pub(super) fn are_those_of(&self, view: &View) -> bool {
        self.dialect == view.dialect()
            && self.resource_tools == view.resource_tools
            && self.audience == view.audience
            && self.naming == view.naming
            && self.name_rules == view.name_rules
            && self.shown.are_those_of(&view.rules)
    }
}
