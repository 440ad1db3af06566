//! The HTTP client on an unreliable network, whose faults are derived from a seed.
//!
//! Real sockets on loopback and real time: the client's connector cannot be replaced, so the network is a proxy in this process that
//! delays, cuts, resets and drops bytes at positions that the seed determines. `PEGBOARD_SEEDS` sets the number of seeds, `PEGBOARD_SEED`
//! repeats one of them. `PEGBOARD_STORM` sets the number of calls of each storm.

mod network;
mod recorded_calls;
mod script;
mod seeds;
mod storm;
