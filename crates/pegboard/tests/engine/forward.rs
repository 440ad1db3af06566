//! Calls and requests that a program passes on for its clients: results as bytes, questions and notifications unparsed.

mod accounts;
mod calls;
mod questions;
mod raw_server;
mod requests;
mod rounds;
#[cfg(feature = "http")]
mod wires;
