//! Locks that do not poison, atomics that shuttle can replace, and small helpers for async code.
//!
//! The tests of `scripts/explore` use the locks and atomics of shuttle, which switches threads at each operation and explores thousands of
//! interleavings.

#[cfg(not(feature = "explore"))]
pub use std::sync::atomic;

#[cfg(feature = "explore")]
pub use shuttle::sync::atomic;

#[cfg(feature = "explore")]
pub mod explore;

mod broadcast_stream;
mod catch_panic;
mod locks;
mod own_wakes;

pub use broadcast_stream::BroadcastStream;
pub use catch_panic::{Panicked, catch, catch_now};
pub use locks::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use own_wakes::OwnWakes;
