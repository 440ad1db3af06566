//! One agent's view of the board: the tools, resources and prompts that the agent can use, and its calls.
//!
//! With [`View::tool_budget`](crate::View::tool_budget), if the definitions of all tools would take more tokens than the budget, the model gets
//! tools that find, describe and call the others instead. Programs can search with [`Toolset::find`], or with [`Toolset::search`] if an
//! [`Embedder`] is set.

mod batch;
mod builtin_definitions;
mod builtin_list;
mod builtin_tools;
mod chain;
mod completion;
mod executor;
mod forward;
mod instructions;
mod known_tool;
mod list_changes;
mod listed_now;
mod lister;
mod listing;
mod listing_warnings;
mod open_state;
mod open_view;
mod output_reader;
mod principal_snapshots;
mod prompts;
mod resolver;
mod resource_reader;
mod resources;
mod search;
mod selection_check;
mod selection_views;
mod server_info;
mod server_requests;
mod shared_snapshots;
mod snapshot;
mod snapshot_rules;
mod subscriptions;
mod test_double;
mod tool_budget;
mod tool_calls;
mod tool_finder;
mod toolset_handle;

pub use crate::{
    call::{CallEvent, CallStream, Embedder},
    spill::SpillLimits,
};
pub use chain::ChainedTools;
pub use executor::ToolExecutor;
pub use known_tool::KnownTool;
pub use list_changes::{ChangedLists, ListChanges};
pub use listing::{InvalidTool, ListedTool, Listing, Unavailable};
pub use pegboard_client::session::CompletionOf;
pub use prompts::PromptListing;
pub use resources::ResourceListing;
pub use search::{FoundTool, ServerCost};
pub(crate) use shared_snapshots::SharedSnapshots;
pub use test_double::{StubCall, StubReply, StubTools};
pub use toolset_handle::Toolset;
