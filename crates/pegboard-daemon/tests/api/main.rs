//! The HTTP API behind a gateway, with fake servers over HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]

mod access;
mod borrowing;
mod callers;
mod calls;
mod events;
mod failures;
mod fixture;
mod requests;
