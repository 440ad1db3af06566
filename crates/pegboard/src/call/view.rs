//! What one agent's view of the board is made of.

use crate::session::Root;

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    roots: Option<Vec<Root>>,
}

impl View {
    /// A view of everything, as the config says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the roots of the servers that only this view uses, instead of those of their config.
    pub fn roots(mut self, roots: Vec<Root>) -> Self {
        self.roots = Some(roots);
        self
    }

    pub(crate) fn own_roots(&self) -> Option<&[Root]> {
        self.roots.as_deref()
    }
}
