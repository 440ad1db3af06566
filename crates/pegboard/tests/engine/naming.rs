//! Tool names and definitions as a model sees them: whole boards over in-process fakes.

mod fixtures;
mod names;
mod offered;
