//! What one agent's view of the board is made of.

use super::outputs::Outputs;

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    pub(crate) outputs: Outputs,
}

impl View {
    /// A view of everything, as the config says.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same view for one toolset: nothing that is kept between calls is shared with another one.
    pub(crate) fn opened(self) -> Self {
        Self {
            outputs: self.outputs.opened(),
        }
    }
}
