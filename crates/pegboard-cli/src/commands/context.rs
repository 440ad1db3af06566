//! The context of a command (options, output, signals, deadline), and the reports of commands that end early.

use std::{future::Future, path::Path, time::Duration};

use futures_util::FutureExt as _;
use pegboard::{Builder, Config, Failure, Kind, Pegboard, deadline::Deadline};
use pegboard_hosts::{HostError, HostErrorKind};
use serde::Serialize;
use tokio::time::Instant;

use super::starting::StartingServers;
use crate::{
    cli::Global,
    daemon::{self, RunningDaemon},
    exit::Exit,
    logging::ServerLogs,
    output::{Output, Report},
    settings::{self, Complaint, Settings},
    signals::Signals,
};

/// How long the shutdown of the board may take. Servers that are still running then are killed.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// How much longer than the deadline work outside the board may take.
const MARGIN: Duration = Duration::from_millis(500);
/// A timer that fires this late shows that the process was suspended (SIGSTOP, a sleeping laptop).
const STOPPED: Duration = Duration::from_millis(100);
/// How long the board may take to read what arrived during a suspension. Longer than the board's own grace period.
const CATCH_UP: Duration = Duration::from_secs(2);

/// The context of a command.
pub(crate) struct Context<'a> {
    pub(super) global: Global,
    /// Defines all commands, for texts about them.
    pub(super) definition: fn() -> clap::Command,
    pub(super) output: Output,
    pub(super) signals: &'a mut Signals,
    pub(super) deadline: Deadline,
    /// What the servers of this process write, for commands that keep it.
    pub(super) logs: ServerLogs,
}

/// Where the servers of a command are: in the user's daemon, or in this process.
pub(super) struct ServerSource {
    pub(super) daemon: Option<RunningDaemon>,
    /// Whether a daemon of this command has ended, and another one was looked for.
    was_lost: bool,
}

impl ServerSource {
    pub(super) fn new(daemon: Option<RunningDaemon>) -> Self {
        Self {
            daemon,
            was_lost: false,
        }
    }

    /// A board with these servers.
    pub(super) fn board(&self, config: Config) -> Builder {
        match &self.daemon {
            Some(daemon) => daemon.board(settings::with_lazy_start(config)),
            None => settings::board(config),
        }
    }
}

/// How [`Context::work`] ended.
pub(super) enum Ending<T> {
    Done(T),
    TimeUp,
    Interrupted,
}

impl Context<'_> {
    /// Runs `work` like [`Context::work`]. If it does not end by itself, reports that with the document `nothing`, and returns how the command
    /// ends.
    pub(super) async fn work_or_end<T, D: Serialize>(
        &mut self,
        work: impl Future<Output = T>,
        nothing: &D,
    ) -> Result<T, Exit> {
        let report = match self.work(work).await {
            Ending::Done(done) => return Ok(done),
            Ending::TimeUp => time_up(&self.output, nothing),
            Ending::Interrupted => interruption_report(&self.output, nothing),
        };
        Err(self.print(report).await)
    }

    /// Runs `work` until it is done, the deadline passes or a signal arrives. In the last two cases `work` is dropped, which cancels it.
    pub(super) fn work<T>(&mut self, work: impl Future<Output = T>) -> impl Future<Output = Ending<T>> {
        self.work_with(MARGIN, work)
    }

    /// Runs `work` like [`Context::work`] until `margin` after the deadline.
    async fn work_with<T>(&mut self, margin: Duration, work: impl Future<Output = T>) -> Ending<T> {
        let limit = self.deadline.remaining() + margin;
        tokio::select! {
            biased;
            () = self.signals.heard() => Ending::Interrupted,
            done = within(limit, work) => match done {
                Some(done) => Ending::Done(done),
                None => Ending::TimeUp,
            },
        }
    }

    /// Runs the `work` of a board like [`Context::work`], and shows meanwhile which servers are starting.
    pub(super) async fn work_showing_starts<T>(
        &mut self,
        starting: &StartingServers,
        what: &str,
        board: &Pegboard,
        work: impl Future<Output = T>,
    ) -> Ending<T> {
        let output = self.output.clone();
        // The board enforces the same deadline and says better what was late, even if this process was suspended at that time.
        self.work_with(CATCH_UP, starting.during(what, &output, board, work))
            .await
    }

    /// The servers for a command that uses some of them: those of the user's daemon, which is started in the background if none runs.
    pub(super) async fn servers(&self, settings: &Settings) -> ServerSource {
        // Without a config there is none that a daemon could serve.
        if settings.hosts().is_some() {
            return ServerSource::new(None);
        }
        let finding = daemon::find_or_start(&self.global, settings, &self.output, self.deadline);
        ServerSource::new(Box::pin(finding).await)
    }

    /// The servers for a command that uses those of a daemon only if one runs.
    pub(super) async fn running_servers(&self, settings: &Settings) -> ServerSource {
        ServerSource::new(match settings.hosts() {
            Some(_) => None,
            None => daemon::find(&self.global, settings, &self.output, self.deadline).await,
        })
    }

    /// Whether the work must be done again, because a server was missing and its daemon has ended after it had said who it is. The servers are
    /// those of the next daemon then, which may be starting already; if there is none, or if it ends too, the command's own.
    pub(super) async fn has_lost(&self, settings: &Settings, servers: &mut ServerSource) -> bool {
        match &servers.daemon {
            Some(daemon) if !self.is_late() && daemon.has_ended().await => {}
            _ => return false,
        }
        let next = match servers.was_lost {
            true => None,
            false => self.servers(settings).await.daemon,
        };
        if next.is_none() {
            self.output
                .note("the daemon has ended, so the servers are started without it");
        }
        *servers = ServerSource {
            daemon: next,
            was_lost: true,
        };
        true
    }

    /// Prints a report. Ctrl-C ends a write that blocks because the reader of stdout does not read.
    pub(super) async fn print(&mut self, report: Report) -> Exit {
        let output = self.output.clone();
        // In a pager, Ctrl-C is for the pager.
        let is_paged = output.pages(&report);
        if report.exit == Exit::Interrupted {
            // The signal that the report is about must not end its printing. Edits of files listen on their own.
            let _ = self.signals.heard().now_or_never();
        }
        let printing = tokio::task::spawn_blocking(move || output.print(&report));
        tokio::select! {
            printed = printing => printed.unwrap_or(Exit::Unavailable),
            () = self.signals.heard(), if !is_paged => Exit::Interrupted,
        }
    }

    /// Writes the data of a report to the file of `--out`, if there is one. A signal and the deadline end a write that blocks because the reader
    /// of a pipe does not come or does not read.
    pub(super) async fn write_out(&mut self, report: Report, path: Option<&Path>) -> Report {
        let Some(path) = path else { return report };
        let (shown, owned) = (path.display().to_string(), path.to_owned());
        // On a blocking thread, which ends with the process if it is left behind.
        let writing = tokio::task::spawn_blocking(move || report.write_to(Some(&owned)));
        let (exit, why) = match self.work(writing).await {
            Ending::Done(Ok(written)) => return written,
            Ending::Done(Err(_)) => (Exit::Unavailable, "it was given up"),
            Ending::TimeUp => (Exit::Timeout, TIME_UP),
            Ending::Interrupted => (Exit::Interrupted, INTERRUPTED),
        };
        Report::new(exit).error(&format!("{shown} is not written whole: {why}"), None)
    }

    /// Prints why the config cannot be used. Programs get `document`, the empty form of the command's document.
    pub(super) async fn refuse(&mut self, complaint: &Complaint, document: &impl Serialize) -> Exit {
        let report = empty(&self.output, complaint.exit, document);
        self.print(with_complaint(report, complaint)).await
    }

    /// Prints a report and shuts the board down. A second signal ends the wait for the shutdown.
    pub(super) async fn close(mut self, board: &Pegboard, report: Report) -> Exit {
        let exit = self.print(report).await;
        tokio::select! {
            _ = tokio::time::timeout(SHUTDOWN, board.shutdown()) => {}
            () = self.signals.heard() => {}
        }
        exit
    }

    /// Returns `true` if the deadline that the user set has passed.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.has_passed()
    }
}

