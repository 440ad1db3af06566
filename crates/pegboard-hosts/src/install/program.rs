//! The path of the program that hosts start.

use std::path::PathBuf;

use crate::host_error::HostError;

/// The path of this program, as it is found on `PATH` if it is there: a link there outlives an update of what it links to.
pub fn find_program() -> Result<PathBuf, HostError> {
    let program = std::env::current_exe()
        .map_err(|error| HostError::unavailable(format!("the path of this program is not known: {error}")))?;
    let same = program.canonicalize().ok();
    let name = program.file_name().unwrap_or_default().to_owned();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|path| same.is_some() && path.canonicalize().ok() == same);
    Ok(found.unwrap_or(program))
}

/// Why a path will not be there for long.
pub(super) fn warning(path: &str) -> Option<String> {
    is_temporary(path).then(|| format!("{path} may be removed at any time; install the program, then run this again"))
}

/// Whether a program is in a folder that is cleared from time to time, as one that `npx` or `uvx` fetched is.
pub fn is_temporary(path: &str) -> bool {
    let is_cache = [
        "/_npx/",
        "\\_npx\\",
        "/.cache/uv/",
        "/uv/archive-",
        "/tmp/",
        "/target/debug/",
    ];
    is_cache.iter().any(|part| path.contains(part))
}
