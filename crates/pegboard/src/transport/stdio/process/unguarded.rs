//! A child of this program itself, which leads a process group: without the hook, and on systems other than Linux.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{process::Child, task::JoinError, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    LAST_WAIT, SpawnError, look_up,
    pipes::{self, Pipes},
    process_tree::{self, ProcessTree},
};
use crate::config::Command;

/// A child and all that came from it. The leash is dropped first, while the child can still be told from others.
pub(super) struct Direct {
    leash: KillOnDrop,
    child: Child,
}

impl Direct {
    /// Starts the program as the leader of a process group.
    pub(super) fn start(command: &Command) -> Result<(Self, Pipes), SpawnError> {
        let (program, mut environment) = look_up(command)?;
        let failed = |error: &io::Error| SpawnError::from_io(error, &program);
        let mut direct = tokio::process::Command::new(&program);
        direct
            .args(command.args.iter().map(crate::secret::Secret::expose))
            .kill_on_drop(true);
        #[cfg(unix)]
        direct.process_group(0);
        if let Some(cwd) = &command.cwd {
            direct.current_dir(cwd);
        }
        let mark = process_tree::mark(&mut environment);
        direct.env_clear().envs(&environment);
        let (child, pipes) = spawn(direct).map_err(|error| failed(&error))?;
        let pid = child.id().unwrap_or_default();
        #[cfg(target_os = "linux")]
        // A limit that could not be lowered is no reason not to serve.
        if let Err(error) = crate::shim::rlimits::set_for(pid, &command.rlimits) {
            tracing::warn!(%error, "the limits of the process could not be set");
        }
        let leash = KillOnDrop {
            tree: ProcessTree::of(pid, mark),
            is_clear: false,
        };
        Ok((Self { leash, child }, pipes))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    pub(super) fn tree(&self) -> ProcessTree {
        self.leash.tree.clone()
    }

    /// Watches the child to its end, and says how it ended.
    pub(super) async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> io::Result<ExitStatus> {
        tokio::select! {
            status = self.child.wait() => status,
            () = stop.cancelled() => self.end(grace).await,
        }
    }

    /// Waits `grace`, asks the whole family to end, waits again and kills it.
    async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let _ = self.leash.off_thread(ProcessTree::remember).await;
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return status;
        }
        let _ = self.leash.off_thread(ProcessTree::ask).await;
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return status;
        }
        let _ = self.leash.off_thread(ProcessTree::kill).await;
        // The family is gone by now where it can be found; elsewhere this ends the child at least.
        let _ = self.child.start_kill();
        timeout(LAST_WAIT, self.child.wait())
            .await
            .unwrap_or_else(|_| Err(io::Error::other("it could not be killed")))
    }

    /// Kills what the child has left behind.
    pub(super) async fn clear(&mut self) {
        self.leash.is_clear = self.leash.off_thread(ProcessTree::kill).await.is_ok();
    }
}

#[cfg(target_os = "linux")]
fn spawn(mut command: tokio::process::Command) -> io::Result<(Child, Pipes)> {
    let (pipes, ends) = pipes::pair()?;
    let child = command
        .stdin(Stdio::from(ends.stdin))
        .stdout(Stdio::from(ends.stdout))
        .stderr(Stdio::from(ends.stderr))
        .spawn()?;
    Ok((child, pipes))
}

#[cfg(not(target_os = "linux"))]
fn spawn(mut command: tokio::process::Command) -> io::Result<(Child, Pipes)> {
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

/// Ends the whole family when dropped, also when the runtime that watched it is gone.
#[derive(Debug)]
struct KillOnDrop {
    tree: ProcessTree,
    is_clear: bool,
}

impl KillOnDrop {
    /// Runs work that reads `/proc` for many processes on a blocking thread. Fails only when the runtime shuts down, which drops the leash
    /// too.
    async fn off_thread(&mut self, act: impl FnOnce(&mut ProcessTree) + Send + 'static) -> Result<(), JoinError> {
        let mut tree = self.tree.clone();
        let acting = tokio::task::spawn_blocking(move || {
            act(&mut tree);
            tree
        });
        self.tree = acting.await?;
        Ok(())
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if !self.is_clear {
            self.tree.kill();
        }
    }
}
