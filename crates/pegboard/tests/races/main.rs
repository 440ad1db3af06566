//! What happens at the same time: changes, views that come and go, calls that wait, shutdown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod load;
mod views;
