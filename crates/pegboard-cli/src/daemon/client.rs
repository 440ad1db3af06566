//! Finds the daemon that serves the config of a command.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::{Builder, Config, Reply, deadline::Deadline};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    dialer::{connect, has_ended},
    folder,
    hello::{Hello, VERSION},
    http,
    identity::{Identity, config_digest},
    refusal::Refusal,
    remote,
    socket::socket_path,
    start::Starter,
};
use crate::{
    cli::Global,
    logging::LogLine,
    output::Output,
    settings::{self, Settings},
    signals::Signals,
};

/// How long a daemon may take to say who it is. Servers may not run twice because the machine is busy, so only one that is stopped or hangs is
/// this slow. Then the command does its work itself.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// How long a daemon may take to report its status, or why it refuses a tool.
const STATUS_TIME: Duration = Duration::from_secs(5);

/// How long a daemon may take to connect its servers after a sign-in.
const SIGN_IN_TIME: Duration = Duration::from_secs(12);

/// How long a daemon may take to start.
const START_TIME: Duration = Duration::from_secs(10);

/// How often a daemon that starts is looked for.
const POLL: Duration = Duration::from_millis(20);

/// A daemon that serves the config of this command.
#[derive(Debug, Clone)]
pub(crate) struct RunningDaemon {
    socket: PathBuf,
    hello: Hello,
    /// Starts it again if it has ended.
    starter: Option<Starter>,
}

/// What is at the place of a daemon.
enum DaemonState {
    Daemon(RunningDaemon),
    /// One that this command must not use, or that does not answer. The user was told.
    Unusable,
    Nothing,
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
        DaemonState::Unusable | DaemonState::Nothing => None,
    }
}

