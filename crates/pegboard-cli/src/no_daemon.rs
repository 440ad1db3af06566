//! Stands in for the user's daemon on systems without Unix sockets: there never is one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use pegboard::{
    Builder, Config, Reply, Timestamp,
    deadline::Deadline,
    journal::{CallJournal, JournalEntry},
};
use pegboard_daemon::Daemon;
use pegboard_gateway::{Listeners, Monitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    cli::Global,
    leftovers::Leftovers,
    logging::{LogLine, ServerLogs},
    output::Output,
    settings::{self, Complaint, Settings},
};

pub(crate) enum RunningDaemon {}

pub(crate) async fn find(_: &Global, _: &Settings, _: &Output, _: Deadline) -> Option<RunningDaemon> {
    std::future::ready(None).await
}

pub(crate) async fn tell_of_sign_in(_: &Global, _: &Settings, _: Deadline) {
    std::future::ready(()).await;
}

pub(crate) async fn leftovers() -> Leftovers {
    std::future::ready(Leftovers::default()).await
}

pub(crate) async fn find_or_start(_: &Global, _: &Settings, _: &Output, _: Deadline) -> Option<RunningDaemon> {
    std::future::ready(None).await
}

pub(crate) async fn find_or_start_lasting(
    _: &Global,
    _: &Settings,
    output: &Output,
    _: Duration,
    _: Deadline,
) -> Option<RunningDaemon> {
    output.note("this system has no daemon, so the servers are started without it");
    std::future::ready(None).await
}

/// What a daemon says of itself.
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) background: bool,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) folder: PathBuf,
    pub(crate) since: Option<Timestamp>,
    pub(crate) files: Vec<String>,
}

/// How many of a daemon's servers are ready.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct ServerCount {
    pub(crate) ready: usize,
    pub(crate) total: usize,
}

/// What a daemon says of itself and its servers.
pub(crate) struct DaemonReport {
    pub(crate) hello: Hello,
    pub(crate) servers: ServerCount,
    pub(crate) clients: usize,
}

/// A daemon of this user.
pub(crate) struct FoundDaemon {
    pub(crate) pid: u32,
    pub(crate) socket: PathBuf,
    pub(crate) log: Option<PathBuf>,
    pub(crate) is_ours: bool,
    pub(crate) report: Option<DaemonReport>,
}

impl FoundDaemon {
    pub(crate) async fn stop(&self, _: Duration) -> Result<(), String> {
        std::future::ready(Ok(())).await
    }
}

pub(crate) async fn all_daemons(_: &Global, _: &Settings) -> Result<Vec<FoundDaemon>, String> {
    std::future::ready(Ok(Vec::new())).await
}

pub(crate) async fn our_daemon(_: &Global, _: &Settings) -> Result<Option<FoundDaemon>, String> {
    std::future::ready(Ok(None)).await
}

pub(crate) async fn restart(
    _: &Global,
    _: &Settings,
    _: Option<&FoundDaemon>,
    _: &Output,
    _: Deadline,
) -> Result<u32, String> {
    std::future::ready(Err("this system has no daemon".to_owned())).await
}

pub(crate) fn our_log(_: &Global, _: &Settings) -> Option<PathBuf> {
    None
}

impl RunningDaemon {
    pub(crate) fn is_new(&self) -> bool {
        match *self {}
    }

    pub(crate) fn board(&self, config: Config) -> Builder {
        settings::board(config)
    }

    pub(crate) fn serving_board(&self, config: Config) -> Builder {
        settings::serving_board(config)
    }

    pub(crate) async fn has_ended(&self) -> bool {
        match *self {}
    }

    pub(crate) async fn explain_unknown(&self, _: Reply) -> Reply {
        match *self {}
    }

    pub(crate) fn pid(&self) -> u32 {
        match *self {}
    }

    pub(crate) async fn status(&self) -> Result<Value, String> {
        match *self {}
    }

    pub(crate) async fn dashboard_link(&self) -> Result<Value, String> {
        match *self {}
    }

