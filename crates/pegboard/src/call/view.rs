//! What one agent's view of the board is made of.

use crate::{
    name::{NameRules, NameStyle},
    provider::Provider,
};

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    naming: Option<NameStyle>,
    name_rules: Option<NameRules>,
    provider: Provider,
    schema_budget: Option<usize>,
}

impl View {
    /// A view of everything, as the config says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how tools are named.
    pub fn naming(mut self, style: NameStyle) -> Self {
        self.naming = Some(style);
        self
    }

    /// Sets the model provider that the tools are defined for: its rules for names, its dialect of JSON Schema.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Sets what names may look like, in place of the provider's rules.
    pub fn name_rules(mut self, rules: NameRules) -> Self {
        self.name_rules = Some(rules);
        self
    }

    /// Sets how many bytes of JSON the schema of one tool may have. A larger one loses what it can spare, the least important first.
    pub fn schema_budget(mut self, bytes: usize) -> Self {
        self.schema_budget = Some(bytes);
        self
    }

    /// Takes the style from the config where none is set.
    pub(crate) fn with_default_naming(mut self, style: &NameStyle) -> Self {
        self.naming.get_or_insert_with(|| style.clone());
        self
    }

    /// How tools are named, and what the names may look like.
    pub(crate) fn names(&self) -> (NameStyle, NameRules) {
        let rules = self.name_rules.unwrap_or_else(|| self.provider.name_rules());
        (self.naming.clone().unwrap_or_default(), rules)
    }

    pub(crate) fn dialect(&self) -> (Provider, Option<usize>) {
        (self.provider, self.schema_budget)
    }
}
