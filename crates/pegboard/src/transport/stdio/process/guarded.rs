//! A server below a guard: the guard starts it, watches it, and ends it with all that came from it.

use std::{
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    SpawnError, look_up, off_thread,
    pipes::{self, Pipes},
    program,
};
use crate::{
    config::{Command, Rlimits},
    shim::{Guarded, NotStarted, SpawnRequest, process_table::ProcessEntry},
};

/// How much longer than a server needs its guard is waited for.
const LEEWAY: Duration = Duration::from_secs(1);
/// How many guards are asked. Only where processes cannot be told apart does one send us to the next.
const GUARDS: usize = 8;

/// A server below a guard.
pub(super) struct Server {
    guarded: Guarded,
    seen: ProcessEntry,
    /// Whether it was killed without its guard, which will not tell then that nothing is left of it.
    is_hunted: bool,
}

impl Server {
    /// Starts the program below the guard.
    pub(super) async fn start(command: &Command, grace: Duration) -> Result<(Self, Pipes), SpawnError> {
        let failed = |why: String| SpawnError::Failed {
            program: command.program.clone(),
            why,
        };
        for _ in 0..GUARDS {
            let wanted = command.clone();
            let ordered = off_thread(command, move || order(&wanted, grace)).await?;
            let Ordered {
                mut guarded,
                pipes,
                ends,
                file,
            } = ordered;
            let started = guarded.started().await;
            drop(ends);
            match started {
                Ok(Some(seen)) => {
                    let server = Self {
                        guarded,
                        seen,
                        is_hunted: false,
                    };
                    return Ok((server, pipes));
                }
                Ok(None) => {}
                Err(NotStarted::Failed(error)) => return Err(SpawnError::from_io(&error, &file)),
                Err(NotStarted::Unguarded(why)) => return Err(failed(why)),
            }
        }
        Err(failed("no guard takes it".to_owned()))
    }

    /// The server's own process, as it was when it was started.
    pub(super) fn seen(&self) -> ProcessEntry {
        self.seen
    }

    /// Watches the server to its end, and says how it ended.
    pub(super) async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> Result<ExitStatus, Arc<str>> {
        tokio::select! {
            status = self.guarded.exited() => status,
            () = stop.cancelled() => self.end(grace).await,
        }
    }

    /// Waits `grace`, then has the guard end the server, and does it without the guard if it must.
    async fn end(&mut self, grace: Duration) -> Result<ExitStatus, Arc<str>> {
        if let Ok(status) = timeout(grace, self.guarded.exited()).await {
            return status;
        }
        self.guarded.stop();
        if let Ok(status) = timeout(grace + LEEWAY, self.guarded.exited()).await {
            return status;
        }
        self.is_hunted = true;
        let hunt = self.guarded.hunt();
        let is_gone = tokio::task::spawn_blocking(move || hunt.kill()).await;
        Err(match is_gone {
            Ok(true) => "its guard did not answer, so it was killed".into(),
            Ok(false) | Err(_) => "it could not be killed".into(),
        })
    }

    /// Waits until nothing is left of it.
    pub(super) async fn clear(&mut self) {
        if !self.is_hunted {
            self.guarded.cleared().await;
        }
    }
}

/// A server that a guard was told to start.
struct Ordered {
    guarded: Guarded,
    pipes: Pipes,
    /// They are kept until the guard has them for sure.
    ends: pipes::Ends,
    /// The program's file, for what can be said of it.
    file: PathBuf,
}

fn order(command: &Command, grace: Duration) -> Result<Ordered, SpawnError> {
    let (program, environment) = look_up(command)?;
    let file = command.cwd.as_deref().unwrap_or(Path::new("")).join(&program);
    if command.rlimits != Rlimits::default() {
        program::check(&file)?;
    }
    let order = SpawnRequest {
        grace,
        rlimits: command.rlimits,
        program,
        args: command.args.iter().map(|arg| arg.expose().into()).collect(),
        env: environment.into_iter().collect(),
        cwd: folder(command.cwd.as_deref()),
    };
    let ordered = || {
        let (pipes, ends) = pipes::pair()?;
        let streams = [ends.stdin.as_fd(), ends.stdout.as_fd(), ends.stderr.as_fd()];
        let guarded = Guarded::order(&order, streams)?;
        Ok((guarded, pipes, ends))
    };
    match ordered() {
        Ok((guarded, pipes, ends)) => Ok(Ordered {
            guarded,
            pipes,
            ends,
            file,
        }),
        Err(error) => Err(SpawnError::from_io(&error, &file)),
    }
}

/// Where the server runs. The guard has a folder of its own, so it is told ours.
fn folder(cwd: Option<&Path>) -> Option<PathBuf> {
    match (cwd, std::env::current_dir()) {
        (Some(cwd), Ok(ours)) => Some(ours.join(cwd)),
        (Some(cwd), Err(_)) => Some(cwd.to_owned()),
        (None, ours) => ours.ok(),
    }
}
