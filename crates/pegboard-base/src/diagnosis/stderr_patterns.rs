//! What programs write to stderr before they exit: the only evidence of some causes.
//!
//! It is text of the server, so it leads to hints and finer findings only after the process has exited by itself, and never changes the code of
//! a diagnosis.

/// What the last words of a process point to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StderrClue {
    /// Docker does not run.
    DockerNotRunning,
    /// The registry does not have the package or version.
    PackageUnknown,
    /// A module of the program is not installed.
    ModuleMissing,
    /// A file may not be accessed.
    FileDenied,
    /// A file does not exist.
    FileMissing,
    /// There is no network.
    NetworkDenied,
}

/// The programs that write the patterns of a clue about the start, without extensions and version numbers.
const PROGRAMS: &[(StderrClue, &[&str])] = &[
    (StderrClue::DockerNotRunning, &["docker", "docker-compose", "podman"]),
    (
        StderrClue::PackageUnknown,
        &[
            "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "uv", "uvx", "pip", "pipx", "docker", "podman",
        ],
    ),
    (
        StderrClue::ModuleMissing,
        &[
            "python", "pypy", "uv", "uvx", "pipx", "node", "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno",
            "tsx", "ts-node",
        ],
    ),
];

/// The patterns of each clue.
const PATTERNS: &[(StderrClue, &[&str])] = &[
    (
        StderrClue::DockerNotRunning,
        &[
            "Cannot connect to the Docker daemon",
            "docker daemon is not running",
            "Is the docker daemon running",
        ],
    ),
    (
        StderrClue::PackageUnknown,
        &[
            "code E404",
            "404 Not Found - GET",
            "No solution found when resolving",
            "was not found in the package registry",
            "ETARGET",
            "No matching distribution",
            "manifest unknown",
            "pull access denied",
        ],
    ),
    (
        StderrClue::ModuleMissing,
        &[
            "ModuleNotFoundError",
            "No module named",
            "Cannot find module",
            "ERR_MODULE_NOT_FOUND",
            "Cannot find package",
        ],
    ),
    (
        StderrClue::FileDenied,
        &[
            "EACCES",
            "ermission denied",
            "PermissionError",
            "EROFS",
            "ead-only file system",
        ],
    ),
    (StderrClue::FileMissing, &["ENOENT", "o such file"]),
    (
        StderrClue::NetworkDenied,
        &[
            "EPERM",
            "peration not permitted",
            "getaddrinfo",
            "EAI_AGAIN",
            "ENETUNREACH",
            "etwork is unreachable",
        ],
    ),
];

impl StderrClue {
    /// Whether one of these programs writes the patterns of this clue. Others use the same words for something else.
    pub fn is_about(self, programs: &[String]) -> bool {
        let known = PROGRAMS.iter().filter(|(clue, _)| *clue == self);
        known
            .flat_map(|(_, known)| known.iter())
            .any(|known| programs.iter().any(|program| program == known))
    }

    /// Whether the last words of a process that exited by itself have a pattern of this clue.
    pub fn is_in(self, stderr: &str) -> bool {
        let patterns = PATTERNS.iter().filter(|(clue, _)| *clue == self);
        patterns
            .flat_map(|(_, patterns)| patterns.iter())
            .any(|pattern| stderr.contains(pattern))
    }
}
