//! `pegboard` alone: what is running, what needs attention, and what to do next, in fifteen lines. No server is started.

mod attention;

use std::{collections::BTreeSet, path::Path, time::Duration};

use clap::Args;
use pegboard::{State, deadline::Deadline};
use pegboard_hosts::import::AvailableServers;
use serde_json::{Value, json};

use super::{command::Run, context::Context, status::rows::StatusRows};
use crate::{
    daemon::{self, FoundDaemon},
    exit::Exit,
    output::{self, Paint, Report, fit},
    settings::{Settings, hosts_found, in_short, join},
};
use attention::Attention;

/// How long the daemon may take to say how its servers are.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many things that need attention are shown.
const SHOWN: usize = 3;

/// The five commands, and what they do.
const COMMANDS: [(&str, &str); 5] = [
    ("pegboard tools", "list the tools of all servers"),
    ("pegboard call SERVER.TOOL", "call a tool"),
    ("pegboard status", "show the state of every server"),
    ("pegboard doctor", "find out what is wrong, and how to fix it"),
    ("pegboard help", "list the other commands"),
];

/// Show what is running, what needs attention, and what to do next
#[derive(Debug, Args)]
pub(super) struct FirstScreen {}

impl Run for FirstScreen {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load(&context.global);
        let seen = match settings.demo_note().and_then(|_| hosts_found()) {
            Some(found) => Overview::of_hosts(&found, &Settings::load_or_hosts(&context.global)),
            None => look(&context, &settings).await,
        };
        let report = match context.output.is_json() {
            true => Report::json(Exit::Done, &seen.json()),
            false => Report {
                data: seen.text(Paint::detect(&std::io::stdout()), output::width()),
                ..Report::new(Exit::Done)
            },
        };
        context.output.never_page();
        context.print(report).await
    }
}

/// Asks the daemon, if one runs, or else the config.
async fn look(context: &Context<'_>, settings: &Settings) -> Overview {
    let limit = Deadline::within(PATIENCE.min(context.deadline.remaining()));
    if !settings.loaded.unreadable.is_empty() {
        let found = tokio::time::timeout(limit.remaining(), daemon::our_daemon(&context.global, settings)).await;
        let going_on = found.ok().and_then(Result::ok).flatten();
        return Overview::of_broken_config(settings, going_on.as_ref());
    }
    // A daemon that cannot be used is no news here.
    let silent = context.output.silenced();
    match daemon::find(&context.global, settings, &silent, limit).await {
        Some(daemon) => match daemon.status().await {
            Ok(status) => Overview::of_daemon(settings, daemon.pid(), status),
            Err(_) => Overview::of_config(settings),
        },
        None => Overview::of_config(settings),
    }
}

/// What the screen shows.
struct Overview {
    /// What is running, as a sentence.
    running: String,
    document: Value,
    attention: Vec<Attention>,
    /// The command to run next, and what it does.
    next: (String, &'static str),
}

impl Overview {
    /// The servers of a daemon.
    fn of_daemon(settings: &Settings, pid: u32, status: Value) -> Self {
        let rows = StatusRows::parse(status);
        let count = |is_meant: fn(State) -> bool| rows.servers.iter().filter(|row| is_meant(row.state)).count();
        let idle = count(|state| state == State::Idle);
        let ready = count(|state| state == State::Ready);
        let all = count(|state| state != State::Disabled);
        let mut running = format!("{ready} of {} ready in the daemon (process {pid})", counted(all));
        if idle > 0 {
            running.push_str(&format!("; {idle} not needed so far"));
        }
        let attention = attention::of_daemon(settings, &rows);
        Self {
            running,
            document: json!({"servers": {"configured": all, "ready": ready, "idle": idle}, "daemon": {"pid": pid}}),
            next: next(settings, &attention),
            attention,
        }
    }

    /// The servers of other programs, where there is no config.
    fn of_hosts(found: &AvailableServers, settings: &Settings) -> Self {
        let all = found.servers.len();
        Self {
            running: format!(
                "no config found: {} of {}, none is running",
                counted(all),
                join(&found.sources())
            ),
            document: json!({"servers": {"configured": all, "ready": null, "idle": null}, "daemon": null}),
            attention: attention::of_hosts(settings).into_iter().collect(),
            next: (
                "pegboard init".to_owned(),
                "put them into a config, and Pegboard into these programs",
            ),
        }
    }

