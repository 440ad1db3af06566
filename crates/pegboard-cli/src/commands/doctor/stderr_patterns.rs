//! What programs write to stderr before they exit. It is the only evidence of some causes, and the server's own text, so it is read only after the
//! library has found that the process exited by itself.

use super::kinds::{self, Kind};

/// The patterns, with the finding of a process that wrote one of them. The first one counts.
static PATTERNS: &[(&Kind, &[&str])] = &[
    (
        &kinds::DOCKER_NOT_RUNNING,
        &[
            "Cannot connect to the Docker daemon",
            "docker daemon is not running",
            "Is the docker daemon running",
        ],
    ),
    (
        &kinds::PACKAGE_UNKNOWN,
        &[
            "code E404",
            "404 Not Found - GET",
            "No solution found",
            "was not found in the package registry",
            "ETARGET",
            "No matching distribution",
            "manifest unknown",
            "pull access denied",
        ],
    ),
    (
        &kinds::MODULE_MISSING,
        &[
            "ModuleNotFoundError",
            "No module named",
            "Cannot find module",
            "ERR_MODULE_NOT_FOUND",
            "Cannot find package",
        ],
    ),
];

/// The finding that the stderr of a process that exited by itself leads to.
pub(super) fn find(stderr: &str) -> Option<&'static Kind> {
    let is_in = |patterns: &[&str]| patterns.iter().any(|pattern| stderr.contains(pattern));
    PATTERNS
        .iter()
        .find(|(_, patterns)| is_in(patterns))
        .map(|(kind, _)| *kind)
}
