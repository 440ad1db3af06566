//! The names of capabilities, which clients and servers declare at the start of a session or with each request.

/// A server has tools; a client's sampling takes tools.
pub const TOOLS: &str = "tools";
/// A server has resources.
pub const RESOURCES: &str = "resources";
/// A server has prompts.
pub const PROMPTS: &str = "prompts";
/// A server sends log messages.
pub const LOGGING: &str = "logging";
/// A server completes arguments.
pub const COMPLETIONS: &str = "completions";
/// Either side runs requests as tasks (2025-11-25).
pub const TASKS: &str = "tasks";

/// A client lists its roots.
pub const ROOTS: &str = "roots";
/// A client lets servers use its model.
pub const SAMPLING: &str = "sampling";
/// A client asks its user for input.
pub const ELICITATION: &str = "elicitation";
/// Part of [`ELICITATION`]: the client shows forms.
pub const FORM: &str = "form";
/// Part of [`ELICITATION`]: the client opens pages.
pub const URL: &str = "url";

/// Part of a list: its owner notifies the other side of changes.
pub const LIST_CHANGED: &str = "listChanged";
/// Part of [`RESOURCES`]: clients may subscribe to changes of one resource.
pub const SUBSCRIBE: &str = "subscribe";

/// Extensions by their names (modern).
pub const EXTENSIONS: &str = "extensions";

/// The names of extensions.
pub mod extension {
    /// Either side runs requests as tasks.
    pub const TASKS: &str = "io.modelcontextprotocol/tasks";
}
