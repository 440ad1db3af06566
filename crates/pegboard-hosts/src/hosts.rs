//! The programs that start MCP servers for their users: where their config files are, what is in them, and how Pegboard is entered there.
//!
//! Everything here works on parsed values and on [`Folders`], so that the rules of every operating system can be tested on any.

mod entry;
mod entry_fields;
mod folders;
mod host;
mod pegboard_entry;
mod reader;
mod servers;
mod table;
#[cfg(test)]
mod tests;
mod variables;

pub use folders::Folders;
pub(crate) use host::EntryForm;
pub use host::Host;
pub use pegboard_entry::Connection;
pub(crate) use pegboard_entry::{entry_for, is_pegboard};
pub(crate) use reader::MISTYPED;
pub(crate) use servers::{Listed, is_connection, servers_in};
pub(crate) use table::find_by_file;
pub use table::{HOSTS, find, find_present};
pub use variables::Input;
