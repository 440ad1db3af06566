//! The HTTP client on a network that fails in every way a network can, by a script that follows from a seed.
//!
//! Real sockets on loopback and real time: the client's connector cannot be replaced, so the network is a proxy in this process that delays,
//! cuts, resets and swallows bytes at positions which the seed names. `PEGBOARD_SEEDS` sets how many seeds are played, `PEGBOARD_SEED` plays one
//! of them again. `PEGBOARD_STORM` sets how many calls each storm makes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../matrix/secure.rs"]
#[expect(dead_code, reason = "no client needs a certificate here")]
mod secure;

mod network;
mod script;
mod seeds;
mod storm;
mod watched;
