//! Recovery under load: calls while servers are killed, boards opened and dropped many times, and the invariants afterwards.
//!
//! `PEGBOARD_SOAK` sets how many calls or cycles a test makes, `PEGBOARD_SEED` repeats the delays of an earlier run.

mod classes;
mod cycles;
mod fixtures;
mod forgets;
mod kills;
mod stuck;
