//! The lifecycle of a child process: it is spawned below the guard or as our own child, watched, and stopped together with its descendants.

mod blocking;
mod descendants;
#[cfg(target_os = "linux")]
mod guarded;
mod pipes;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(not(target_os = "linux"))]
#[path = "process/process_group.rs"]
mod process_tree;
mod program;
mod raw;
mod spawn_error;
mod unguarded;

pub use pipes::{Pipes, StdinPipe};
pub use raw::RawProcess;
pub use spawn_error::SpawnError;

use std::{process::ExitStatus, time::Duration};

use tokio::sync::{oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use pegboard_base::log_event;

use crate::{shim::SandboxStatus, transport::wire_end::Exit};
use descendants::Descendants;
use pegboard_config::{Command, Limits, Sandbox, SandboxLevel};
use process_tree::ProcessTree;
use unguarded::UnguardedProcess;

/// Why a child process of this program has no sandbox.
#[cfg(target_os = "linux")]
const UNGUARDED: &str = "this program does not call `pegboard::shim()`";
#[cfg(not(target_os = "linux"))]
const UNGUARDED: &str = "this system is not Linux";

/// A handle to a child process. A task owns the child itself.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pid: u32,
    identity: ProcessIdentity,
    sandbox: SandboxState,
    exit: watch::Receiver<Option<Exit>>,
    stop: CancellationToken,
}

/// What is known about the sandbox of a child.
#[derive(Debug, Clone)]
enum SandboxState {
    /// None is requested.
    None,
    /// It was started without the one that was requested but not required.
    Lacking { requested: SandboxLevel, why: &'static str },
    #[cfg(target_os = "linux")]
    Reported(crate::shim::SandboxReport),
}

/// How the child is found in the process table.
#[derive(Debug, Clone)]
enum ProcessIdentity {
    Unguarded(ProcessTree),
    #[cfg(target_os = "linux")]
    Guarded(crate::shim::process_table::ProcessEntry),
}

impl Process {
    /// Spawns the program, whose life is a task of `tasks`. The lookup and the spawn run on a blocking thread, because a slow disk must not delay
    /// other servers. If this future is dropped meanwhile, the process is stopped, and `abandoned` waits for its end.
    pub(super) async fn spawn(
        command: &Command,
        limits: &Limits,
        tasks: &TaskTracker,
        abandoned: &TaskTracker,
    ) -> Result<(Self, Pipes), SpawnError> {
        let (answer, spawned) = oneshot::channel();
        let abandoned = abandoned.token();
        let task_ended = SpawnError::Failed {
            program: command.program.clone(),
            why: "the task that starts it has ended".to_owned(),
        };
        let (command, grace) = (command.clone(), limits.stop_timeout);
        // In the task, because a caller that gives up must not leave a process that nobody waits for.
        let life = async move {
            let (mut child, pipes) = match ChildProcess::spawn(&command, grace, Descendants::Kill).await {
                Ok(spawned) => spawned,
                Err(error) => {
                    // Nobody needs it if the caller has given up.
                    let _ = answer.send(Err(error));
                    return;
                }
            };
            let stop = CancellationToken::new();
            let (exited, exit) = watch::channel(None);
            let pid = child.pid();
            let process = Self {
                pid,
                identity: child.identity(),
                sandbox: child.sandbox(&command.sandbox),
                exit,
                stop: stop.clone(),
            };
            // An answer can be sent and still not be received.
            let (received, is_received) = oneshot::channel();
            let is_owned = answer.send(Ok((process, pipes, received))).is_ok() && is_received.await.is_ok();
            let _abandoned = match is_owned {
                true => None,
                false => {
                    stop.cancel();
                    Some(abandoned)
                }
            };
            let status = child.watch(&stop, grace).await;
            tracing::info!(name: log_event::PROCESS_ENDED, pid, %status, "the process has ended");
            // Published before the cleanup: waiters need the exit of the process only.
            exited.send_replace(Some(status));
            child.kill_descendants().await;
        };
        // The span names the server.
        tasks.spawn(life.in_current_span());
        let (process, pipes, received) = spawned.await.unwrap_or(Err(task_ended))?;
        // The task waits for this.
        let _ = received.send(());
        Ok((process, pipes))
    }

