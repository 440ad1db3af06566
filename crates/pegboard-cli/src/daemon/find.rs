//! Finds the daemon that serves the config of a command, or starts it.

use std::{cmp::Ordering, io::IsTerminal as _, path::Path, time::Duration};

use pegboard::deadline::Deadline;

use super::{
    client::{Greeting, RunningDaemon, greet},
    dialer::connect,
    folder,
    hello::{Hello, VERSION},
    http,
    identity::{Identity, config_digest},
    lock::is_free,
    program_file::ProgramFile,
    socket::{lock_path, socket_path},
    start::Starter,
    version_order,
    working_folder::{find_bound_to_folder, working_folder},
};
use crate::{
    cli::Global,
    output::Output,
    settings::{Settings, here, is_pending},
    signals::Signals,
};

/// How long a daemon may take to say who it is. Servers may not run twice because the machine is busy, so only one that is stopped or hangs is
/// this slow. Then the command does its work itself.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// How long a daemon may take to connect its servers after a sign-in.
const SIGN_IN_TIME: Duration = Duration::from_secs(12);

/// How long a daemon may take to start, and to end if another takes its place.
const START_TIME: Duration = Duration::from_secs(10);

/// How long a command waits for a daemon that holds the place and does not listen: it starts or stops.
const CHANGE_TIME: Duration = Duration::from_secs(1);

/// How often a daemon that starts is looked for.
const POLL: Duration = Duration::from_millis(5);

/// How long a daemon in the background stays without a client, unless the command that starts it says otherwise.
pub(crate) const IDLE: Duration = Duration::from_secs(600);

/// How much a file system may round the times of its files.
const ROUNDING: Duration = Duration::from_millis(20);

/// What is at the place of a daemon.
enum DaemonState {
    Daemon(RunningDaemon),
    /// One in the background whose program is older than that of this command.
    Outdated(RunningDaemon),
    /// One that this command must not use, or that does not answer. The user was told.
    Unusable,
    Nothing,
}

/// Why a command must not use a daemon.
enum Difference {
    /// The daemon is of an older program.
    Outdated(String),
    Config,
    Other(String),
}

/// Finds the daemon for a command, if one serves the same config with the same version of the program. The limit is the time that the command
/// has for everything.
pub(crate) async fn find(
    global: &Global,
    settings: &Settings,
    output: &Output,
    limit: Deadline,
) -> Option<RunningDaemon> {
    match look(global, settings, output, limit).await {
        DaemonState::Daemon(daemon) => Some(daemon),
        DaemonState::Outdated(daemon) => {
            output.note(&tell_outdated(&daemon));
            None
        }
        DaemonState::Unusable | DaemonState::Nothing => None,
    }
}

/// Finds the daemon for a command, or starts it in the background where commands do that.
pub(crate) async fn find_or_start(
    global: &Global,
    settings: &Settings,
    output: &Output,
    limit: Deadline,
) -> Option<RunningDaemon> {
    let old = match look(global, settings, output, limit).await {
        DaemonState::Daemon(daemon) => return Some(daemon),
        DaemonState::Unusable => return None,
        DaemonState::Outdated(old) if is_started_here(global, settings) => Some(old.pid()),
        DaemonState::Outdated(old) => {
            output.note(&tell_outdated(&old));
            return None;
        }
        DaemonState::Nothing if is_started_here(global, settings) => None,
        DaemonState::Nothing => return None,
    };
    let identity = Identity::for_command(global, settings);
    let starter = Starter::new(global, settings, &identity, IDLE, true);
    let starter = starter.map_err(|error| error.to_string());
    let starting = async { Some(async { start(&starter?, old, (CHANGE_TIME, limit)).await }.await) };
    let started = await_unless_interrupted(starting).await?;
    match started.and_then(|daemon| usable(daemon, settings)) {
        Ok(daemon) => {
            if std::io::stderr().is_terminal() {
                output.note(&tell_started(&daemon));
            }
            Some(daemon)
        }
        Err(why) => {
            output.note(&format!("the servers are started without a daemon: {why}"));
            None
        }
    }
}

fn tell_started(daemon: &RunningDaemon) -> String {
    format!(
        "started the daemon (process {}), in which the servers stay for the next commands; `pegboard daemon stop` ends it",
        daemon.pid()
    )
}

fn tell_outdated(daemon: &RunningDaemon) -> String {
    format!(
        "the daemon (process {}) runs an older program, so the servers are started without it; `pegboard daemon restart` replaces it",
        daemon.pid()
    )
}