async fn look(global: &Global, settings: &Settings, output: &Output, limit: Deadline) -> DaemonState {
    if !is_wanted(global) || !settings.loaded.unreadable.is_empty() {
        return DaemonState::Nothing;
    }
    let Ok(folder) = folder::open(false) else {
        return DaemonState::Nothing;
    };
    let socket = socket_path(&folder, &Identity::for_command(global, settings));
    if !socket.exists() {
        return DaemonState::Nothing;
    }
    let daemon = match tokio::time::timeout(
        HELLO_TIME.min(limit.remaining()),
        await_unless_interrupted(greet(socket)),
    )
    .await
    {
        Ok(Some(daemon)) => daemon,
        Ok(None) => return DaemonState::Nothing,
        Err(_) => {
            output.note("the daemon does not answer, so the servers are started without it");
            return DaemonState::Unusable;
        }
    };
    match daemon.difference(settings) {
        None => DaemonState::Daemon(daemon),
        Some(difference) => {
            output.note(&format!("{difference}, so the servers are started without it"));
            DaemonState::Unusable
        }
    }
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

/// Whether the user allows the use of a daemon.
fn is_wanted(global: &Global) -> bool {
    let is_off = std::env::var_os("PEGBOARD_NO_DAEMON").is_some_and(|value| !value.is_empty() && value != "0");
    // A trace is of the messages with the servers, not with the daemon.
    !global.no_daemon && !is_off && global.trace_wire.is_none()
}

/// What the daemon at a socket says of itself; `None` if there is none.
pub(super) async fn hello_at(socket: &Path) -> Option<Hello> {
    Some(greet(socket.to_owned()).await?.hello)
}

/// Asks the daemon at a socket who it is; `None` if there is none.
async fn greet(socket: PathBuf) -> Option<RunningDaemon> {
    let mut stream = connect(&socket).await.ok()?;
    let response = http::get(&mut stream, "/local/hello").await.ok()?;
    let hello = serde_json::from_slice(&response.body).ok()?;
    Some(RunningDaemon {
        socket,
        hello,
        starter: None,
    })
}

impl RunningDaemon {
    /// Finds the daemon of a command, or starts it and waits until it answers.
    pub(crate) async fn find_or_start(
        global: &Global,
        settings: &Settings,
        output: &Output,
        idle: Duration,
        limit: Deadline,
    ) -> Option<Self> {
        let identity = Identity::for_command(global, settings);
        let starter = match Starter::new(global, &identity, idle) {
            Ok(starter) => starter,
            Err(error) => {
                output.note(&format!("no daemon can be started: {error}"));
                return None;
            }
        };
        match look(global, settings, output, limit).await {
            DaemonState::Daemon(found) => {
                return Some(Self {
                    starter: Some(starter),
                    ..found
                });
            }
            DaemonState::Unusable => return None,
            DaemonState::Nothing => {}
        }
        let folder = folder::open(true).ok()?;
        let socket = socket_path(&folder, &identity);
        let started = async {
            starter.start().ok()?;
            loop {
                if let Some(daemon) = greet(socket.clone()).await {
                    return Some(daemon);
                }
                tokio::time::sleep(POLL).await;
            }
        };
        match tokio::time::timeout(START_TIME.min(limit.remaining()), started).await {
            Ok(Some(daemon)) if daemon.difference(settings).is_none() => Some(Self {
                starter: Some(starter),
                ..daemon
            }),
            _ => {
                let log = starter.log().display();
                output.note(&format!(
                    "the daemon did not start, so the servers are started without it; its log is {log}"
                ));
                None
            }
        }
    }

    /// Why this command must not use the daemon, if it must not.
    fn difference(&self, settings: &Settings) -> Option<String> {
        let version = &self.hello.version;
        if version != VERSION {
            let pid = self.pid();
            return Some(format!(
                "the daemon (process {pid}) is version {version} and this program is {VERSION}"
            ));
        }
        (self.hello.config != config_digest(&settings.loaded.config))
            .then(|| "the daemon has another content of the config, or other values of its variables".to_owned())
    }

    /// A board whose servers are those of the daemon.
    pub(crate) fn board(&self, config: Config) -> Builder {
        remote::board(config, self.socket.clone(), self.starter.clone())
    }

    /// The same for a program that serves clients. It lists servers that are slow or down as an earlier run has seen them.
    pub(crate) fn serving_board(&self, config: Config) -> Builder {
        let rules = remote::passing_rules(&config);
        let builder = settings::with_tokens(self.board(config));
        match settings::catalogs_folder() {
            Some(folder) => builder.catalog_store_under(folder, rules),
            None => builder,
        }
    }

    /// Whether nothing listens at its place any more.
    pub(crate) async fn has_ended(&self) -> bool {
        connect(&self.socket).await.is_err_and(|error| has_ended(&error))
    }

    /// The process id of the daemon.
    pub(crate) fn pid(&self) -> u32 {
        self.hello.pid
    }

    /// The status of the daemon's board, or why there is none.
    pub(crate) async fn status(&self) -> Result<Value, String> {
        self.ask("/local/status").await
    }

    /// What a server of the daemon wrote after the line with this number.
    pub(crate) async fn logs(&self, server: &str, number: u64) -> Result<Vec<LogLine>, String> {
        self.ask(&format!("/local/logs/{server}/{number}")).await
    }

    /// The reply to a call of a tool that the command does not see, with the daemon's reason if it has one.
    pub(crate) async fn explain_unknown(&self, reply: Reply) -> Reply {
        let tool: String = reply.asked.bytes().map(|byte| format!("%{byte:02X}")).collect();
        match self.ask::<Refusal>(&format!("/local/refusals/{tool}")).await {
            Ok(refusal) => refusal.explain(reply),
            // The reply says already that the tool is not there.
            Err(_) => reply,
        }
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let asking = async {
            let mut stream = connect(&self.socket).await?;
            http::get(&mut stream, path).await
        };
        match tokio::time::timeout(STATUS_TIME, asking).await {
            Ok(Ok(response)) if response.status == 200 => {
                serde_json::from_slice(&response.body).map_err(|error| error.to_string())
            }
            Ok(Ok(response)) => Err(format!("it answers with status {}", response.status)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }
}
