//! The audit log of a board: what it says about calls, what it does not say, and what happens when it cannot be written.

mod calls;
mod failures;
#[cfg(unix)]
mod processes;
mod stage;
