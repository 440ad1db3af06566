//! Locks and atomics that shuttle can replace, and small helpers for async code.
//!
//! By default the types are those of the standard library. The tests of `scripts/explore` use those of shuttle, which switches threads at each
//! operation and explores thousands of interleavings.

#[cfg(not(all(test, feature = "explore")))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(all(test, feature = "explore"))]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

#[cfg(test)]
#[cfg(feature = "explore")]
pub(crate) mod explore;

mod broadcast_stream;
mod catch_panic;

pub(crate) use broadcast_stream::BroadcastStream;
pub(crate) use catch_panic::{Panicked, caught, caught_now};
