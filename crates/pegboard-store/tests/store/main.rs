//! All stores do the same, and each survives the faults that it can have.

#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod conformance;
mod file;
mod fixture;
mod memory;
mod open;
#[cfg(all(feature = "redis", unix))]
mod redis;
mod sealed;
