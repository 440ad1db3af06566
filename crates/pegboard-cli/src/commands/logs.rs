//! `pegboard logs`: what a server wrote to stderr, and its log messages. They are those of the daemon's server, or of one that is started for this.

use std::time::Duration;

use clap::Args;
use pegboard::{
    Pegboard,
    watch::{LogLevel, WantedLogs},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    command::Run,
    consent,
    context::{Context, Ending, ServerSource, interruption_report, time_up},
};
use crate::{
    exit::Exit,
    logging::{LogLine, LogUse, ServerLogs},
    output::{Report, clean, moment, one_line},
    settings::{Complaint, Settings},
};

/// How often new lines are looked for.
const POLL: Duration = Duration::from_millis(200);
/// How long a server that has started may take to write its first lines.
const SETTLE: Duration = Duration::from_millis(300);
/// The column at which texts begin, after the time and the level.
const TEXT_AT: usize = 23;

/// Show what a server wrote
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard logs github\n  pegboard logs github -f --level debug")]
pub(crate) struct Logs {
    /// The server
    server: String,
    /// Go on until Ctrl-C, or as long as `--timeout` says
    #[arg(short, long)]
    follow: bool,
    /// Ask the server to log from this level on, such as debug
    #[arg(long, value_name = "LEVEL")]
    level: Option<LogLevel>,
    /// Show only the last lines of what is there
    #[arg(short = 'n', long, value_name = "COUNT")]
    last: Option<usize>,
}

impl Run for Logs {
    const LOG: LogUse = LogUse::KEPT;

    async fn run(self, mut context: Context<'_>) -> Exit {
        let mut settings = Settings::load_for(&context.global, &self.server);
        let is_needed = |server: &str| server == self.server;
        if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
            return exit;
        }
        let nothing = document(&self.server, &[], None);
        let config = match settings.usable_one(&self.server) {
            Ok(config) => config,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        settings.announce(&context.output);
        let servers = context.running_servers(&settings).await;
        let board = servers.board(config).open();
        let source = LogSource {
            servers,
            logs: context.logs.clone(),
            server: self.server.clone(),
        };
        // A daemon has the lines without a connection to its server.
        let is_started = source.servers.daemon.is_none() || self.level.is_some();
        let (mut problem, mut wanted_logs) = (None, None);
        if is_started {
            context.output.show_waiting(&format!("starting {}", self.server));
            let patience = context.deadline.remaining();
            let starting = async {
                let started = start(&board, &self, patience).await;
                sleep(SETTLE).await;
                started
            };
            match context.work(starting).await {
                Ending::Done(Ok(wanted)) => wanted_logs = wanted,
                Ending::Done(Err(why)) => problem = Some(why),
                Ending::TimeUp => {
                    let report = time_up(&context.output, &nothing);
                    return context.close(&board, report).await;
                }
                Ending::Interrupted => {
                    let report = interruption_report(&context.output, &nothing);
                    return context.close(&board, report).await;
                }
            };
        }
        let mut lines = match source.after(0).await {
            Ok(lines) => lines,
            Err(why) => {
                let complaint = Complaint {
                    message: format!("the daemon has no logs: {why}"),
                    hint: None,
                    exit: Exit::Unavailable,
                };
                let exit = context.refuse(&complaint, &nothing).await;
                board.shutdown().await;
                return exit;
            }
        };
        let mut number = lines.last().map_or(0, |line| line.number);
        if let Some(last) = self.last {
            lines.drain(..lines.len().saturating_sub(last));
        }
        let wanted = |lines: Vec<LogLine>| -> Vec<LogLine> {
            lines.into_iter().filter(|line| is_wanted(line, self.level)).collect()
        };
        let lines = wanted(lines);
        if !self.follow {
            let report = report(&context, &self.server, &lines, problem);
            return context.close(&board, report).await;
        }
        let mut next = lines;
        let ending = loop {
            if !next.is_empty() {
                let report = report_new_lines(&context, &next);
                context.print(report).await;
            }
            let waiting = async {
                sleep(POLL).await;
                source.after(number).await
            };
            next = match context.work(waiting).await {
                Ending::Done(Ok(lines)) => {
                    number = lines.last().map_or(number, |line| line.number);
                    wanted(lines)
                }
                Ending::Done(Err(_)) => break Report::new(Exit::Unavailable).error("the daemon has ended", None),
                Ending::TimeUp => break Report::new(Exit::Timeout),
                Ending::Interrupted => break Report::new(Exit::Interrupted),
            };
        };
        drop(wanted_logs);
        context.close(&board, ending).await
    }
}

