//! What one agent's view of the board is made of.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    cache::Cache,
    hook::{Budget, Called, Hook, Hooks},
    repeat::Keys,
};
use crate::event::Bell;

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    pub(crate) hooks: Hooks,
    /// Whether the calls of a batch that may change something run one after the other.
    pub(crate) writes_in_turn: bool,
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
            bell,
            ..self
        }
    }
}
