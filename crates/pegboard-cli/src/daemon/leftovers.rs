//! What daemons left behind, and daemons of other versions, for `doctor`.

use std::{fs, time::Duration};

use crate::leftovers::Leftovers;

use super::{
    client::hello_at,
    folder::{self, FolderError},
    hello::VERSION,
    lock::is_free,
};

/// The most files of the folder that are looked at.
const MAX_FILES: usize = 1000;
/// How long one daemon may take to say who it is.
const HELLO_TIME: Duration = Duration::from_secs(2);

/// Looks at the user's folder of daemons.
pub(crate) async fn leftovers() -> Leftovers {
    let mut found = Leftovers::default();
    let folder = match folder::open(false) {
        Ok(folder) => folder,
        Err(FolderError::Unsafe(problem)) => {
            found.folder = folder::path();
            found.folder_problem = Some(problem);
            return found;
        }
        Err(FolderError::Missing(_)) => return found,
    };
    let Ok(entries) = fs::read_dir(&folder) else {
        return found;
    };
    let sockets = entries.flatten().map(|entry| entry.path()).take(MAX_FILES);
    for socket in sockets.filter(|path| path.extension().is_some_and(|ending| ending == "sock")) {
        let lock = socket.with_extension("lock");
        if lock.exists() && is_free(&lock) {
            found.stale.push(socket);
        } else if let Ok(Some(hello)) = tokio::time::timeout(HELLO_TIME, hello_at(&socket)).await
            && hello.version != VERSION
        {
            found.others.push((hello.pid, hello.version));
        }
    }
    found
}
