//! One agent's view and its calls, over in-process fakes.

mod batches;
mod building;
mod cache_and_keys;
mod configured_tools;
mod dialers;
mod endings;
mod events;
mod hooks;
mod native;
mod resources;
mod runtime_servers;
mod scale;
mod semantic_search;
mod telemetry;
mod view_tools;
