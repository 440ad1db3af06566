//! The settings of a view that determine its snapshot.

use crate::{
    call::{ShownRules, View},
    name::{NameRules, NameStyle},
    provider::Provider,
};

/// The settings of a view that determine its snapshot, besides its servers.
#[derive(Debug, PartialEq)]
pub(super) struct SnapshotRules {
    shown: ShownRules,
    naming: Option<NameStyle>,
    name_rules: Option<NameRules>,
    dialect: (Provider, Option<usize>),
    resource_tools: bool,
}

impl SnapshotRules {
    /// Copies the settings of a view that has no tools of its own.
    pub(super) fn of(view: &View) -> Self {
        Self {
            shown: view.rules.shown(),
            naming: view.naming.clone(),
            name_rules: view.name_rules,
            dialect: view.dialect(),
            resource_tools: view.resource_tools,
        }
    }

    /// Whether a view has equal settings. Compares them in place, because every new toolset is compared.
    pub(super) fn are_those_of(&self, view: &View) -> bool {
        self.dialect == view.dialect()
            && self.resource_tools == view.resource_tools
            && self.naming == view.naming
            && self.name_rules == view.name_rules
            && self.shown.are_those_of(&view.rules)
    }

    /// Whether definitions of tools are compiled alike for a view.
    pub(super) fn have_dialect_of(&self, view: &View) -> bool {
        self.dialect == view.dialect()
    }
}
