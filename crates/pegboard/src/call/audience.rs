//! [`Audience`]: who reads the texts that a view answers with.

/// Who reads the texts of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The program's own agent. It is told why it may not use a tool, and tools are named `server.tool`.
    #[default]
    Agent,
    /// A client of the program. It knows only what it was offered: tools have the names that it was shown, and those that it was not shown do
    /// not exist.
    Client,
}
