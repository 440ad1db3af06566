//! Locks and atomics that shuttle can replace, and small helpers for async code.
//!
//! By default the types are those of the standard library. The tests of `scripts/explore` use those of shuttle, which switches threads at each
//! operation and explores thousands of interleavings.

#[cfg(not(feature = "explore"))]
pub use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(feature = "explore")]
pub use shuttle::sync::{Mutex, MutexGuard, atomic};

#[cfg(feature = "explore")]
pub mod explore;

mod broadcast_stream;
mod catch_panic;

pub use broadcast_stream::BroadcastStream;
pub use catch_panic::{Panicked, caught, caught_now};
