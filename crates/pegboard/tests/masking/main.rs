//! A secret of the config that a server puts into any of its messages appears in no output of the library.

#![expect(clippy::unwrap_used, reason = "fixtures panic like the tests that use them")]

#[path = "../support/mod.rs"]
mod support;

mod canary;
mod counts;
mod crossing;
