//! One agent's view and its calls, over in-process fakes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod around;
mod brought;
mod building;
mod described;
mod endings;
mod kept;
mod many;
mod meaning;
mod native;
mod resources;
mod scale;
mod told;
