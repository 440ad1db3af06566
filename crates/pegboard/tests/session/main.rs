//! Sessions with servers in this process: everything that is a matter of messages and of time, on a clock of our own.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod asks;
mod by_hand;
mod cancel;
mod listing;
mod time;
