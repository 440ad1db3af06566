//! The daemons of this user, for `pegboard daemon`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::deadline::Deadline;
use serde::{Deserialize, Serialize};

use super::{
    client::ask,
    find::start_anew,
    folder::{self, FolderError},
    hello::Hello,
    identity::Identity,
    lock::holder_of,
    socket::lock_path,
    start::{log_of_socket, log_path},
    stop,
};
use crate::{cli::Global, output::Output, settings::Settings};

/// The most files of the folder that are looked at.
const MAX_FILES: usize = 1000;

/// How long one daemon may take to say how it is.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// What a daemon says of itself and its servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DaemonReport {
    #[serde(flatten)]
    pub(crate) hello: Hello,
    pub(crate) servers: ServerCount,
    pub(crate) clients: usize,
}

/// How many of a daemon's servers are ready.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ServerCount {
    pub(crate) ready: usize,
    pub(crate) total: usize,
}

/// A daemon of this user.
#[derive(Debug, Clone)]
pub(crate) struct FoundDaemon {
    pub(crate) pid: u32,
    pub(crate) socket: PathBuf,
    pub(crate) log: Option<PathBuf>,
    /// Whether it serves the config of this command.
    pub(crate) is_ours: bool,
    /// `None` if it does not answer: it is starting, stopping or hangs.
    pub(crate) report: Option<DaemonReport>,
}

/// The daemons of this user, that of this command's config first. Fails if the folder of their sockets cannot be used.
pub(crate) async fn all_daemons(global: &Global, settings: &Settings) -> Result<Vec<FoundDaemon>, String> {
    let folder = match folder::open(false) {
        Ok(folder) => folder,
        Err(error @ FolderError::Unsafe(_)) => return Err(error.to_string()),
        // No daemon has run yet.
        Err(FolderError::Missing(_)) => return Ok(Vec::new()),
    };
    let ours = lock_path(&folder, &Identity::for_command(global, settings));
    let entries = fs::read_dir(&folder).map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    let mut locks: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(MAX_FILES).collect();
    locks.retain(|path| path.extension().is_some_and(|ending| ending == "lock"));
    locks.sort_by_key(|path| (*path != ours, path.clone()));
    let found = locks.iter().map(|lock| look_at(lock, *lock == ours));
    Ok(futures_util::future::join_all(found)
        .await
        .into_iter()
        .flatten()
        .collect())
}

/// The daemon that serves the config of this command.
pub(crate) async fn our_daemon(global: &Global, settings: &Settings) -> Result<Option<FoundDaemon>, String> {
    match folder::open(false) {
        Ok(folder) => Ok(look_at(&lock_path(&folder, &Identity::for_command(global, settings)), true).await),
        Err(error @ FolderError::Unsafe(_)) => Err(error.to_string()),
        Err(FolderError::Missing(_)) => Ok(None),
    }
}

/// The daemon that holds a lock.
async fn look_at(lock: &Path, is_ours: bool) -> Option<FoundDaemon> {
    let pid = holder_of(lock)?;
    let socket = lock.with_extension("sock");
    let report: Option<DaemonReport> = ask(&socket, "/local/daemon", REPORT_TIME).await.ok();
    let log = match &report {
        Some(report) => report.hello.log.clone(),
        None => log_of_socket(&socket).filter(|log| log.is_file()),
    };
    Some(FoundDaemon {
        pid,
        socket,
        log,
        is_ours,
        report,
    })
}

impl FoundDaemon {
    /// Ends it and waits until it is gone. Fails with what is wrong.
    pub(crate) async fn stop(&self, limit: Duration) -> Result<(), String> {
        stop::end(&self.socket.with_extension("lock"), self.pid, limit).await
    }
}

/// Starts a daemon for the config of this command, in place of the one that was found. Returns its process id, or fails with what is wrong.
pub(crate) async fn restart(
    global: &Global,
    settings: &Settings,
    old: Option<&FoundDaemon>,
    output: &Output,
    limit: Deadline,
) -> Result<u32, String> {
    if let Some(stuck) = old.filter(|old| old.report.is_none()) {
        stuck.stop(limit.remaining()).await?;
    }
    let old = old.and_then(|old| old.report.as_ref()).map(|report| &report.hello);
    start_anew(global, settings, old, output, limit)
        .await
        .map(|daemon| daemon.pid())
}

/// The log of the daemon in the background that serves the config of this command, or did so.
pub(crate) fn our_log(global: &Global, settings: &Settings) -> Option<PathBuf> {
    log_path(&Identity::for_command(global, settings))
}
