//! Finds the executable of a server's program.

use std::path::{Path, PathBuf};

use super::spawn_error::SpawnError;
use crate::transport::stdio::environment::{self, Environment};
use pegboard_config::Command;

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

/// Interpreters that get a script as an argument. The name may end with a version: `python3.12`.
#[cfg(target_os = "linux")]
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "deno", "java", "node", "nodejs", "perl", "php", "python", "ruby", "sh", "tsx",
];
#[cfg(target_os = "linux")]
const SCRIPTS: &[&str] = &[
    "cjs", "jar", "js", "mjs", "mts", "php", "pl", "py", "pyz", "rb", "sh", "ts",
];
/// The most interpreters of interpreters that the kernel executes.
#[cfg(target_os = "linux")]
const MAX_INTERPRETERS: usize = 4;

/// The files that a command executes in `cwd`: its executable, the interpreters of that, and the script among its arguments.
#[cfg(target_os = "linux")]
pub(super) fn executed_files(command: &Command, file: &Path, cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    let mut files = vec![file.to_owned()];
    for _ in 0..MAX_INTERPRETERS {
        let interpreter = files.last().and_then(|file| executed_interpreter(file, environment));
        // A folder would be opened as a whole.
        let Some(interpreter) = interpreter.filter(|file| file.is_file()) else {
            break;
        };
        files.push(interpreter);
    }
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|end: char| end.is_ascii_digit() || end == '.');
    if INTERPRETERS.contains(&name) {
        let args = command.args.iter().map(|arg| cwd.join(arg.expose()));
        files.extend(args.filter(|file| is_script(file)).find(|file| file.is_file()));
    }
    files
}

#[cfg(target_os = "linux")]
fn is_script(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| SCRIPTS.contains(&extension))
}

/// The interpreter of a script. If that is `env`, the program that `env` executes.
#[cfg(target_os = "linux")]
fn executed_interpreter(file: &Path, environment: &Environment) -> Option<PathBuf> {
    let line = first_line(file)?;
    let mut words = line.split_ascii_whitespace();
    let interpreter = Path::new(words.next()?);
    if interpreter.file_name()? != "env" {
        return Some(interpreter.to_owned());
    }
    let program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    find(program, environment).ok()
}

/// The interpreter in the `#!` line of a script.
#[cfg(target_os = "linux")]
fn interpreter(file: &Path) -> Option<PathBuf> {
    let line = first_line(file)?;
    line.split_ascii_whitespace().next().map(PathBuf::from)
}

/// The first line of a script, without `#!`.
#[cfg(target_os = "linux")]
fn first_line(file: &Path) -> Option<String> {
    use std::io::Read as _;
    // The kernel reads at most this much too.
    let mut start = Vec::with_capacity(256);
    std::fs::File::open(file).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    str::from_utf8(line).ok().map(str::to_owned)
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
