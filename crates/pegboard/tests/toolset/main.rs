//! One agent's view and its calls, over in-process fakes.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../support/mod.rs"]
mod support;

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
mod view_tools;
