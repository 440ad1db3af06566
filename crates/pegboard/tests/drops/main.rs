//! Whatever a caller is given can be dropped at any time, on every wire and while its server starts: no place in a queue, no task and no
//! process stays, and the next call is as good as the first.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod starts;
mod told;
mod wires;
mod words;
