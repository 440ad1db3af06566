//! `status --wait` and `status --watch`: the status again and again.

use std::{io::IsTerminal as _, time::Duration};

use pegboard::{Config, Pegboard, State};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    super::{
        context::{Context, Ending},
        starting::{Seen, StartingServers},
    },
    Status,
    rows::{ShownServer, StatusRows},
    table_report,
};
use crate::{
    daemon::RunningDaemon,
    exit::Exit,
    output::{Output, Report},
    settings::Settings,
};

/// How often the status is read.
const EVERY: Duration = Duration::from_secs(1);
/// What a terminal shows meanwhile.
const WAITING: &str = "waiting for the servers";
/// How long `--wait` waits without `--timeout`.
const WAIT: Duration = Duration::from_secs(60);
/// Moves the cursor to the top left and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Where the status comes from.
pub(super) enum StatusSource<'a> {
    Daemon(&'a RunningDaemon),
    Board(&'a Pegboard),
}

impl StatusSource<'_> {
    /// The status of the servers that the command is about.
    pub(super) async fn status(&self, config: &Config) -> Result<Value, String> {
        let mut status = match self {
            Self::Daemon(daemon) => daemon.status().await?,
            Self::Board(board) => json!(board.status()),
        };
        let is_selected = |row: &Value| {
            let name = row["name"].as_str().unwrap_or_default();
            config.servers.contains_key(name) || config.misconfigured.contains_key(name)
        };
        if let Some(rows) = status["servers"].as_array_mut() {
            rows.retain(is_selected);
        }
        Ok(status)
    }

    /// Waits until every server is ready, none can become so by itself, or the time is up.
    pub(super) async fn wait(&self, config: &Config, limit: Option<Duration>, output: &Output) {
        let starting = StartingServers::new(config);
        let mut progress = starting.progress();
        let until = Instant::now() + limit.unwrap_or(WAIT);
        while Instant::now() < until {
            if let Self::Board(board) = self {
                // Starts servers that are down again.
                board.settle(until.duration_since(Instant::now())).await;
            }
            let Ok(status) = self.status(config).await else {
                return;
            };
            let servers = StatusRows::parse(status).servers;
            if !servers.iter().any(|server| may_become_ready(server.state)) {
                return;
            }
            // The caller that waits for a board shows the progress of its servers itself.
            if matches!(self, Self::Daemon(_)) {
                let rows = progress.rows(servers.iter().map(Seen::from));
                match rows.is_empty() {
                    true => output.show_waiting(WAITING),
                    false => output.show_waiting_for(WAITING, &rows),
                }
            }
            tokio::time::sleep(EVERY / 4).await;
        }
    }
}

impl From<&ShownServer> for Seen {
    fn from(server: &ShownServer) -> Self {
        Self {
            name: server.whose(),
            state: server.state,
            tools: server.tools,
            error: server.last_error.as_ref().map(|error| error.message.clone()),
        }
    }
}

/// Whether a server is not ready and may become so without a person's help.
fn may_become_ready(state: State) -> bool {
    matches!(state, State::Connecting | State::Down | State::CrashLooping)
}

/// Shows the status whenever it changes, at a terminal every second, until a signal arrives or the time is up.
pub(super) async fn watch(
    context: &mut Context<'_>,
    settings: &Settings,
    config: &Config,
    source: StatusSource<'_>,
    options: &Status,
) -> Exit {
    let is_screen = std::io::stdout().is_terminal() && !context.output.is_json();
    let mut shown_last = String::new();
    loop {
        let mut report = match source.status(config).await {
            Ok(status) => report(context, settings, status, options),
            Err(why) => {
                let report =
                    Report::new(Exit::Unavailable).error(&format!("the daemon did not report its status: {why}"), None);
                return context.print(report).await;
            }
        };
        let (is_new, exit) = (report.data != shown_last, report.exit);
        if is_new || is_screen {
            shown_last.clone_from(&report.data);
            if is_screen {
                report.data.insert_str(0, CLEAR);
            }
            if context.print(report).await == Exit::Interrupted {
                return Exit::Interrupted;
            }
        }
        if context.is_late() {
            return exit;
        }
        match context.work(tokio::time::sleep(EVERY)).await {
            Ending::Done(()) => {}
            Ending::TimeUp => return exit,
            Ending::Interrupted => return Exit::Interrupted,
        }
    }
}

fn report(context: &Context<'_>, settings: &Settings, mut status: Value, options: &Status) -> Report {
    let shown = StatusRows::parse(status.clone());
    let exit = super::exit(&shown, false, options.check);
    if context.output.is_json() {
        if let Some(warnings) = status["warnings"].as_array_mut() {
            warnings.extend(super::config_warnings(settings));
        }
        return Report::json(exit, &status);
    }
    table_report(exit, &shown)
}
