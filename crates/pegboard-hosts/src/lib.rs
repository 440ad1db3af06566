//! Knows the programs that keep MCP servers in a config file ("hosts", such as Claude, Cursor or VS Code), and edits their files and
//! Pegboard's.
//!
//! Nothing here prints, asks a person, or parses a command line; no server is started. The rooms, bottom to top:
//!
//! - [`document`]: edits TOML, JSON with comments and YAML, with every other byte of the file kept.
//! - [`hosts`]: the table of all hosts, and the translation of their entries into settings of Pegboard. Works on parsed values only.
//! - [`ServersFile`]: the servers of a config file of Pegboard.
//! - [`import`]: plans which servers of hosts are written into our config, and under which names.
//! - [`install`]: enters Pegboard in the files of hosts, and takes it out again.
//!
//! The path of an import:
//!
//! ```text
//! a host's file ──▶ Document ──▶ hosts: entries as settings ──▶ Plan: a Row for each server
//!                                                                 │ the caller shows it and asks
//!                                                                 ▼
//! pegboard.toml ◀── Document ◀── ServersFile ◀──────────────── Plan::write
//! ```
//!
//! An installation edits the host's file in the same way, after a backup beside it. What an edit would break is refused: the edited text is
//! read back before it is saved, and a file that another process has changed meanwhile is not overwritten.

pub mod document;
pub mod executable;
mod host_error;
pub mod hosts;
pub mod import;
pub mod install;
mod own_entries;
mod project_bounds;
mod secret_references;
mod servers_file;
pub mod user_file;

pub use host_error::{HostError, HostErrorKind};
pub use own_entries::OwnEntries;
pub use secret_references::{give_secret, secret_reference, take_from_secret};
pub use servers_file::{Checked, ServersFile, check_server_name, shorten_path, show_entry};
