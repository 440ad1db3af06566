//! One agent's view: what happens around and to its calls, over fake servers in this process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod around;
mod brought;
mod described;
mod endings;
mod kept;
mod many;
mod meaning;
mod native;
mod resources;
mod scale;
mod told;
