//! A server as a child of the guard process, which spawns it, reaps it and kills its descendants.

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
    blocking::run_blocking,
    descendants::Descendants,
    pipes::{self, Pipes},
    program,
    spawn_error::SpawnError,
};
use crate::{
    shim::{
        MissingPath, PackageCache, SandboxPlan, SandboxReport, ServerHandle, SpawnFailure, SpawnRequest,
        process_table::ProcessEntry,
    },
    transport::stdio::environment::Environment,
};
use pegboard_config::{Command, SandboxLevel};

/// How long to wait, after the grace period, for the guard to kill a server.
const GUARD_LEEWAY: Duration = Duration::from_secs(1);
/// How many guards are tried. A guard refuses a second server only where tags do not work.
const MAX_GUARDS: usize = 8;

/// A server process below a guard.
pub(super) struct GuardedProcess {
    handle: ServerHandle,
    entry: ProcessEntry,
    /// Held while the server runs.
    _package_cache: Option<PackageCache>,
    /// Whether it was killed without its guard. In that case the guard does not report that its descendants are gone.
    is_killed_directly: bool,
}

impl GuardedProcess {
    /// Spawns the program below the guard.
    pub(super) async fn spawn(
        command: &Command,
        grace: Duration,
        descendants: Descendants,
    ) -> Result<(Self, Pipes), SpawnError> {
        let failed = |why: String| SpawnError::Failed {
            program: command.program.clone(),
            why,
        };
        for _ in 0..MAX_GUARDS {
            let wanted = command.clone();
            let requested = run_blocking(command, move || request_spawn(&wanted, grace, descendants)).await?;
            let RequestedSpawn {
                mut handle,
                pipes,
                child_pipes,
                file,
                package_cache,
            } = requested;
            let started = handle.started().await;
            drop(child_pipes);
            match started {
                Ok(Some(entry)) => {
                    let process = Self {
                        handle,
                        entry,
                        _package_cache: package_cache,
                        is_killed_directly: false,
                    };
                    return Ok((process, pipes));
                }
                Ok(None) => {}
                Err(SpawnFailure::Os(error)) => return Err(SpawnError::from_io(&error, &file)),
                Err(SpawnFailure::Guard(why)) => return Err(failed(why)),
            }
        }
        Err(failed("no guard takes it".to_owned()))
    }

    /// The server's own process, as it was when it was spawned.
    pub(super) fn entry(&self) -> ProcessEntry {
        self.entry
    }

    /// What is reported about its sandbox, if it has one.
    pub(super) fn sandbox(&self) -> Option<SandboxReport> {
        self.handle.sandbox()
    }

    /// Waits until the server exits.
    pub(super) async fn exited(&mut self) -> Result<ExitStatus, Arc<str>> {
        self.handle.exited().await
    }

    /// The running processes of the server.
    pub(super) fn processes(&self) -> Vec<ProcessEntry> {
        self.handle.processes()
    }

    /// Kills the server and its descendants now.
    pub(super) fn kill(&self) {
        self.handle.kill();
    }

    /// Waits until the server exits, and stops it once `stop` is cancelled.
    pub(super) async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> Result<ExitStatus, Arc<str>> {
        tokio::select! {
            status = self.handle.exited() => status,
            () = stop.cancelled() => self.stop(grace).await,
        }
    }

    /// Waits `grace`, then has the guard stop the server. Kills it directly if the guard does not respond.
    async fn stop(&mut self, grace: Duration) -> Result<ExitStatus, Arc<str>> {
        if let Ok(status) = timeout(grace, self.handle.exited()).await {
            return status;
        }
        self.handle.stop();
        if let Ok(status) = timeout(grace + GUARD_LEEWAY, self.handle.exited()).await {
            return status;
        }
        self.is_killed_directly = true;
        let orphan_kill = self.handle.orphan_kill();
        let is_killed = tokio::task::spawn_blocking(move || orphan_kill.kill()).await;
        Err(match is_killed {
            Ok(true) => "its guard did not answer, so it was killed".into(),
            Ok(false) | Err(_) => "it could not be killed".into(),
        })
    }

    /// Waits until the guard has killed the descendants that outlived the server.
    pub(super) async fn kill_descendants(&mut self) {
        if !self.is_killed_directly {
            self.handle.cleared().await;
        }
    }
}

/// A server that a guard was requested to spawn.
struct RequestedSpawn {
    handle: ServerHandle,
    pipes: Pipes,
    /// Kept open until the guard has received them.
    child_pipes: pipes::ChildPipes,
    /// The executable, for error messages.
    file: PathBuf,
    package_cache: Option<PackageCache>,
}

fn request_spawn(command: &Command, grace: Duration, descendants: Descendants) -> Result<RequestedSpawn, SpawnError> {
    let (program, mut environment) = program::resolve(command)?;
    let file = command.cwd.as_deref().unwrap_or(Path::new("")).join(&program);
    let cwd = working_folder(command.cwd.as_deref());
    let (sandbox, package_cache) = sandbox_plan(command, &file, cwd.as_deref(), &environment)?;
    environment.extend(package_cache.iter().flat_map(PackageCache::variables));
    let request = SpawnRequest {
        grace,
        keeps_descendants: descendants == Descendants::Keep,
        rlimits: command.rlimits,
        sandbox,
        program,
        args: command.args.iter().map(|arg| arg.expose().into()).collect(),
        env: environment.into_iter().collect(),
        cwd,
    };
    if request.needs_launcher() {
        program::check(&file)?;
    }
    let send = || {
        let (pipes, child_pipes) = pipes::create()?;
        let streams = [
            child_pipes.stdin.as_fd(),
            child_pipes.stdout.as_fd(),
            child_pipes.stderr.as_fd(),
        ];
        let handle = ServerHandle::spawn(&request, streams)?;
        Ok((handle, pipes, child_pipes))
    };
    match send() {
        Ok((handle, pipes, child_pipes)) => Ok(RequestedSpawn {
            handle,
            pipes,
            child_pipes,
            file,
            package_cache,
        }),
        Err(error) => Err(SpawnError::from_io(&error, &file)),
    }
}

/// The sandbox of a server, and the package cache that it has in it.
fn sandbox_plan(
    command: &Command,
    file: &Path,
    cwd: Option<&Path>,
    environment: &Environment,
) -> Result<(Option<SandboxPlan>, Option<PackageCache>), SpawnError> {
    if command.sandbox.level == SandboxLevel::Off {
        return Ok((None, None));
    }
    let cwd = cwd.unwrap_or(Path::new("/"));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let files = program::executed_files(command, &cwd.join(file), cwd, environment);
    let plan = SandboxPlan::new(command, &files, cwd, home.as_deref())
        .map_err(|MissingPath(path)| SpawnError::NoSandboxPath { path })?;
    let package_cache = PackageCache::find(command, cwd, home.as_deref());
    let plan = plan.map(|plan| match &package_cache {
        Some(cache) => plan.with_write(cache.folder()),
        None => plan,
    });
    Ok((plan, package_cache))
}

/// The working folder of the server as an absolute path, because the guard has a different one.
fn working_folder(cwd: Option<&Path>) -> Option<PathBuf> {
    match (cwd, std::env::current_dir()) {
        (Some(cwd), Ok(ours)) => Some(ours.join(cwd)),
        (Some(cwd), Err(_)) => Some(cwd.to_owned()),
        (None, ours) => ours.ok(),
    }
}
