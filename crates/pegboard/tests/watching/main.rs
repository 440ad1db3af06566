//! What a program can learn of a board that works: events and counters. Nothing is missed and nothing is told twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod metrics;
mod servers;
mod words;
