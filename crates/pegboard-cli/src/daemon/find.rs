//! Finds the daemon that serves the config of a command, or starts it.

use std::{cmp::Ordering, io::IsTerminal as _, path::Path, time::Duration};

use pegboard::deadline::Deadline;
use tokio::time::Instant;

use super::{
    changeover::{Changeover, Step, tell_too_long},
    client::{Greeting, RunningDaemon, greet},
    dialer::connect,
    folder,
    hello::{Hello, VERSION},
    http,
    identity::{Identity, config_digest},
    lock::is_free,
    program_file::ProgramFile,
    socket::{killed_serve, lock_path, socket_path},
    start::{End, Starter},
    version_order,
    working_folder::{find_bound_to_folder, working_folder},
};
use crate::{
    cli::Global,
    output::{self, Output},
    settings::{Settings, here, is_pending},
    signals::Signals,
};

/// How long a daemon may take to say who it is. Servers may not run twice because the machine is busy, so only one that is stopped or hangs is
/// this slow. Then the command does its work itself.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// How long a daemon may take to connect its servers after a sign-in.
const SIGN_IN_TIME: Duration = Duration::from_secs(12);

/// How long a daemon may take to start, once its place is free.
const START_TIME: Duration = Duration::from_secs(10);

/// How often a command starts a daemon that leaves the place to another one, which is gone when the command asks it.
const STARTS: u32 = 3;

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
    if let Err(error) = folder::open(true) {
        // Programs start their servers where there is no place for a daemon, such as in a container, and need not be told each time.
        if std::io::stderr().is_terminal() {
            output.note(&format!("the servers are started without a daemon, each time: {error}"));
        }
        return None;
    }
    let identity = Identity::for_command(global, settings);
    let killed = folder::open(false)
        .ok()
        .and_then(|folder| killed_serve(&folder, &identity));
    let starter = Starter::new(global, settings, &identity, IDLE, true);
    let starter = starter.map_err(|error| error.to_string());
    let starting = async { Some(async { start(&starter?, old, output, limit).await }.await) };
    let started = await_unless_interrupted(starting).await?;
    match started.and_then(|daemon| usable(daemon, settings)) {
        Ok(daemon) => {
            match killed {
                Some(killed) => output.say(&output::warning(&tell_killed(killed, &daemon))),
                None if std::io::stderr().is_terminal() => output.note(&tell_started(&daemon)),
                None => {}
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

fn tell_killed(serve: u32, daemon: &RunningDaemon) -> String {
    format!(
        "`pegboard serve` (process {serve}) is gone without having stopped, and nothing listens at its addresses; a daemon in the background \
         (process {}) was started for the commands of this user",
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
    let killed = folder::open(false)
        .ok()
        .and_then(|folder| killed_serve(&folder, &identity));
    let started = start(&starter, old, output, limit).await;
    match started.and_then(|daemon| usable(daemon, settings)) {
        Ok(daemon) => {
            if let Some(killed) = killed {
                output.say(&output::warning(&tell_killed(killed, &daemon)));
            }
            Some(daemon.with_starter(starter))
        }
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
    output: &Output,
    limit: Deadline,
) -> Result<RunningDaemon, String> {
    let identity = Identity::for_command(global, settings);
    let idle = old.and_then(|old| old.idle_ms).map_or(IDLE, Duration::from_millis);
    let starter = Starter::new(global, settings, &identity, idle, true).map_err(|error| error.to_string())?;
    start(&starter, old.map(|old| old.pid), output, limit).await
}

/// Starts a daemon, in place of the one with the process id `old` if there is one, and waits until it answers. One that is stopping at its place
/// is waited for. Fails with the reason.
async fn start(starter: &Starter, old: Option<u32>, output: &Output, limit: Deadline) -> Result<RunningDaemon, String> {
    let folder = folder::open(true).map_err(|error| error.to_string())?;
    let (socket, lock) = (
        socket_path(&folder, starter.identity()),
        lock_path(&folder, starter.identity()),
    );
    let start = || starter.start_in_place_of(old).map_err(|error| error.to_string());
    let is_other = |daemon: &RunningDaemon| Some(daemon.pid()) != old;
    let mut changeover = Changeover::new(&lock, output, limit);
    let (mut starting, mut starts) = (start()?, 1);
    let mut alone_since = Instant::now();
    loop {
        // Read first: what has ended by now may have left the place to a daemon that answers.
        let end = starting.end();
        let greeting = tokio::time::timeout(START_TIME.min(limit.remaining()), greet(&socket)).await;
        if let Ok(Greeting::Daemon(daemon)) = greeting
            && is_other(&daemon)
        {
            return Ok(*daemon);
        }
        if end == Some(End::Failed) {
            return Err(starting.problem());
        }
        match changeover.step(Some(starting.process())).await {
            Step::Waited => alone_since = Instant::now(),
            Step::TooLong(holder) => return Err(tell_too_long(holder)),
            Step::Free => match end {
                // The other one has ended meanwhile.
                Some(End::GaveWay) if starts < STARTS => (starting, starts) = (start()?, starts + 1),
                Some(_) => return Err(starting.problem()),
                None if alone_since.elapsed() >= START_TIME || limit.has_passed() => {
                    return Err("it does not answer".to_owned());
                }
                None => tokio::time::sleep(POLL).await,
            },
        }
    }
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
    let lock = lock_path(&folder, &identity);
    // One that starts or stops has its lock, with or without a socket.
    if !socket.exists() && is_free(&lock) {
        return DaemonState::Nothing;
    }
    let looking = async { Some(look_at(&socket, &lock, settings, output, limit).await) };
    let (daemon, difference) = match await_unless_interrupted(looking).await {
        Some(Found::Daemon(found)) => *found,
        Some(Found::Nothing) => return DaemonState::Nothing,
        // A daemon answers no process of its own servers.
        Some(Found::Refusing) | None => return DaemonState::Unusable,
        Some(Found::Silent) => {
            output.note("the daemon does not answer, so the servers are started without it");
            return DaemonState::Unusable;
        }
        Some(Found::Changing(holder)) => {
            let why = tell_too_long(holder);
            output.note(&format!("the servers are started without a daemon: {why}"));
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

/// What answers at the socket of a daemon.
enum Found {
    Daemon(Box<(RunningDaemon, Option<Difference>)>),
    Nothing,
    /// A daemon that does not answer this process.
    Refusing,
    /// Something that is connected and says nothing.
    Silent,
    /// The process with this id, which starts or stops for longer than a command waits.
    Changing(u32),
}

/// Asks the daemon at a socket who it is. One that starts or stops is waited for, because it may have servers of the command.
async fn look_at(socket: &Path, lock: &Path, settings: &Settings, output: &Output, limit: Deadline) -> Found {
    let mut changeover = Changeover::new(lock, output, limit);
    loop {
        let asking = async {
            match greet(socket).await {
                Greeting::Daemon(daemon) => Ok(compare(*daemon, settings, limit).await),
                Greeting::Refused => Err(Greeting::Refused),
                Greeting::Nothing => Err(Greeting::Nothing),
            }
        };
        match tokio::time::timeout(HELLO_TIME.min(limit.remaining()), asking).await {
            Ok(Ok(found)) => return Found::Daemon(Box::new(found)),
            Ok(Err(Greeting::Refused)) if !is_free(lock) && connect(socket).await.is_ok() => return Found::Refusing,
            Ok(Err(Greeting::Refused)) => return Found::Nothing,
            Err(_) => return Found::Silent,
            Ok(Err(_)) => match changeover.step(None).await {
                Step::Free => return Found::Nothing,
                Step::Waited => {}
                Step::TooLong(holder) => return Found::Changing(holder),
            },
        }
    }
}

/// The daemon, and why this command must not use it. It reads its files again if one was changed since and this command has read the change. One
/// that is applying the config of this command is used: servers that do not change are as they were, and the command waits for the others.
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
    let config = config_digest(&settings.loaded.config);
    if daemon.config != config && daemon.applying.as_ref() != Some(&config) {
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
