//! Enters Pegboard in the config files of hosts, takes it out again, and moves servers between their files and ours.
//!
//! `edit` and `removal` change a host's file. What they must know later is in files of the user: `taken_over` has the entries that were
//! moved, `remotes` the URLs that were written; `originals` are the backups beside the file. `moving` decides which servers can be moved.

mod edit;
mod moving;
mod originals;
mod ownership;
mod program;
mod remotes;
mod removal;
mod taken_over;

use std::path::PathBuf;

use crate::hosts::{Connection, Host};
pub use edit::install;
pub use moving::{find_movable, leave_what_would_not_work, reason_to_stay};
pub use program::{find_program, is_temporary};
pub use removal::uninstall;

/// How Pegboard is entered in hosts.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The name of the entry.
    pub name: String,
    /// How the host reaches Pegboard.
    pub connection: Connection,
    /// Whether it replaces another entry of that name.
    pub force: bool,
    /// What becomes of an entry that is Pegboard's already.
    pub existing: Existing,
}

/// What becomes of an entry of a host that is Pegboard's already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is written anew.
    Replaced,
    /// It stays, but starts Pegboard with or without a daemon as a new one does, unless it has other options. Its program is replaced if that
    /// is gone.
    Updated,
    /// It stays. Its program is replaced if that is gone.
    Kept,
}

impl Installation {
    fn command_line(&self) -> String {
        match &self.connection {
            Connection::Process { program, args } => format!("{program} {}", args.join(" ")),
            Connection::Url(url) => url.clone(),
        }
    }
}

/// How Pegboard is taken out of hosts.
#[derive(Debug, Clone)]
pub struct Removal {
    /// The name of the entry.
    pub name: String,
    /// Whether it is in the host's file of the project in the working folder.
    pub is_project: bool,
    /// Whether the servers are put back that were moved out of the file.
    pub restores: bool,
    /// Whether nothing is written.
    pub is_dry: bool,
}

/// What was done to a file, or would be.
#[derive(Debug)]
pub struct Change {
    /// The program whose file it is.
    pub host: &'static Host,
    /// The file; empty if the host has none with Pegboard.
    pub file: PathBuf,
    /// What happened to the entry.
    pub effect: Effect,
    /// The name of the entry.
    pub name: String,
    /// What the host starts or connects to.
    pub target: Option<String>,
    /// The copy of the file as it was before.
    pub backup: Option<PathBuf>,
    /// The servers that were moved out of the file, or back into it.
    pub moved: Vec<String>,
    /// What a person must know.
    pub warnings: Vec<String>,
}

/// What happened to Pegboard's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is new.
    Added,
    /// It was there and is different now.
    Updated,
    /// It was there already.
    Unchanged,
    /// It is gone, and servers may have been put back.
    Removed,
    /// It was not there, and servers were put back.
    Restored,
    /// It was not there.
    Absent,
}
