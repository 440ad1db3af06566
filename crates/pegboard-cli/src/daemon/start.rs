//! [`Starter`]: starts a daemon in the background.

use std::{
    ffi::OsString,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    detached::open_log,
    identity::Identity,
    lock::GAVE_WAY,
    working_folder::{project_file, working_folder},
};
use crate::{
    cli::Global,
    settings::{self, Settings},
};

/// How much of a log is searched for the reason why a daemon has not started.
const LAST_LINES: u64 = 16 * 1024;

/// How to start the daemon of a config.
#[derive(Debug, Clone)]
pub(crate) struct Starter {
    program: PathBuf,
    args: Vec<OsString>,
    folder: PathBuf,
    log: PathBuf,
    identity: Identity,
}

/// A daemon that is starting.
pub(super) struct Starting {
    process: u32,
    end: oneshot::Receiver<io::Result<ExitStatus>>,
    /// How it has ended, once that was read.
    ended: Option<End>,
    log: PathBuf,
    /// The length of the log before.
    written: u64,
}

impl Starter {
    /// Prepares the start of the daemon that the options name, which ends after `idle` without a client. Its servers start when they are needed
    /// if it `is_lazy`, or else when it starts.
    pub(super) fn new(
        global: &Global,
        settings: &Settings,
        identity: &Identity,
        idle: Duration,
        is_lazy: bool,
    ) -> io::Result<Self> {
        let log = log_path(identity).ok_or_else(|| io::Error::other("HOME is not set"))?;
        let mut args: Vec<OsString> = ["serve", "--socket-only", "--idle"].map(Into::into).into();
        args.push(format!("{}ms", idle.as_millis()).into());
        args.push("--detached".into());
        args.push(log.clone().into());
        if is_lazy {
            args.push("--lazy".into());
        }
        for config in config_files(global, settings) {
            args.push("--config".into());
            args.push(std::path::absolute(config)?.into());
        }
        for server in global.servers.iter().filter(|server| server.contains('=')) {
            args.push(format!("--server={server}").into());
        }
        if global.trust {
            args.push("--trust".into());
        }
        Ok(Self {
            program: std::env::current_exe()?,
            args,
            folder: working_folder(global, settings),
            log,
            identity: identity.clone(),
        })
    }

    /// The identity of the daemon.
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Starts it. If another daemon is faster, this one ends by itself.
    pub(super) fn start(&self) -> io::Result<()> {
        self.start_in_place_of(None).map(drop)
    }

    /// Starts it, in place of the daemon with this process id if there is one.
    pub(super) fn start_in_place_of(&self, old: Option<u32>) -> io::Result<Starting> {
        if let Some(folder) = self.log.parent() {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let log = open_log(&self.log).map_err(|error| {
            let message = format!("its log {} cannot be opened: {error}", self.log.display());
            io::Error::new(error.kind(), message)
        })?;
        let written = log.metadata()?.len();
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.folder);
        if let Some(old) = old {
            command.arg(format!("--replaces={old}"));
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let process = child.id();
        let (ended, end) = oneshot::channel();
        // Reaps the child, so that a daemon that exits first leaves no zombie.
        std::thread::Builder::new()
            .name("daemon".into())
            .spawn(move || ended.send(child.wait()))?;
        Ok(Starting {
            process,
            end,
            ended: None,
            log: self.log.clone(),
            written,
        })
    }
}

/// How a daemon has ended while it was starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It has left the place to another daemon.
    GaveWay,
    Failed,
}

impl Starting {
    /// How it has ended again, if it has.
    pub(super) fn end(&mut self) -> Option<End> {
        if self.ended.is_none() {
            self.ended = match self.end.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => None,
                Ok(Ok(status)) if status.code() == Some(GAVE_WAY as i32) => Some(End::GaveWay),
                Ok(_) | Err(oneshot::error::TryRecvError::Closed) => Some(End::Failed),
            };
        }
        self.ended
    }

    /// Its process id.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Why it has not started, in one line.
    pub(super) fn problem(&self) -> String {
        let log = self.log.display();
        match (self.last_error(), self.check_log()) {
            (Some(error), _) => format!("{error}; its log is {log}"),
            (None, Err(error)) => format!("its log {log} cannot be written: {error}"),
            (None, Ok(())) => format!("it has ended without a word; its log is {log}"),
        }
    }

    /// Fails if the log cannot be written, as on a full disk, so that it cannot have the reason.
    fn check_log(&self) -> io::Result<()> {
        open_log(&self.log)?.write_all(b"\n")
    }

    /// The first error that it has written.
    fn last_error(&self) -> Option<String> {
        let mut file = std::fs::File::open(&self.log).ok()?;
        file.seek(SeekFrom::Start(self.written)).ok()?;
        let mut text = Vec::new();
        file.take(LAST_LINES).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let errors = text.lines().filter_map(|line| {
            // A line begins with its time, unless the journal has it.
            let dated = line.split_once(' ').filter(|(time, _)| time.ends_with('Z'));
            dated.map_or(line, |(_, rest)| rest).strip_prefix("error: ")
        });
        errors.map(str::to_owned).next()
    }
}

/// The config files to name on the command line of a daemon. Those of a project are found in its folder, because a project's file is used only
/// if it was approved, while one that is named needs no approval.
fn config_files(global: &Global, settings: &Settings) -> Vec<PathBuf> {
    if !global.configs.is_empty() {
        return global.configs.clone();
    }
    let is_found_there = global.trust
        || global.servers.iter().any(|server| server.contains('='))
        || settings.demo_note().is_some()
        || project_file().is_some();
    match is_found_there {
        true => Vec::new(),
        false => settings.loaded.sources.iter().map(PathBuf::from).collect(),
    }
}

/// The log of the daemon with this identity, if it was started in the background.
pub(super) fn log_path(identity: &Identity) -> Option<PathBuf> {
    Some(settings::state_folder()?.join(format!("daemon-{identity}.log")))
}

/// The log of the daemon with this socket, if it was started in the background.
pub(super) fn log_of_socket(socket: &Path) -> Option<PathBuf> {
    let identity = socket.file_stem()?.to_str()?;
    Some(settings::state_folder()?.join(format!("daemon-{identity}.log")))
}
