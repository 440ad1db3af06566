//! The gateway under load while servers and clients are killed and the config is reloaded: no call is lost, crossed or executed twice, and
//! everything that was used comes back.
//!
//! `PEGBOARD_SOAK_SECONDS` sets the length of the run, `PEGBOARD_SEED` repeats its random numbers.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

#[path = "../command_line/home.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod home;

mod caller;
mod daemon;
mod http;
mod load;
