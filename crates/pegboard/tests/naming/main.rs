//! What tools are called, and what they look like to a model: whole boards over fake servers in this process.

#[path = "../support/mod.rs"]
mod support;

mod names;
mod offered;
mod words;
