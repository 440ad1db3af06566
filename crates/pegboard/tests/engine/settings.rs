//! What a board does with each setting of a config file: from the text of a file to the behaviour of a board over fake servers.
//!
//! `src/config/tests/effects.rs` lists the test of every field.

mod arguments;
mod audit;
mod breaker;
mod call_limits;
#[cfg(unix)]
mod credential_sources;
mod fixtures;
mod health;
mod lifecycle;
mod limits;
mod masking;
mod policy;
mod processes;
mod queues;
mod remote;
mod restarts;
mod results;
mod retries;
#[cfg(feature = "oauth")]
mod sign_in;
mod summaries;
mod top;
mod views;
