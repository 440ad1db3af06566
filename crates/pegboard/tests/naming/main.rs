//! Tool names and definitions as a model sees them: whole boards over in-process fakes.

#[path = "../support/mod.rs"]
mod support;

mod fixtures;
mod names;
mod offered;
