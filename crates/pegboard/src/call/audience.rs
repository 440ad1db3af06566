//! [`Audience`]: who reads the texts that a view answers with.

/// Who reads the texts of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The program's own agent. It is told why it may not use a tool, and tools are named `server.tool`.
    #[default]
    Agent,
    /// A model, through the program's agent. It is told the same, and knows tools by the names in their definitions.
    Model,
    /// A client of the program. It knows only what it was offered: tools have the names that it was shown, and those that it was not shown do
    /// not exist.
    Client,
}

impl Audience {
    /// Whether texts name tools as they are listed, instead of `server.tool`.
    pub(crate) fn knows_listed_names(self) -> bool {
        matches!(self, Self::Model | Self::Client)
    }

    /// Whether the audience may be told of tools that the view hides.
    pub(crate) fn may_know_hidden(self) -> bool {
        matches!(self, Self::Agent | Self::Model)
    }
}