/// Finds the daemon of a host, or starts it. It is started again whenever it has ended.
pub(crate) async fn find_or_start_lasting(
    global: &Global,
    settings: &Settings,
    output: &Output,
    idle: Duration,
    limit: Deadline,
) -> Option<RunningDaemon> {
    if !is_wanted(global) || !settings.loaded.config.daemon || settings.demo_note().is_some() {
        return find(global, settings, output, limit).await;
    }
    let identity = Identity::for_command(global, settings);
    let starter = match Starter::new(global, settings, &identity, idle, false) {
        Ok(starter) => starter,
        Err(error) => {
            output.note(&format!("no daemon can be started: {error}"));
            return None;
        }
    };
    let old = match look(global, settings, output, limit).await {
        DaemonState::Daemon(found) => return Some(found.with_starter(starter)),
        DaemonState::Unusable => return None,
        DaemonState::Outdated(old) => Some(old.pid()),
        DaemonState::Nothing => None,
    };
    if let Some(problem) = folder_problem(global, settings) {
        output.note(&format!("the servers are started without a daemon: {problem}"));
        return None;
    }
    let started = start(&starter, old, (START_TIME, limit)).await;
    match started.and_then(|daemon| usable(daemon, settings)) {
        Ok(daemon) => Some(daemon.with_starter(starter)),
        Err(why) => {
            output.note(&format!(
                "the daemon did not start, so the servers are started without it: {why}"
            ));
            None
        }
    }
}

/// Starts the daemon of a config anew, in place of the one with this process id if there is one. Fails with the reason.
pub(super) async fn start_anew(
    global: &Global,
    settings: &Settings,
    old: Option<&Hello>,
    limit: Deadline,
) -> Result<RunningDaemon, String> {
    let identity = Identity::for_command(global, settings);
    let idle = old.and_then(|old| old.idle_ms).map_or(IDLE, Duration::from_millis);
    let starter = Starter::new(global, settings, &identity, idle, true).map_err(|error| error.to_string())?;
    start(&starter, old.map(|old| old.pid), (START_TIME, limit)).await
}

