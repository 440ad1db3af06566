//! The file of a server's program, and why it could not be started.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::Environment;
use crate::hint::Hint;

/// The program's file. A name without a slash is looked up on the child's `PATH`, not on ours.
pub(super) fn find(program: &str, environment: &Environment) -> Result<PathBuf, SpawnError> {
    if program.contains(std::path::MAIN_SEPARATOR) || cfg!(windows) {
        return Ok(program.into());
    }
    let path = environment
        .get(std::ffi::OsStr::new("PATH"))
        .cloned()
        .unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders
        .iter()
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
        .ok_or_else(|| SpawnError::NotFound {
            program: program.to_owned(),
            searched: folders,
        })
}

/// Says in advance what the system would say when asked to start the program. A process that limits itself before it becomes
/// the program can only say so in its last words.
#[cfg(target_os = "linux")]
pub(super) fn check(file: &Path) -> Result<(), SpawnError> {
    let denied = |error: io::Error| Err(SpawnError::from_io(&error, file));
    if let Err(error) = file.metadata() {
        return denied(error);
    }
    if !is_executable(file) || rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return denied(rustix::io::Errno::ACCESS.into());
    }
    match interpreter(file) {
        Some(interpreter) if !interpreter.exists() => denied(io::ErrorKind::NotFound.into()),
        _ => Ok(()),
    }
}

/// The interpreter that a script names in its first line.
#[cfg(target_os = "linux")]
fn interpreter(file: &Path) -> Option<PathBuf> {
    use std::io::Read as _;
    // The system looks no further either.
    let mut start = Vec::with_capacity(256);
    std::fs::File::open(file).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = str::from_utf8(line).ok()?;
    words.split_ascii_whitespace().next().map(PathBuf::from)
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("`{program}` was not found in {}", list(.searched))]
    NotFound { program: String, searched: Vec<PathBuf> },
    #[error("`{}` may not be executed: {why}", .program.display())]
    NotExecutable { program: PathBuf, why: String },
    #[error("the folder {} does not exist", .cwd.display())]
    NoFolder { cwd: PathBuf },
    #[error("`{program}` could not be started: {why}")]
    Failed { program: String, why: String },
}

impl SpawnError {
    /// Whether only another config can help.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::NotExecutable { .. } | Self::NoFolder { .. } => true,
            Self::Failed { .. } => false,
        }
    }

    pub(super) fn from_io(error: &io::Error, program: &Path) -> Self {
        let why = error.to_string();
        match error.kind() {
            io::ErrorKind::NotFound if !program.exists() => Self::NotFound {
                program: program.display().to_string(),
                searched: Vec::new(),
            },
            // The file is there: what is missing is the interpreter that its first line names.
            io::ErrorKind::NotFound => Self::NotExecutable {
                program: program.to_owned(),
                why: "the interpreter named in its first line does not exist".to_owned(),
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
            Self::NotFound { program, .. } => {
                format!("install `{program}`, give its absolute path in `command`, or set `env.PATH` of the server")
            }
            Self::NotExecutable { .. } => "check the file's permissions and its first line".to_owned(),
            Self::NoFolder { .. } => "create the folder or correct `cwd`".to_owned(),
            Self::Failed { .. } => {
                "check that the file is a program for this system, and that files and processes are left (`ulimit -n` and `-u`)"
                    .to_owned()
            }
        })
    }
}

fn list(folders: &[PathBuf]) -> String {
    match folders {
        [] => "the file system".to_owned(),
        folders => {
            let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
            format!("the folders of its PATH ({})", folders.join(", "))
        }
    }
}
