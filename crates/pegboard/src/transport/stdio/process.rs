//! The life of a child process: looked up, started in a group of its own, watched, and ended with everything it started.

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::environment::{self, Environment};
use crate::{
    config::{Command, Limits},
    hint::Hint,
};

/// A handle to a running child. A task owns the child itself.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pid: u32,
    exit: watch::Receiver<Option<String>>,
    stop: CancellationToken,
}

/// The child's three streams.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Process {
    /// Starts the program. The look-up and the spawn run off the async threads, because a slow disk must not hold up other servers.
    pub(super) async fn spawn(
        command: &Command,
        limits: &Limits,
        tasks: &TaskTracker,
    ) -> Result<(Self, Pipes), SpawnError> {
        let wanted = command.clone();
        let mut child = tokio::task::spawn_blocking(move || start(&wanted))
            .await
            .map_err(|error| SpawnError::Failed {
                program: command.program.clone(),
                why: error.to_string(),
            })??;
        let pid = child.id().unwrap_or_default();
        let pipes = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Pipes { stdin, stdout, stderr },
            _ => {
                return Err(SpawnError::Failed {
                    program: command.program.clone(),
                    why: "its streams are missing".to_owned(),
                });
            }
        };
        let stop = CancellationToken::new();
        let (ended, exit) = watch::channel(None);
        let grace = limits.stop;
        let leash = Leash(pid);
        tasks.spawn({
            let stop = stop.clone();
            async move {
                let status = own(&mut child, &stop, grace, &leash).await;
                drop(leash);
                ended.send_replace(Some(status));
            }
        });
        Ok((Self { pid, exit, stop }, pipes))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end of the process and says how it ended.
    pub(super) async fn exited(&self) -> String {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or_default(),
            Err(_) => "it is not watched any more".to_owned(),
        }
    }

    /// Asks for its end: its input must be closed by now, then it is asked, then it is killed.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// Watches the child to its end. When asked to stop it, waits `grace`, sends TERM, waits again and kills.
async fn own(child: &mut Child, stop: &CancellationToken, grace: Duration, leash: &Leash) -> String {
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop.cancelled() => match tokio::time::timeout(grace, child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                leash.ask();
                match tokio::time::timeout(grace, child.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        leash.kill();
                        child.wait().await
                    }
                }
            }
        },
    };
    match status {
        Ok(status) => describe(status),
        Err(error) => error.to_string(),
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Ends the whole process group when dropped, also when the runtime that watched it is gone.
#[derive(Debug)]
struct Leash(u32);

impl Leash {
    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.0).ok().and_then(rustix::process::Pid::from_raw) {
            // The only likely error is that the group is gone already.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn ask(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(command: &Command) -> Result<Child, SpawnError> {
    let environment = environment::build(command, std::env::vars_os());
    let program = find(&command.program, &environment)?;
    let mut spawn = tokio::process::Command::new(&program);
    spawn
        .args(command.args.iter().map(crate::secret::Secret::expose))
        .env_clear()
        .envs(&environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    spawn.process_group(0);
    if let Some(cwd) = &command.cwd {
        if !cwd.is_dir() {
            return Err(SpawnError::NoFolder { cwd: cwd.clone() });
        }
        spawn.current_dir(cwd);
    }
    spawn.spawn().map_err(|error| SpawnError::from_io(&error, &program))
}

/// The program's file. A name without a slash is looked up on the child's `PATH`, not on ours.
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

    fn from_io(error: &io::Error, program: &Path) -> Self {
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
