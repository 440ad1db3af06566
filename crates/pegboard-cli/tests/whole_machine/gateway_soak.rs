//! The gateway under load while servers and clients are killed and the config is reloaded: no call is lost, crossed or executed twice, and
//! everything that was used comes back.
//!
//! `PEGBOARD_SOAK_SECONDS` sets the length of the run, `PEGBOARD_SEED` repeats its random numbers.

mod caller;
mod daemon;
mod http;
mod load;
