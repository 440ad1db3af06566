//! The names of tools in the answers of endpoints: those that the client was offered, and no others.

mod built_in;
mod client;
mod hidden;
mod texts;
