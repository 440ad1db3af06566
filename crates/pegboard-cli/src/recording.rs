//! Recordings of what an MCP server answered: made of a real one, and served again as a fake one.

mod exchange;
mod order;
mod recorded;
mod replay;

pub(crate) use recorded::{Recorded, Recorder};
pub(crate) use replay::{Matching, Replay};
