//! `pegboard find` against a fake of the official registry.

mod adding;
pub(crate) mod registry;
mod searching;
