//! The life of a child process: looked up, started below a shim or in a group of its own, watched, and ended with everything
//! that came from it.

#[cfg(target_os = "linux")]
mod family;
#[cfg(not(target_os = "linux"))]
#[path = "process/group.rs"]
mod family;
mod program;

pub(crate) use program::SpawnError;

use std::{
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
    task::JoinError,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::environment::{self, Environment};
use crate::config::{Command, Limits};
use family::Family;

/// How much longer than its server a shim is waited for.
const SHIM_LEEWAY: Duration = Duration::from_secs(1);
/// How long a killed process is waited for. Only one that hangs in the kernel takes longer.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A handle to a running child. A task owns the child itself.
#[derive(Debug, Clone)]
pub(super) struct Process {
    family: Family,
    server: Arc<OnceLock<u32>>,
    child: u32,
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
        let failed = |why: String| SpawnError::Failed {
            program: command.program.clone(),
            why,
        };
        let (wanted, grace) = (command.clone(), limits.stop);
        let mut owned = tokio::task::spawn_blocking(move || start(&wanted, grace))
            .await
            .map_err(|error| failed(error.to_string()))??;
        let child = &mut owned.child;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("its streams are missing".to_owned()));
        };
        let stop = CancellationToken::new();
        let (ended, exit) = watch::channel(None);
        let process = Self {
            family: owned.leash.family.clone(),
            server: Arc::default(),
            child: owned.child.id().unwrap_or_default(),
            exit,
            stop: stop.clone(),
        };
        tasks.spawn(async move {
            let status = owned.watch(&stop, grace).await;
            // Whoever waits for it need not wait for what it left behind.
            ended.send_replace(Some(match &status {
                Ok(status) => describe(*status),
                Err(error) => error.to_string(),
            }));
            owned.leash.clear(&status).await;
        });
        Ok((process, Pipes { stdin, stdout, stderr }))
    }

    /// The server's own process; for the moment that a shim takes to start it, the shim.
    pub(super) fn pid(&self) -> u32 {
        match self.server.get() {
            Some(pid) => *pid,
            None => match self.family.server() {
                Some(pid) => *self.server.get_or_init(|| pid),
                None => self.child,
            },
        }
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
        self.family.is_ending()
    }

    /// Asks for its end: its input must be closed by now, then it is asked, then it is killed.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// A child and all that came from it. The leash is dropped first, while the child can still be told from others.
struct Owned {
    leash: Leash,
    child: Child,
}

impl Owned {
    fn new(family: Family, child: Child) -> Self {
        let leash = Leash {
            family,
            is_clear: false,
        };
        Self { leash, child }
    }

    /// Watches the child to its end, and says how it ended.
    async fn watch(&mut self, stop: &CancellationToken, grace: Duration) -> io::Result<ExitStatus> {
        tokio::select! {
            status = self.child.wait() => status,
            () = stop.cancelled() => self.end(grace).await,
        }
    }

    /// Waits `grace`, asks the whole family to end, waits again and kills it.
    async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let _ = self.leash.off_thread(Family::remember).await;
        if let Ok(status) = timeout(grace, self.child.wait()).await {
            return status;
        }
        let _ = self.leash.off_thread(Family::ask).await;
        let patience = if self.leash.family.has_shim() {
            grace + SHIM_LEEWAY
        } else {
            grace
        };
        if let Ok(status) = timeout(patience, self.child.wait()).await {
            return status;
        }
        let _ = self.leash.off_thread(Family::kill).await;
        // The family is gone by now where it can be found; elsewhere this ends the child at least.
        let _ = self.child.start_kill();
        timeout(LAST_WAIT, self.child.wait())
            .await
            .unwrap_or_else(|_| Err(io::Error::other("it could not be killed")))
    }
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

/// Ends the whole family when dropped, also when the runtime that watched it is gone.
#[derive(Debug)]
struct Leash {
    family: Family,
    is_clear: bool,
}

