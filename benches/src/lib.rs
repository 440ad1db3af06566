//! Measures tool calls: the library, its session alone, the official SDK and a hand-written floor, interleaved and against one server.

pub mod client;
pub mod floor;
pub mod memory;
pub mod options;
pub mod round;
pub mod table;
pub mod times;
