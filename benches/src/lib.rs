//! Measures calls of tools: the library, its session alone, the official SDK and a hand-written floor, in turn and against one server.

pub mod client;
pub mod floor;
pub mod memory;
pub mod options;
pub mod round;
pub mod table;
pub mod times;