/// Where the lines are.
struct LogSource {
    servers: ServerSource,
    logs: ServerLogs,
    server: String,
}

impl LogSource {
    async fn after(&self, number: u64) -> Result<Vec<LogLine>, String> {
        match &self.servers.daemon {
            Some(daemon) => daemon.logs(&self.server, number).await,
            None => Ok(self.logs.after(&self.server, number)),
        }
    }
}

/// Starts the server and asks it for log messages, until the returned value is dropped. Fails with why it cannot be used, and the exit code.
async fn start(board: &Pegboard, options: &Logs, patience: Duration) -> Result<Option<WantedLogs>, (String, Exit)> {
    let toolset = board.toolset();
    let listing = toolset.list(patience).await;
    if let Some(unavailable) = listing.unavailable.first() {
        let exit = match unavailable.state {
            pegboard::State::NeedsAuth => Exit::SignIn,
            _ => Exit::Unavailable,
        };
        return Err((unavailable.error.clone(), exit));
    }
    let Some(level) = options.level else {
        return Ok(None);
    };
    let wanted = toolset.want_logs(&options.server, level).await;
    wanted
        .map(Some)
        .map_err(|failure| (failure.message, Exit::from_kind(failure.kind)))
}

fn is_wanted(line: &LogLine, level: Option<LogLevel>) -> bool {
    match (line.level, level) {
        (Some(has), Some(least)) => has >= least,
        _ => true,
    }
}

fn report(context: &Context<'_>, server: &str, lines: &[LogLine], problem: Option<(String, Exit)>) -> Report {
    let exit = problem.as_ref().map_or(Exit::Done, |(_, exit)| *exit);
    let mut report = match context.output.is_json() {
        true => Report::json(
            exit,
            &document(server, lines, problem.as_ref().map(|(why, _)| why.as_str())),
        ),
        false => {
            let mut report = Report::new(exit);
            report.data = lines.iter().map(text).collect();
            report
        }
    };
    if let Some((why, _)) = problem {
        report = report.error(&why, None);
    } else if lines.is_empty() && !context.output.is_json() {
        report = report.hint(&format!(
            "`{server}` has written nothing; `--level debug` asks it for more, `-f` waits for it"
        ));
    }
    report
}

/// New lines. In JSON, each is a document on a line of its own.
fn report_new_lines(context: &Context<'_>, lines: &[LogLine]) -> Report {
    let mut report = Report::new(Exit::Done);
    report.data = match context.output.is_json() {
        true => lines.iter().map(|line| json!(line).to_string() + "\n").collect(),
        false => lines.iter().map(text).collect(),
    };
    report
}

fn text(line: &LogLine) -> String {
    let at = moment(line.at, "%H:%M:%S%.3f");
    let level = line.level.map_or("stderr", LogLevel::as_str);
    let logger = line.logger.as_deref().map(|logger| format!("{}: ", one_line(logger)));
    format!("{at} {level:<9} {}{}\n", logger.unwrap_or_default(), layout(&line.text))
}

/// A text as the server laid it out. Later lines begin in the column of the first, so that they cannot pass for lines of their own.
fn layout(text: &str) -> String {
    clean(text.trim_end()).replace('\n', &format!("\n{:TEXT_AT$}", ""))
}

fn document(server: &str, lines: &[LogLine], error: Option<&str>) -> Value {
    json!({"server": server, "lines": lines, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_a_text_is_kept_and_control_characters_are_not() {
        let line = LogLine {
            number: 1,
            at: pegboard::Timestamp::UNIX_EPOCH,
            level: None,
            logger: None,
            text: "  File \"a.py\", line 1\n    x =  1\u{1b}[2J\r\n    \t^\n".to_owned(),
        };
        let gap = " ".repeat(TEXT_AT);
        let wanted =
            format!("00:00:00.000 stderr      File \"a.py\", line 1\n{gap}    x =  1\\u{{1b}}[2J\n{gap}    \t^\n");
        assert_eq!(text(&line), wanted);
    }
}
