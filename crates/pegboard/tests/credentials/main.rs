//! Credentials that the program supplies at run time: when its provider is asked, what is sent, and what becomes of its failures, on every
//! transport and in both eras.

#![expect(clippy::unwrap_used, reason = "fixtures panic like the tests that use them")]

#[path = "../support/mod.rs"]
mod support;

mod fixtures;

mod failures;
mod masking;
mod processes;
mod refusals;
mod requests;