    /// A config that cannot be read, and what goes on with the one that it had before.
    fn of_broken_config(settings: &Settings, going_on: Option<&FoundDaemon>) -> Self {
        let mut overview = Self::of_config(settings);
        if let Some(found) = going_on {
            let is_gateway = found.report.as_ref().is_some_and(|report| !report.hello.background);
            let what = if is_gateway { "gateway" } else { "daemon" };
            let pid = found.pid;
            overview.running =
                format!("the config cannot be read; the {what} (process {pid}) goes on with the one that it has");
            overview.document["daemon"] = json!({"pid": pid});
        }
        overview
    }

    /// The servers of the config, of which none runs.
    fn of_config(settings: &Settings) -> Self {
        let config = &settings.loaded.config;
        let disabled = config.servers.values().filter(|server| !server.enabled).count();
        let all = config.servers.len() + config.misconfigured.len() - disabled;
        let files: BTreeSet<&str> = settings
            .loaded
            .origins
            .values()
            .map(|origin| origin.file.as_str())
            .collect();
        let of_file = match files.iter().collect::<Vec<_>>().as_slice() {
            [file] if Path::new(file).is_absolute() => format!(" in {}", in_short(file)),
            _ => String::new(),
        };
        let running = match settings.demo_note() {
            Some(_) => "no config found: the built-in demo server is used".to_owned(),
            None if !settings.loaded.unreadable.is_empty() => "the config cannot be read, so nothing runs".to_owned(),
            None if all == 0 => format!("no server is switched on{of_file}"),
            None => format!("{} configured{of_file}, none is running", counted(all)),
        };
        let mut attention = attention::of_config(settings);
        attention.extend(attention::of_programs(settings));
        Self {
            running,
            document: json!({"servers": {"configured": all, "ready": null, "idle": null}, "daemon": null}),
            next: next(settings, &attention),
            attention,
        }
    }

    fn json(self) -> Value {
        let mut document = self.document;
        document["attention"] = self.attention.iter().map(Attention::json).collect();
        document["next"] = self.next.0.into();
        document
    }

    fn text(&self, paint: Paint, width: Option<usize>) -> String {
        let mut lines = vec![paint.bold(&self.running), String::new()];
        let most = match self.attention.len() {
            few if few <= SHOWN + 1 => few,
            _ => SHOWN,
        };
        let shown = &self.attention[..most];
        let widest = shown.iter().map(|one| one.what_for.len()).max().unwrap_or(0);
        let cut = |line: String| width.map_or_else(|| line.clone(), |width| fit(&line, width));
        if !shown.is_empty() {
            lines.push(paint.yellow("needs attention:"));
            let rows = shown
                .iter()
                .map(|one| format!("  {:widest$}  {}", one.what_for, one.what));
            lines.extend(rows.map(cut));
        }
        if self.attention.len() > most {
            lines.push(format!("  {} more: pegboard doctor", self.attention.len() - most));
        }
        if !shown.is_empty() {
            lines.push(String::new());
        }
        let (command, does) = &self.next;
        lines.push(format!("next: {}  {does}", paint.bold(command)));
        lines.push(String::new());
        let longest = COMMANDS
            .map(|(command, _)| command.len())
            .into_iter()
            .max()
            .unwrap_or(0);
        lines.extend(COMMANDS.map(|(command, does)| format!("  {command:longest$}  {does}")));
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// The command that helps most now.
fn next(settings: &Settings, attention: &[Attention]) -> (String, &'static str) {
    if settings.demo_note().is_some() {
        return (
            "pegboard call demo.calculate expression='6 * 7'".to_owned(),
            "call a tool of the demo server",
        );
    }
    if let Some(first) = attention.first() {
        return (first.next.clone(), first.next_does);
    }
    let config = &settings.loaded.config;
    match config.servers.values().any(|server| server.enabled) {
        true => ("pegboard tools".to_owned(), "see what the servers offer"),
        false => ("pegboard add NAME -- COMMAND".to_owned(), "add a server"),
    }
}

fn counted(servers: usize) -> String {
    match servers {
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    }
}
