//! A secret of the config, planted in every place in which a server can say something, appears in nothing that the library gives out.

#![expect(clippy::unwrap_used, reason = "the words of these tests are tests too")]

#[path = "../support/mod.rs"]
mod support;

mod counted;
mod planted;
