//! [`Leftovers`]: what daemons left behind, for `doctor`.

use std::path::PathBuf;

/// What is found in the folder of sockets and locks.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The folder, if it cannot be used as it is.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) folder_problem: Option<String>,
    /// Sockets without a daemon.
    pub(crate) stale: Vec<PathBuf>,
    /// The process ids and versions of daemons that this program cannot use.
    pub(crate) others: Vec<(u32, String)>,
}
