//! The audit log: one line of JSON for every decision about a call, for every call that ends and for every change of the board, each chained to the line before by its
//! hash. Lines name servers, tools, decisions and sizes, and never contain values of arguments or results.
//!
//! A thread of its own writes the log, so that calls do not wait for the disk. Several processes may write to one log: they take turns by a
//! lock on `FILE.state`, which also holds the key of the argument hashes and the end of the chain.

mod chain;
mod digest;
mod entry;
mod log_file;
mod sink;
mod state_file;
mod stdout;
mod syslog;
mod verify;
mod writer;

pub use entry::{AdminChange, ChangeOutcome};
pub(crate) use entry::{ArgumentsEntry, AuditDecision, AuditEntry, AuditRule};
#[doc(hidden)]
pub use log_file::files;
pub use verify::{AuditBreak, AuditBreakKind, AuditCheck, verify};
pub(crate) use writer::{AuditFailure, AuditLog};

#[cfg(test)]
mod tests;
