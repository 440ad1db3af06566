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
mod instructions;
mod list_tools;
mod listing;
mod open_state;
mod prompts;
mod read_only_requests;
mod read_output;
mod resource_tools;
mod resources;
mod routing;
mod search;
mod selection_check;
mod server_selection;
mod shadow_warnings;
mod snapshot;
mod taint;
mod tasks;
mod test_double;
mod toolset_handle;

pub use chain::ChainedTools;
pub use executor::ToolExecutor;
pub use listing::{InvalidTool, ListedTool, Listing, Unavailable};
pub use prompts::PromptListing;
pub use resources::ResourceListing;
pub use search::{FoundTool, ServerCost};
pub use test_double::{StubCall, StubReply, StubTools};
pub use toolset_handle::Toolset;
