//! Why a program could not be started.

use std::{
    io,
    path::{Path, PathBuf},
};

use pegboard_base::hint::Hint;
use pegboard_mask::ServerMasker;

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("`{program}` was not found in {}", list(.searched))]
    NotFound {
        /// The program as the config names it, or its path.
        program: String,
        /// The folders of `PATH` that were searched.
        searched: Vec<PathBuf>,
    },
    /// The file exists but cannot be executed.
    #[error("`{}` may not be executed: {why}", .program.display())]
    NotExecutable {
        /// The path of the file.
        program: PathBuf,
        /// The error of the operating system.
        why: String,
    },
    /// The file exists, but the interpreter that its first line names does not.
    #[error("`{}` may not be executed: the interpreter named in its first line does not exist", .program.display())]
    NoInterpreter {
        /// The path of the file.
        program: PathBuf,
    },
    /// The working directory does not exist.
    #[error("the folder {} does not exist", .cwd.display())]
    NoFolder {
        /// The path from the config.
        cwd: PathBuf,
    },
    /// The config requires a sandbox that cannot be enforced.
    #[error("its sandbox `{level}` is not in force, so it was not started: {why}")]
    NoSandbox {
        /// The sandbox level from the config.
        level: &'static str,
        /// Why it cannot be enforced.
        why: String,
    },
    /// A path in the sandbox's settings does not exist.
    #[error("its sandbox names {}, which does not exist", .path.display())]
    NoSandboxPath {
        /// The missing path.
        path: PathBuf,
    },
    /// The process could not be started for another reason.
    #[error("`{program}` could not be started: {why}")]
    Failed {
        /// The program as the config names it, or its path.
        program: String,
        /// The error of the operating system or of the guard process.
        why: String,
    },
}

impl SpawnError {
    /// Whether a retry cannot help, only a change of the config.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::NotExecutable { .. }
            | Self::NoInterpreter { .. }
            | Self::NoFolder { .. }
            | Self::NoSandbox { .. }
            | Self::NoSandboxPath { .. } => true,
            Self::Failed { .. } => false,
        }
    }

    /// Masks secrets: a whole command line in `command` may contain one.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        if let Self::NotFound { program, .. } | Self::Failed { program, .. } = self {
            masker.hide(program);
        }
    }

    pub(super) fn from_io(error: &io::Error, program: &Path) -> Self {
        let why = error.to_string();
        match error.kind() {
            io::ErrorKind::NotFound if !program.exists() => Self::NotFound {
                program: program.display().to_string(),
                searched: Vec::new(),
            },
            // The file exists, so its interpreter is missing.
            io::ErrorKind::NotFound => Self::NoInterpreter {
                program: program.to_owned(),
            },
            io::ErrorKind::PermissionDenied => Self::NotExecutable {
                program: program.to_owned(),
                why,
            },
            _ => Self::Failed {
                program: program.display().to_string(),
                why,
            },
        }
    }
}

impl Hint for SpawnError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { searched, .. } if searched.is_empty() => "check the path in `command`".to_owned(),
            Self::NotFound { program, .. } if program.contains(char::is_whitespace) => {
                "write the program alone in `command`, and its arguments in `args`".to_owned()
            }
            Self::NotFound { program, .. } => {
                format!("install `{program}`, give its absolute path in `command`, or set `env.PATH` of the server")
            }
            Self::NotExecutable { .. } | Self::NoInterpreter { .. } => "check the file's permissions and its first line".to_owned(),
            Self::NoFolder { .. } => "create the folder or correct `cwd`".to_owned(),
            Self::NoSandbox { .. } => {
                "call `pegboard::shim()` first in `main`, or start the server without it by `sandbox.require = false`".to_owned()
            }
            Self::NoSandboxPath { .. } => {
                "create it, or correct `sandbox.read` and `sandbox.write` of the server".to_owned()
            }
            Self::Failed { .. } => {
                "check that the file is a program for this system, and that files and processes are left (`ulimit -n` and `-u`)"
                    .to_owned()
            }
        })
    }
}

/// How many folders of a PATH are named.
const SHOWN: usize = 3;

fn list(folders: &[PathBuf]) -> String {
    match folders {
        [] => "the file system".to_owned(),
        folders => {
            let first: Vec<_> = folders
                .iter()
                .take(SHOWN)
                .map(|folder| folder.display().to_string())
                .collect();
            match folders.len() - first.len() {
                0 => format!("the folders of its PATH ({})", first.join(", ")),
                more => format!("the folders of its PATH ({} and {more} more)", first.join(", ")),
            }
        }
    }
}
