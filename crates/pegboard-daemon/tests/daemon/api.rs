//! The HTTP API behind a gateway, with fake servers over HTTP.

mod access;
mod borrowing;
mod callers;
mod calls;
mod events;
mod failures;
mod fixture;
mod requests;