/// Starts a daemon, in place of the one with the process id `old` if there is one, and waits until it answers. One that is stopping at its place
/// is waited for until `patience` is over. Fails with the reason.
async fn start(
    starter: &Starter,
    old: Option<u32>,
    (patience, limit): (Duration, Deadline),
) -> Result<RunningDaemon, String> {
    let folder = folder::open(true).map_err(|error| error.to_string())?;
    let (socket, lock) = (
        socket_path(&folder, starter.identity()),
        lock_path(&folder, starter.identity()),
    );
    let mut starting = starter.start_in_place_of(old).map_err(|error| error.to_string())?;
    let is_other = |daemon: &RunningDaemon| Some(daemon.pid()) != old;
    let begun = tokio::time::Instant::now();
    let answering = async {
        loop {
            match greet(&socket).await {
                Greeting::Daemon(daemon) if is_other(&daemon) => return Ok(*daemon),
                Greeting::Daemon(_) | Greeting::Refused => {}
                Greeting::Nothing if starting.has_ended() => match greet(&socket).await {
                    Greeting::Daemon(daemon) if is_other(&daemon) => return Ok(*daemon),
                    _ => return Err(starting.problem()),
                },
                Greeting::Nothing if begun.elapsed() > patience && starting.waits_for(&lock) => {
                    return Err("the one before is still stopping".to_owned());
                }
                Greeting::Nothing => {}
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let answered = tokio::time::timeout(START_TIME.min(limit.remaining()), answering).await;
    answered.unwrap_or_else(|_| Err("it does not answer".to_owned()))
}

/// A daemon that this command has started, or why it must not use it.
fn usable(daemon: RunningDaemon, settings: &Settings) -> Result<RunningDaemon, String> {
    match difference(&daemon.hello, settings) {
        None => Ok(daemon.started_here()),
        Some(difference) => Err(difference.to_string()),
    }
}

async fn look(global: &Global, settings: &Settings, output: &Output, limit: Deadline) -> DaemonState {
    if !is_wanted(global) || !settings.loaded.unreadable.is_empty() {
        return DaemonState::Nothing;
    }
    let Ok(folder) = folder::open(false) else {
        return DaemonState::Nothing;
    };
    let identity = Identity::for_command(global, settings);
    let socket = socket_path(&folder, &identity);
    if !socket.exists() {
        return DaemonState::Nothing;
    }
    let looking = async {
        match greet(&socket).await {
            Greeting::Daemon(daemon) => Some(compare(*daemon, settings, limit).await),
            Greeting::Refused | Greeting::Nothing => None,
        }
    };
    let (daemon, difference) =
        match tokio::time::timeout(HELLO_TIME.min(limit.remaining()), await_unless_interrupted(looking)).await {
            Ok(Some(found)) => found,
            // A daemon answers no process of its own servers.
            Ok(None) if !is_free(&lock_path(&folder, &identity)) && connect(&socket).await.is_ok() => {
                return DaemonState::Unusable;
            }
            Ok(None) => return DaemonState::Nothing,
            Err(_) => {
                output.note("the daemon does not answer, so the servers are started without it");
                return DaemonState::Unusable;
            }
        };
    match difference {
        None => DaemonState::Daemon(daemon),
        Some(Difference::Outdated(_)) if daemon.hello.background => DaemonState::Outdated(daemon),
        Some(difference) => {
            output.note(&format!("{difference}, so the servers are started without it"));
            DaemonState::Unusable
        }
    }
}

/// The daemon, and why this command must not use it. It reads its files again if one was changed since and this command has read the change.
async fn compare(daemon: RunningDaemon, settings: &Settings, limit: Deadline) -> (RunningDaemon, Option<Difference>) {
    let found = difference(&daemon.hello, settings);
    let (Some(Difference::Config), Some(read_at)) = (&found, daemon.hello.read_at) else {
        return (daemon, found);
    };
    let is_newer = |file: &String| {
        let changed = Path::new(file).metadata().and_then(|found| found.modified());
        changed.is_ok_and(|changed| pegboard::Timestamp::from(changed) + ROUNDING >= read_at)
    };
    if !settings.loaded.sources.iter().any(is_newer) {
        return (daemon, found);
    }
    let daemon = daemon.reload(HELLO_TIME.min(limit.remaining())).await;
    let found = difference(&daemon.hello, settings);
    (daemon, found)
}

/// Why a command must not use the daemon that says this of itself, if it must not.
fn difference(daemon: &Hello, settings: &Settings) -> Option<Difference> {
    let (pid, version) = (daemon.pid, &daemon.version);
    let versions = || format!("the daemon (process {pid}) is version {version} and this program is {VERSION}");
    match version_order::compare(version, VERSION) {
        Ordering::Less => return Some(Difference::Outdated(versions())),
        Ordering::Greater => return Some(Difference::Other(versions())),
        Ordering::Equal => {}
    }
    let program = ProgramFile::current();
    if daemon.background
        && let (Some(old), Some(new)) = (&daemon.program, program)
        && old.was_replaced_by(&new)
    {
        let message = format!("the program of the daemon (process {pid}) was replaced");
        return Some(Difference::Outdated(message));
    }
    if daemon.config != config_digest(&settings.loaded.config) {
        return Some(Difference::Config);
    }
    if daemon.folder == here() {
        return None;
    }
    let server = find_bound_to_folder(&settings.loaded.config)?;
    Some(Difference::Other(format!(
        "the daemon runs in {}, and the arguments of server `{server}` mean something else there (`cwd` sets its folder)",
        daemon.folder.display()
    )))
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Outdated(message) | Self::Other(message) => f.write_str(message),
            Self::Config => {
                f.write_str("the daemon has another content of the config, or other values of its variables")
            }
        }
    }
}

/// Whether a command starts a daemon for this config. It does so for servers of config files that other commands have as well.
fn is_started_here(global: &Global, settings: &Settings) -> bool {
    let config = &settings.loaded.config;
    let is_for_this_run = global.trust || global.servers.iter().any(|server| server.contains('='));
    let is_file = |source: &String| Path::new(source).is_file();
    let has_servers = config.servers.values().any(|server| server.enabled);
    is_wanted(global)
        && config.daemon
        && !is_in_ci()
        && !is_for_this_run
        && settings.demo_note().is_none()
        && has_servers
        && settings.loaded.unreadable.is_empty()
        && settings.loaded.sources.iter().all(is_file)
        && !config.misconfigured.values().any(is_pending)
        && folder::open(true).is_ok()
        && folder_problem(global, settings).is_none()
}

/// Why the servers of this config cannot be those of a daemon in the background: one of them does something else in another folder.
fn folder_problem(global: &Global, settings: &Settings) -> Option<String> {
    let folder = working_folder(global, settings);
    if folder == here() {
        return None;
    }
    let server = find_bound_to_folder(&settings.loaded.config)?;
    let folder = folder.display();
    Some(format!(
        "it would run in {folder}, and the arguments of server `{server}` mean something else there (`cwd` sets its folder)"
    ))
}

/// Whether the user allows the use of a daemon.
fn is_wanted(global: &Global) -> bool {
    // A trace is of the messages with the servers, not with the daemon.
    !global.no_daemon && !is_set("PEGBOARD_NO_DAEMON") && global.trace_wire.is_none()
}

/// Whether the command runs on a machine that builds and tests, where nothing may be left behind.
fn is_in_ci() -> bool {
    is_set("CI")
}

/// Whether a variable is set, and not to `0` or `false`.
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// Tells the daemon of a command that a sign-in was made or ended, and waits until its servers use that. Other daemons and programs with the same
/// tokens notice it by themselves.
pub(crate) async fn tell_of_sign_in(global: &Global, settings: &Settings, limit: Deadline) {
    let Ok(folder) = folder::open(false) else {
        return;
    };
    let socket = socket_path(&folder, &Identity::for_command(global, settings));
    let telling = async {
        let mut stream = connect(&socket).await?;
        http::get(&mut stream, "/local/sign-ins").await
    };
    // A daemon that does not answer is no failure of the command: the tokens are stored.
    let _ = tokio::time::timeout(SIGN_IN_TIME.min(limit.remaining()), telling).await;
}

/// Waits for an answer until a signal asks the command to end. The command hears the same signal when it goes on.
async fn await_unless_interrupted<T>(answer: impl Future<Output = Option<T>>) -> Option<T> {
    let Ok(mut signals) = Signals::listen() else {
        return answer.await;
    };
    tokio::select! {
        answer = answer => answer,
        () = signals.heard() => None,
    }
}