/// The report of a command that has no data. In JSON format it still has a document.
pub(super) fn empty(output: &Output, exit: Exit, document: &impl Serialize) -> Report {
    match output.is_json() {
        true => Report::json(exit, document),
        false => Report::new(exit),
    }
}

/// The report of a command that a signal interrupted.
pub(super) fn interruption_report(output: &Output, document: &impl Serialize) -> Report {
    empty(output, Exit::Interrupted, document).error(INTERRUPTED, None)
}

/// The report of a command whose deadline passed.
pub(super) fn time_up(output: &Output, document: &impl Serialize) -> Report {
    empty(output, Exit::Timeout, document).error(TIME_UP, Some(TIMEOUT))
}

/// The complaint of a command that a signal or its deadline ended, with a hint other than the usual one.
pub(super) fn cut_short(exit: Exit, hint: Option<String>) -> Complaint {
    let (message, usual) = match exit {
        Exit::Timeout => (TIME_UP, Some(TIMEOUT)),
        _ => (INTERRUPTED, None),
    };
    Complaint {
        message: message.to_owned(),
        hint: hint.or_else(|| usual.map(str::to_owned)),
        exit,
    }
}

impl From<HostError> for Complaint {
    fn from(error: HostError) -> Self {
        let exit = match error.kind {
            HostErrorKind::Usage => Exit::Usage,
            HostErrorKind::Refused => Exit::Refused,
            // The message names the file that another process was editing.
            HostErrorKind::TimeUp => return cut_short(Exit::Timeout, Some(error.message)),
            HostErrorKind::Interrupted => return cut_short(Exit::Interrupted, None),
            _ => Exit::Unavailable,
        };
        Self {
            message: error.message,
            hint: error.hint,
            exit,
        }
    }
}

/// Adds a complaint as an error.
pub(super) fn with_complaint(report: Report, complaint: &Complaint) -> Report {
    report.error(&complaint.message, complaint.hint.as_deref())
}

const INTERRUPTED: &str = "interrupted";
const TIME_UP: &str = "the timeout passed";
/// The hint for everything that `--timeout` ended.
pub(super) const TIMEOUT: &str = "`--timeout` sets the limit of the whole command";

/// The failure of a request that a signal interrupted.
pub(super) fn cancelled() -> Failure {
    Failure::new(Kind::Cancelled, INTERRUPTED)
}

/// The failure of a request that the deadline ended.
pub(super) fn late() -> Failure {
    Failure::new(Kind::Timeout, TIME_UP)
}

/// Runs `work` for at most `limit`. After a suspension of the process the board gets [`CATCH_UP`] to read what arrived meanwhile.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let due = Instant::now() + limit;
    let mut work = Box::pin(work);
    match tokio::time::timeout_at(due, &mut work).await {
        Ok(done) => Some(done),
        Err(_) if due.elapsed() >= STOPPED => tokio::time::timeout(CATCH_UP, work).await.ok(),
        Err(_) => None,
    }
}
