//! What one agent's view of the board is made of.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    cache::Cache,
    hook::{Budget, Called, Hook, Hooks},
    outputs::Outputs,
    repeat::Keys,
    rules::Rules,
};
use crate::{
    event::Bell,
    name::{NameRules, NameStyle},
    provider::Provider,
    session::Root,
};

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    pub(crate) roots: Option<Vec<Root>>,
    /// What it may do.
    pub(crate) rules: Rules,
    pub(crate) naming: Option<NameStyle>,
    pub(crate) name_rules: Option<NameRules>,
    pub(crate) provider: Provider,
    pub(crate) schema_budget: Option<usize>,
    /// How many tokens the definitions of all tools may take.
    pub(crate) tool_budget: Option<usize>,
    pub(crate) hooks: Hooks,
    /// Whether the calls of a batch that may change something run one after the other.
    pub(crate) writes_in_turn: bool,
    /// What becomes of results, and what was put aside of them.
    pub(crate) outputs: Outputs,
    // What is kept between calls. A toolset has its own: see `opened`.
    pub(crate) cache: Arc<Cache>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) bell: Bell,
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

    /// Sets the roots of the servers that only this view uses, instead of those of their config.
    pub fn roots(mut self, roots: Vec<Root>) -> Self {
        self.roots = Some(roots);
        self
    }

    pub(crate) fn own_roots(&self) -> Option<&[Root]> {
        self.roots.as_deref()
    }

    /// Sets about how many tokens the definitions of all tools may take. When they take more, the model is shown `find_tools`, `describe_tool` and
    /// `call_tool` instead, and the tools that the config says to load always.
    pub fn tool_budget(mut self, tokens: usize) -> Self {
        self.tool_budget = Some(tokens);
        self
    }

    /// The same as a share of a model's context window: at most so many percent of `window` tokens.
    ///
    /// ```
    /// # use pegboard::View;
    /// let view = View::new().tool_budget_percent(10, 200_000); // 20,000 tokens
    /// ```
    pub fn tool_budget_percent(self, percent: u8, window: usize) -> Self {
        let hundredths = window / 100 * usize::from(percent);
        self.tool_budget(hundredths + window % 100 * usize::from(percent) / 100)
    }

    /// Adds a hook around every call, inside those that were added before.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.around.push(Arc::new(hook));
        self
    }

    /// Sets who counts what replies cost, and refuses calls when nothing is left.
    pub fn budget(mut self, budget: impl Budget) -> Self {
        self.hooks.budget = Some(Arc::new(budget));
        self
    }

    /// Sets what every call carries in its `_meta`; a call's own facts win.
    pub fn meta(mut self, meta: impl Fn(Called<'_>) -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.hooks.meta = Some(Arc::new(meta));
        self
    }

    /// Runs the calls of a batch that may change something one after the other, in the order given.
    pub fn writes_in_turn(mut self) -> Self {
        self.writes_in_turn = true;
        self
    }

    /// The same view for one toolset: nothing that is kept between calls is shared with another one.
    pub(crate) fn opened(self, bell: Bell) -> Self {
        Self {
            cache: Arc::default(),
            keys: Arc::default(),
            outputs: self.outputs.opened(),
            bell,
            ..self
        }
    }
}