    /// The id of the server's own process.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Its sandbox, if one is requested.
    pub(super) fn sandbox(&self) -> Option<SandboxStatus> {
        match &self.sandbox {
            SandboxState::None => None,
            SandboxState::Lacking { requested, why } => {
                let mut status = SandboxStatus::from_requested(requested.as_str());
                status.in_force = Some(SandboxLevel::Off.as_str());
                status.missing = vec![(*why).to_owned()];
                Some(status)
            }
            #[cfg(target_os = "linux")]
            SandboxState::Reported(report) => Some(report.status()),
        }
    }

    /// Waits until the process exits and returns how it exited.
    pub(super) async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        let status = exit.wait_for(Option::is_some).await;
        let unwatched = || Exit::Unknown("it is not watched any more".to_owned());
        status.ok().and_then(|status| status.clone()).unwrap_or_else(unwatched)
    }

    /// Whether it is exiting, so that its exit status will be known soon.
    pub(super) fn is_exiting(&self) -> bool {
        match &self.identity {
            ProcessIdentity::Unguarded(tree) => tree.is_exiting(),
            #[cfg(target_os = "linux")]
            ProcessIdentity::Guarded(server) => server.is_exiting(),
        }
    }

    /// Stops it: after a grace period it gets SIGTERM, and after another one SIGKILL. Its stdin should be closed before, which makes most
    /// servers exit on their own.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// A child process and its descendants. They are killed if this is dropped before they have exited.
enum ChildProcess {
    Unguarded(Box<UnguardedProcess>),
    #[cfg(target_os = "linux")]
    Guarded(guarded::GuardedProcess),
}

impl ChildProcess {
    async fn spawn(command: &Command, grace: Duration, descendants: Descendants) -> Result<(Self, Pipes), SpawnError> {
        #[cfg(target_os = "linux")]
        if crate::shim::is_hooked() {
            let (server, pipes) = guarded::GuardedProcess::spawn(command, grace, descendants).await?;
            return Ok((Self::Guarded(server), pipes));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (grace, descendants);
        if command.sandbox.level != SandboxLevel::Off && command.sandbox.require {
            return Err(SpawnError::NoSandbox {
                level: command.sandbox.level.as_str(),
                why: UNGUARDED.to_owned(),
            });
        }
        let wanted = command.clone();
        let (child, pipes) = blocking::run_blocking(command, move || UnguardedProcess::spawn(&wanted)).await?;
        Ok((Self::Unguarded(Box::new(child)), pipes))
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Unguarded(child) => child.pid(),
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => server.entry().pid,
        }
    }

    fn identity(&self) -> ProcessIdentity {
        match self {
            Self::Unguarded(child) => ProcessIdentity::Unguarded(child.tree()),
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => ProcessIdentity::Guarded(server.entry()),
        }
    }

    fn sandbox(&self, requested: &Sandbox) -> SandboxState {
        let requested = requested.level;
        match self {
            _ if requested == SandboxLevel::Off => SandboxState::None,
            Self::Unguarded(_) => SandboxState::Lacking {
                requested,
                why: UNGUARDED,
            },
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => server.sandbox().map_or(SandboxState::None, SandboxState::Reported),
        }
    }

    /// Waits until the child exits, stops it once `stop` is cancelled, and returns how it exited.
    async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> Exit {
        match self {
            Self::Unguarded(child) => match child.watch(stop, grace).await {
                Ok(status) => describe(status),
                Err(error) => Exit::Unknown(error.to_string()),
            },
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => match server.watch(stop, grace).await {
                Ok(status) => describe(status),
                Err(why) => Exit::Unknown(why.to_string()),
            },
        }
    }

    /// Kills the descendants that outlived the child.
    async fn kill_descendants(&mut self) {
        match self {
            Self::Unguarded(child) => child.kill_descendants().await,
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => server.kill_descendants().await,
        }
    }
}

fn describe(status: ExitStatus) -> Exit {
    match (signal_of(status), status.code()) {
        (Some(signal), _) => Exit::Signal(signal),
        (None, Some(code)) => Exit::Code(code),
        (None, None) => Exit::Unknown(status.to_string()),
    }
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