    pub(crate) async fn logs(&self, _: &str, _: u64) -> Result<Vec<LogLine>, String> {
        match *self {}
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Identified;

impl Identified {
    pub(crate) fn new(_: &Settings, _: Timestamp, _: Started) -> Self {
        Self
    }

    pub(crate) fn applying(&self, _: &ConfigDigests) {}

    pub(crate) fn applied(&self, _: ConfigDigests, _: Timestamp) {}

    pub(crate) fn settled(&self) {}
}

/// How a daemon was started.
pub(crate) struct Started {
    pub(crate) log: Option<PathBuf>,
    pub(crate) idle: Option<Duration>,
}

/// How a process claims the place of a daemon.
pub(crate) enum Claim {
    User,
    Background { replaces: Option<u32> },
}

pub(crate) struct Identity;

impl Identity {
    pub(crate) fn for_daemon(_: &Global, _: &Settings) -> Self {
        Self
    }
}

pub(crate) struct ConfigDigests;

impl ConfigDigests {
    pub(crate) fn new(_: &Config) -> Self {
        Self
    }
}

pub(crate) fn adapt(_: &mut Config) {}

pub(crate) fn as_made_here(reply: Reply) -> Reply {
    reply
}

pub(crate) fn router(_: Identified, _: Daemon, _: Option<Arc<Untold>>, _: ServerLogs, _: Monitor) -> Router {
    Router::new()
}

#[derive(Debug)]
pub(crate) struct Detached;

impl Detached {
    pub(crate) fn new(_: PathBuf) -> Self {
        Self
    }

    pub(crate) async fn keep_log_short(&self) {
        std::future::pending().await
    }
}

pub(crate) enum CallsInFlight {}

impl CallJournal for CallsInFlight {
    fn begin(&self, _: &JournalEntry<'_>) -> u64 {
        match *self {}
    }

    fn end(&self, _: u64) {}
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Unfinished {}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Untold;

impl Untold {
    pub(crate) fn calls(&self) -> &[Unfinished] {
        &[]
    }
}

pub(crate) fn forget_without_daemon(_: &Global, _: &Settings, _: &[Unfinished]) {}

pub(crate) fn unfinished_without_daemon(_: &Global, _: &Settings) -> Vec<Unfinished> {
    Vec::new()
}

pub(crate) enum Occupied {}

pub(crate) enum NotOccupied {
    Refused(Complaint),
    Impossible(String),
}

pub(crate) async fn occupy(_: &Identity, _: Claim, _: impl Fn(String)) -> Result<Occupied, NotOccupied> {
    let why = "this system has no such sockets".to_owned();
    std::future::ready(Err(NotOccupied::Impossible(why))).await
}

impl Occupied {
    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn take_journal(&mut self) -> Option<(CallsInFlight, Arc<Untold>)> {
        match *self {}
    }

    pub(crate) fn listen(self, _: Listeners) -> (DaemonSocket, Listeners) {
        match self {}
    }
}

/// The place of a daemon.
pub(crate) enum DaemonSocket {}

impl DaemonSocket {
    pub(crate) fn is_there(&self) -> bool {
        match *self {}
    }
}

/// The user's own token for the gateways that the user runs, in the user's folder of state.
pub(crate) struct OwnerToken {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl OwnerToken {
    /// The user's token, which is made if there is none.
    pub(crate) fn open_or_create() -> Result<Self, String> {
        let folder = crate::settings::state_folder().ok_or("there is no folder for it")?;
        let path = folder.join("owner.token");
        let failed = |error: std::io::Error| format!("{} cannot be used: {error}", path.display());
        if let Ok(text) = std::fs::read_to_string(&path)
            && !text.trim().is_empty()
        {
            return Ok(Self {
                text: text.trim().to_owned(),
                path,
            });
        }
        let text = random_token().map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&folder).map_err(failed)?;
        std::fs::write(&path, &text).map_err(failed)?;
        Ok(Self { path, text })
    }
}

/// A new token.
pub(crate) fn random_token() -> Result<String, getrandom::Error> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(format!("pgb_{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The id of the user, which does not tell users apart here: each needs the token.
pub(crate) fn user_id() -> u32 {
    0
}
