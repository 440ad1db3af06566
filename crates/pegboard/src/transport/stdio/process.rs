//! The life of a child process: looked up, started below a guard or in a group of its own, watched, and ended with
//! everything that came from it.

#[cfg(target_os = "linux")]
mod guarded;
mod pipes;
#[cfg(target_os = "linux")]
mod process_tree;
#[cfg(not(target_os = "linux"))]
#[path = "process/process_group.rs"]
mod process_tree;
mod program;
mod unguarded;

pub(super) use pipes::Pipes;
pub(crate) use program::SpawnError;

use std::{path::PathBuf, process::ExitStatus, time::Duration};

use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::environment::{self, Environment};
use crate::config::{Command, Limits};
use process_tree::ProcessTree;
use unguarded::Direct;

/// How long a killed process is waited for. Only one that hangs in the kernel takes longer.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A handle to a running child. A task owns the child itself.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pid: u32,
    who: Who,
    exit: watch::Receiver<Option<String>>,
    stop: CancellationToken,
}

/// What is known of the child.
#[derive(Debug, Clone)]
enum Who {
    Direct(ProcessTree),
    #[cfg(target_os = "linux")]
    Guarded(crate::shim::process_table::ProcessEntry),
}

impl Process {
    /// Starts the program. The look-up and the spawn run off the async threads, because a slow disk must not hold up other servers.
    pub(super) async fn spawn(
        command: &Command,
        limits: &Limits,
        tasks: &TaskTracker,
    ) -> Result<(Self, Pipes), SpawnError> {
        let (owned, pipes) = Owned::start(command, limits.stop).await?;
        let stop = CancellationToken::new();
        let (ended, exit) = watch::channel(None);
        let process = Self {
            pid: owned.pid(),
            who: owned.who(),
            exit,
            stop: stop.clone(),
        };
        let grace = limits.stop;
        tasks.spawn(async move {
            let mut owned = owned;
            let status = owned.watch(&stop, grace).await;
            // Whoever waits for it need not wait for what it left behind.
            ended.send_replace(Some(status));
            owned.clear().await;
        });
        Ok((process, pipes))
    }

    /// The server's own process.
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

    /// Whether it is on its way out, so that how it ended will be known soon.
    pub(super) fn is_ending(&self) -> bool {
        match &self.who {
            Who::Direct(tree) => tree.is_ending(),
            #[cfg(target_os = "linux")]
            Who::Guarded(server) => server.is_ending(),
        }
    }

    /// Asks for its end: its input must be closed by now, then it is asked, then it is killed.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// A child and all that came from it. All of it is killed when this is dropped before it has ended.
enum Owned {
    Direct(Box<Direct>),
    #[cfg(target_os = "linux")]
    Guarded(guarded::Server),
}

impl Owned {
    async fn start(command: &Command, grace: Duration) -> Result<(Self, Pipes), SpawnError> {
        #[cfg(target_os = "linux")]
        if crate::shim::is_hooked() {
            let (server, pipes) = guarded::Server::start(command, grace).await?;
            return Ok((Self::Guarded(server), pipes));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = grace;
        let wanted = command.clone();
        let (child, pipes) = off_thread(command, move || Direct::start(&wanted)).await?;
        Ok((Self::Direct(Box::new(child)), pipes))
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Direct(child) => child.pid(),
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => server.seen().pid,
        }
    }

    fn who(&self) -> Who {
        match self {
            Self::Direct(child) => Who::Direct(child.tree()),
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => Who::Guarded(server.seen()),
        }
    }

    /// Watches the child to its end, brings it about when asked to, and says how it ended.
    async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> String {
        match self {
            Self::Direct(child) => match child.watch(stop, grace).await {
                Ok(status) => describe(status),
                Err(error) => error.to_string(),
            },
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => match server.watch(stop, grace).await {
                Ok(status) => describe(status),
                Err(why) => why.to_string(),
            },
        }
    }

    /// Ends what the child has left behind.
    async fn clear(&mut self) {
        match self {
            Self::Direct(child) => child.clear().await,
            #[cfg(target_os = "linux")]
            Self::Guarded(server) => server.clear().await,
        }
    }
}

/// Runs blocking file system work on a blocking thread.
async fn off_thread<T: Send + 'static>(
    command: &Command,
    act: impl FnOnce() -> Result<T, SpawnError> + Send + 'static,
) -> Result<T, SpawnError> {
    tokio::task::spawn_blocking(act)
        .await
        .map_err(|error| SpawnError::Failed {
            program: command.program.clone(),
            why: error.to_string(),
        })?
}

/// A program's file and its variables, looked up.
fn look_up(command: &Command) -> Result<(PathBuf, Environment), SpawnError> {
    let environment = environment::build(command, std::env::vars_os());
    let program = program::find(&command.program, &environment)?;
    if let Some(cwd) = &command.cwd
        && !cwd.is_dir()
    {
        return Err(SpawnError::NoFolder { cwd: cwd.clone() });
    }
    Ok((program, environment))
}

fn describe(status: ExitStatus) -> String {
    match (signal_of(status), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
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
