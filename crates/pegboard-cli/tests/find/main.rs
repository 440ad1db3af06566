//! `pegboard find` against a fake of the official registry.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod adding;
#[expect(dead_code, reason = "these tests need only a part of it")]
#[path = "../command_line/home.rs"]
mod home;
mod registry;
mod searching;
