//! What all crates of Pegboard share: names, secrets, private files, deadlines, locks.
//!
//! | looking for | module |
//! | --- | --- |
//! | names of servers, and names of tools for models | [`name`] |
//! | values that are never printed, and what counts as a secret | [`secret`] |
//! | files that only the user can read or change | [`private_file`] |
//! | secrets in the keyring of the operating system, behind the feature `keyring` | `keyring` |
//! | who makes a call | [`caller`] |
//! | how long a call may take | [`deadline`] |
//! | what a person can do about an error | [`hint`] |
//! | enum values as words in text, JSON and config files | [`mod@label`] |
//! | reading JSON without building a tree | [`json_scan`] |
//! | texts of servers with their invisible characters shown | [`visible_text`] |
//! | the names of lines of the log | [`log_event`] |
//! | traces of requests, finished spans, and what receives them | [`telemetry`] |
//! | locks and atomics that the tests of `scripts/explore` replace, panics as errors | [`sync`] |
//!
//! Nothing here knows a config file, a server or a call. The API follows the needs of the other crates. Programs use the crate `pegboard`.

pub mod caller;
pub mod deadline;
pub mod diagnosis;
pub mod hint;
pub mod json_scan;
#[cfg(feature = "keyring")]
pub mod keyring;
pub mod label;
pub mod log_event;
pub mod name;
pub mod private_file;
pub mod secret;
pub mod sync;
pub mod telemetry;
pub mod timestamp;
pub mod visible_text;

/// A future on the heap that may move between threads: what the methods of a program's own hosts, hooks and credentials return.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
