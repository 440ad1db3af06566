//! Refuses config files that are pipes.

use std::path::Path;

use pegboard::{Loaded, Problem};
use serde_json::json;

/// Whether a path names a pipe, for which a program could wait for ever. Those of the shell, which has just opened them, have their places.
#[cfg(unix)]
pub(super) fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    let is_of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    !is_of_shell && path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
pub(super) fn is_pipe(_path: &Path) -> bool {
    false
}

/// Adds a file that is not read to what was loaded.
pub(super) fn refuse(loaded: &mut Loaded, path: &Path, why: &str) {
    let file = path.display().to_string();
    let problem = json!({"severity": "error", "file": file, "line": null, "field": "", "message": why, "hint": null,
        "code": "config-unreadable"});
    loaded.problems.extend(serde_json::from_value::<Problem>(problem));
    loaded.unreadable.push(file);
}
