//! Finds the executable of a server's program.

use std::path::{Path, PathBuf};

use super::spawn_error::SpawnError;
use crate::{
    config::Command,
    transport::stdio::environment::{self, Environment},
};

/// Finds the executable of a command and builds its environment.
pub(super) fn resolve(command: &Command) -> Result<(PathBuf, Environment), SpawnError> {
    let environment = environment::build(command, std::env::vars_os());
    let program = find(&command.program, &environment)?;
    if let Some(cwd) = &command.cwd
        && !cwd.is_dir()
    {
        return Err(SpawnError::NoFolder { cwd: cwd.clone() });
    }
    Ok((program, environment))
}

/// Finds the executable. A name without a slash is searched on the child's `PATH`, not on ours.
fn find(program: &str, environment: &Environment) -> Result<PathBuf, SpawnError> {
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

/// Fails as `exec` would. A process that sets resource limits before `exec` can report a failure only on stderr.
#[cfg(target_os = "linux")]
pub(super) fn check(file: &Path) -> Result<(), SpawnError> {
    let fail = |error: std::io::Error| Err(SpawnError::from_io(&error, file));
    if let Err(error) = file.metadata() {
        return fail(error);
    }
    if !is_executable(file) || rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return fail(rustix::io::Errno::ACCESS.into());
    }
    match interpreter(file) {
        Some(interpreter) if !interpreter.exists() => fail(std::io::ErrorKind::NotFound.into()),
        _ => Ok(()),
    }
}

/// The interpreter in the `#!` line of a script.
#[cfg(target_os = "linux")]
fn interpreter(file: &Path) -> Option<PathBuf> {
    use std::io::Read as _;
    // The kernel reads at most this much too.
    let mut start = Vec::with_capacity(256);
    std::fs::File::open(file).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    line.split_ascii_whitespace().next().map(PathBuf::from)
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