impl Leash {
    /// Does something with the family that looks at many processes, where it holds nobody up. It fails only when the
    /// runtime ends, and then the leash is dropped soon.
    async fn off_thread(&mut self, act: impl FnOnce(&mut Family) + Send + 'static) -> Result<(), JoinError> {
        let mut family = self.family.clone();
        let acting = tokio::task::spawn_blocking(move || {
            act(&mut family);
            family
        });
        self.family = acting.await?;
        Ok(())
    }

    /// Kills what the child has left behind. A shim has seen to that, unless it was killed itself.
    async fn clear(&mut self, status: &io::Result<ExitStatus>) {
        let by_shim = self.family.has_shim() && matches!(status, Ok(status) if signal_of(*status).is_none());
        self.is_clear = by_shim || self.off_thread(Family::kill).await.is_ok();
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.is_clear {
            self.family.abandon();
        }
    }
}

fn start(command: &Command, grace: Duration) -> Result<Owned, SpawnError> {
    let environment = environment::build(command, std::env::vars_os());
    let program = program::find(&command.program, &environment)?;
    if let Some(cwd) = &command.cwd
        && !cwd.is_dir()
    {
        return Err(SpawnError::NoFolder { cwd: cwd.clone() });
    }
    if crate::shim::is_hooked() {
        start_below_shim(command, program, &environment, grace)
    } else {
        start_directly(command, &program, &environment)
    }
}

/// Starts the program below a shim, which is not killed on drop: it is the one who kills.
#[cfg(target_os = "linux")]
fn start_below_shim(
    command: &Command,
    program: PathBuf,
    environment: &Environment,
    grace: Duration,
) -> Result<Owned, SpawnError> {
    program::check(&program, command.cwd.as_deref())?;
    let order = crate::shim::Order {
        parent: std::process::id(),
        grace,
        rlimits: command.rlimits,
        program: program.into(),
        args: command.args.iter().map(|arg| arg.expose().into()).collect(),
    };
    let child = spawn(order.command(), command, environment).map_err(|error| SpawnError::Failed {
        program: command.program.clone(),
        why: format!("this program could not be started again to guard it: {error}"),
    })?;
    let family = Family::of(child.id().unwrap_or_default(), family::Root::Shim);
    Ok(Owned::new(family, child))
}

#[cfg(not(target_os = "linux"))]
fn start_below_shim(
    command: &Command,
    program: PathBuf,
    environment: &Environment,
    _grace: Duration,
) -> Result<Owned, SpawnError> {
    start_directly(command, &program, environment)
}

/// Starts the program as the leader of a process group.
fn start_directly(command: &Command, program: &Path, environment: &Environment) -> Result<Owned, SpawnError> {
    let mut direct = tokio::process::Command::new(program);
    direct
        .args(command.args.iter().map(crate::secret::Secret::expose))
        .kill_on_drop(true);
    #[cfg(unix)]
    direct.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let (name, value) = family::mark();
        let mut environment = environment.clone();
        environment.insert(name.into(), value.clone().into());
        let child = spawn(direct, command, &environment).map_err(|error| SpawnError::from_io(&error, program))?;
        let pid = child.id().unwrap_or_default();
        // A limit that could not be lowered is no reason not to serve.
        if let Err(error) = crate::shim::rlimits::set_for(pid, &command.rlimits) {
            tracing::warn!(%error, "the limits of the process could not be set");
        }
        let mark = format!("{name}={value}");
        Ok(Owned::new(Family::of(pid, family::Root::Server { mark }), child))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let child = spawn(direct, command, environment).map_err(|error| SpawnError::from_io(&error, program))?;
        Ok(Owned::new(Family::of(child.id().unwrap_or_default()), child))
    }
}

fn spawn(mut spawn: tokio::process::Command, command: &Command, environment: &Environment) -> io::Result<Child> {
    if let Some(cwd) = &command.cwd {
        spawn.current_dir(cwd);
    }
    spawn
        .env_clear()
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}
