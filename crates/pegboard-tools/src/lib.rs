//! Tools of MCP servers as data: definitions, arguments, outcomes, and what a model API makes of them.
//!
//! The rooms, bottom to top:
//!
//! - [`args`]: reads arguments from the text of a model or a command line, and validates them against the tool's schema.
//! - [`filter`] and [`grant`]: which tools a view or a caller may use.
//! - [`catalog`]: the tools, resources and prompts of one server, as an immutable value.
//! - [`search`]: ranks tools for a query.
//! - [`outcome`]: how a call ended, with a text for the model and details for the program.
//! - [`tool_call`]: the builder of a call.
//! - [`provider`]: definitions of tools and messages of calls, for each model API.
//! - `rmcp`: conversions from and to the types of the official SDK, behind a feature.
//!
//! ```text
//! listing of a server ──▶ Catalog ──▶ Tool ──▶ provider: Definition ──▶ a model
//!                                                                        │
//! arguments for the server ◀── args: parse, coerce, validate ◀── provider: reverse the names and types
//!
//! result of a server ──▶ Answer ──▶ sanitize ──▶ mask ──▶ truncate ──▶ render ──▶ Reply
//! ```
//!
//! Nothing here waits or connects. The API follows the needs of the other crates. Programs use the crate `pegboard`.

pub mod args;
pub mod catalog;
pub mod filter;
pub mod grant;
pub mod outcome;
pub mod provider;
#[cfg(feature = "rmcp")]
pub mod rmcp;
pub mod search;
pub mod tool_call;

pub use args::Arguments;
pub use catalog::Tool;
pub use filter::Selection;
pub use grant::Grants;
pub use outcome::{Answer, Content, Failure, Kind, Outcome, Reply};
pub use provider::Provider;
pub use tool_call::ToolCall;
