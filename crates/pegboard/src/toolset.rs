//! One agent's view of the board: the tools, resources and prompts that the agent can use, and its calls.

mod batch;
mod builtin_definitions;
mod builtin_tools;
mod call_tool;
mod chain;
mod completion;
mod discover;
mod events;
mod executor;
mod forward;
mod instructions;
mod known_tool;
mod list_changes;
mod list_tools;
mod listed_now;
mod listing;
mod open_state;
mod principal_snapshots;
mod prompts;
mod read_only_requests;
mod read_output;
mod refused_call;
mod resource_tools;
mod resources;
mod routing;
mod search;
mod selection_check;
mod server_info;
mod server_selection;
mod shared_snapshots;
mod snapshot;
mod snapshot_rules;
mod taint;
mod tasks;
mod test_double;
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
