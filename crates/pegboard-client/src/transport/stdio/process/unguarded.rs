//! A server as our own child process: without `pegboard::shim()`, and on systems other than Linux.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{process::Child, task::JoinError, time::timeout};
use tokio_util::sync::CancellationToken;

#[cfg(target_os = "linux")]
use super::pipes;
use super::{
    pipes::Pipes,
    process_tree::{self, ProcessTree},
    program,
    spawn_error::SpawnError,
};
use pegboard_config::Command;

/// How long to wait for a killed process. Only one that hangs in the kernel takes longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A child process and its descendants. The tree is dropped first, while the pid of the child cannot have been reused.
pub(super) struct UnguardedProcess {
    tree: KillOnDrop,
    child: Child,
}

impl UnguardedProcess {
    /// Spawns the program as the leader of a process group.
    pub(super) fn spawn(command: &Command) -> Result<(Self, Pipes), SpawnError> {
        let (program, mut environment) = program::resolve(command)?;
        let failed = |error: &io::Error| SpawnError::from_io(error, &program);
        let mut spawning = tokio::process::Command::new(&program);
        spawning
            .args(command.args.iter().map(pegboard_base::secret::Secret::expose))
            .kill_on_drop(true);
        #[cfg(unix)]
        spawning.process_group(0);
        if let Some(cwd) = &command.cwd {
            spawning.current_dir(cwd);
        }
        let tag = process_tree::tag(&mut environment);
        spawning.env_clear().envs(&environment);
        let (child, pipes) = spawn_piped(spawning).map_err(|error| failed(&error))?;
        let pid = child.id().unwrap_or_default();
        #[cfg(target_os = "linux")]
        // If a limit cannot be set, the server runs without it.
        if let Err(error) = crate::shim::rlimits::set_for(pid, &command.rlimits) {
            tracing::warn!(%error, "the limits of the process could not be set");
        }
        let tree = KillOnDrop {
            tree: ProcessTree::new(pid, tag),
            is_killed: false,
        };
        Ok((Self { tree, child }, pipes))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    pub(super) fn tree(&self) -> ProcessTree {
        self.tree.tree.clone()
    }

    /// Waits until the child exits.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits until the child exits, and stops it once `stop` is cancelled.
    pub(super) async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> io::Result<ExitStatus> {
        tokio::select! {
            status = self.child.wait() => status,
            () = stop.cancelled() => self.stop(grace).await,
        }
    }

    /// Waits `grace`, sends SIGTERM to the whole tree, waits again and kills it.
    async fn stop(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let _ = self.tree.run_blocking(ProcessTree::remember).await;
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return status;
        }
        let _ = self.tree.run_blocking(ProcessTree::terminate).await;
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return status;
        }
        let _ = self.tree.run_blocking(ProcessTree::kill).await;
        // Kills at least the child where the tree cannot be killed as a whole.
        let _ = self.child.start_kill();
        timeout(KILL_TIMEOUT, self.child.wait())
            .await
            .unwrap_or_else(|_| Err(io::Error::other("it could not be killed")))
    }

    /// Kills the descendants that outlived the child.
    pub(super) async fn kill_descendants(&mut self) {
        self.tree.is_killed = self.tree.run_blocking(ProcessTree::kill).await.is_ok();
    }
}

#[cfg(target_os = "linux")]
fn spawn_piped(mut command: tokio::process::Command) -> io::Result<(Child, Pipes)> {
    let (pipes, child_pipes) = pipes::create()?;
    let child = command
        .stdin(Stdio::from(child_pipes.stdin))
        .stdout(Stdio::from(child_pipes.stdout))
        .stderr(Stdio::from(child_pipes.stderr))
        .spawn()?;
    Ok((child, pipes))
}

#[cfg(not(target_os = "linux"))]
fn spawn_piped(mut command: tokio::process::Command) -> io::Result<(Child, Pipes)> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((child, Pipes { stdin, stdout, stderr })),
        _ => Err(io::Error::other("its streams are missing")),
    }
}

/// Kills the whole tree when dropped, even if the runtime that watched it is gone.
#[derive(Debug)]
struct KillOnDrop {
    tree: ProcessTree,
    is_killed: bool,
}

impl KillOnDrop {
    /// Runs work that reads `/proc` of many processes on a blocking thread. Fails only when the runtime shuts down, which drops `self` too.
    async fn run_blocking(&mut self, work: impl FnOnce(&mut ProcessTree) + Send + 'static) -> Result<(), JoinError> {
        let mut tree = self.tree.clone();
        let working = tokio::task::spawn_blocking(move || {
            work(&mut tree);
            tree
        });
        self.tree = working.await?;
        Ok(())
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if !self.is_killed {
            self.tree.kill();
        }
    }
}
