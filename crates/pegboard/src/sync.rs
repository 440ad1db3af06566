//! The locks and atomics of the rooms whose promises depend on the order of threads.
//!
//! They are those of the standard library. The tests of `scripts/explore` take shuttle's instead, which lets other threads run at
//! each of them, in thousands of orders.

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
