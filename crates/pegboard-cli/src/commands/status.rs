//! `pegboard status`: one row per server.

mod follow;
pub(super) mod rows;

use clap::Args;
use pegboard::{
    Config, State, TokenProtection,
    status::{BoardStatus, QueueStatus, ServerStatus},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    command::Run,
    consent,
    context::{Context, Ending, TIMEOUT, interruption_report, time_up},
    listing,
    needed_variables::LastWords,
    starting::StartingServers,
};
use crate::{
    daemon::{RunningDaemon, Unfinished, forget_without_daemon, unfinished_without_daemon},
    exit::Exit,
    output::{self, Paint, Report, Table, one_line},
    settings::{self, HostServers, Settings},
};
use follow::StatusSource;
use rows::{ShownError, ShownServer, StatusRows};

/// Show the state of every server
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard status -o json\n  pegboard status --wait --timeout 30s --check")]
pub(crate) struct Status {
    /// End with exit code 3 unless every server is ready
    #[arg(long)]
    check: bool,
    /// Wait until every server is ready, 60s unless --timeout is given
    #[arg(long)]
    wait: bool,
    /// Show the status again whenever it changes, until Ctrl-C
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
}

impl Status {
    /// Whether every server must be ready, not only those that the config requires.
    fn is_strict(&self) -> bool {
        self.check || self.wait
    }
}

impl Run for Status {
    async fn run(self, mut context: Context<'_>) -> Exit {
        if self.watch {
            context.output.never_page();
        }
        let mut settings = Settings::load_or_hosts(&context.global);
        if let Err(exit) = consent::settle(&mut context, &mut settings, &|_| true).await {
            return exit;
        }
        let config = match settings.config() {
            Ok(config) => config,
            Err(complaint) => {
                return context
                    .refuse(&complaint, &StatusDocument::without_board(&settings))
                    .await;
            }
        };
        settings.announce(&context.output);
        let hopeless = hopeless(&config, &settings);
        let limit = context.global.timeout.map(|_| context.deadline.remaining());
        if let Some(daemon) = context.servers(&settings).await.daemon {
            if daemon.is_new()
                && let Ending::Interrupted = start_servers(&mut context, &daemon, &config).await
            {
                let report = interruption_report(&context.output, &StatusDocument::without_board(&settings));
                return context.print(report).await;
            }
            if self.watch {
                let source = StatusSource::Daemon(&daemon);
                return follow::watch(&mut context, &settings, &config, source, &self).await;
            }
            let output = context.output.clone();
            let asking = async {
                if self.wait {
                    StatusSource::Daemon(&daemon).wait(&config, limit, &output).await;
                }
                daemon.status().await
            };
            match context.work(asking).await {
                Ending::Interrupted => {
                    let report = interruption_report(&context.output, &StatusDocument::without_board(&settings));
                    return context.print(report).await;
                }
                Ending::Done(Ok(mut status)) => {
                    if context.output.is_json() {
                        // The daemon of this user has the same store.
                        status["tokens"] = json!(tokens().await);
                    }
                    let report = report_of_daemon(&context, &settings, &config, &daemon, status, &self);
                    return context.print(report).await;
                }
                Ending::Done(Err(why)) => context
                    .output
                    .note(&format!("the daemon did not report its status: {why}")),
                Ending::TimeUp => context.output.note("the daemon did not report its status in time"),
            }
        }
        let starting = StartingServers::new(&config);
        let board = settings::whole_board(config.clone()).open();
        let patience = context.deadline.remaining();
        let mut unfinished = Vec::new();
        let output = context.output.clone();
        let settling = async {
            match self.wait {
                true => StatusSource::Board(&board).wait(&config, limit, &output).await,
                false => board.settle(patience).await,
            }
        };
        let settled = context
            .work_showing_starts(&starting, "asking the servers", &board, settling)
            .await;
        if let (Ending::Done(()), true) = (&settled, self.watch) {
            let source = StatusSource::Board(&board);
            let exit = follow::watch(&mut context, &settings, &config, source, &self).await;
            board.shutdown().await;
            return exit;
        }
        let report = match settled {
            Ending::Interrupted => interruption_report(&context.output, &StatusDocument::without_board(&settings)),
            Ending::TimeUp => time_up(&context.output, &StatusDocument::without_board(&settings)),
            Ending::Done(()) => {
                let status = board.status();
                let mut shown = StatusRows::parse(json!(status));
                shown.mark(&settings);
                shown.advise(&config, |server| {
                    let row = status.servers.iter().find(|row| row.name == *server)?;
                    LastWords::here(row.last_error.as_ref()?)
                });
                unfinished = unfinished_without_daemon(&context.global, &settings);
                shown.unfinished.clone_from(&unfinished);
                let exit = match hopeless {
                    Some((exit, _)) => exit,
                    None => exit(&shown, context.is_late(), self.is_strict()),
                };
                let report = match context.output.is_json() {
                    true => {
                        let mut document = StatusDocument::new(&status, &settings, shown.unfinished);
                        document.tokens = Some(TokenStore::new(&board.token_protection().await));
                        Report::json(exit, &document)
                    }
                    false => text_report(&context, &settings, exit, &shown),
                };
                match hopeless {
                    Some((_, hint)) => report.error(settings::NOTHING, Some(hint)),
                    None => report,
                }
            }
        };
        let global = context.global.clone();
        let exit = context.close(&board, report).await;
        forget_without_daemon(&global, &settings, &unfinished);
        exit
    }
}

/// Starts the servers of a daemon that this command has started, as it does without a daemon.
async fn start_servers(context: &mut Context<'_>, daemon: &RunningDaemon, config: &Config) -> Ending<()> {
    let starting = StartingServers::new(config);
    let board = daemon.board(settings::with_lazy_start(config.clone())).open();
    let patience = context.deadline.remaining();
    let settling = board.settle(patience);
    let settled = context
        .work_showing_starts(&starting, "asking the servers", &board, settling)
        .await;
    board.shutdown().await;
    settled
}

/// The report of the daemon's own board, of which only the selected servers are shown. Servers that are not started stay so.
fn report_of_daemon(
    context: &Context<'_>,
    settings: &Settings,
    config: &Config,
    daemon: &RunningDaemon,
    mut status: Value,
    options: &Status,
) -> Report {
    let is_selected = |row: &Value| {
        let name = row["name"].as_str().unwrap_or_default();
        config.servers.contains_key(name) || config.misconfigured.contains_key(name)
    };
    if let Some(rows) = status["servers"].as_array_mut() {
        rows.retain(is_selected);
    }
    let mut shown = StatusRows::parse(status.clone());
    shown.advise(config, |server| LastWords::in_daemon(&status, server.as_str()));
    let exit = exit(&shown, context.is_late(), options.is_strict());
    if context.output.is_json() {
        status["daemon"] = json!({"pid": daemon.pid()});
        if let Some(warnings) = status["warnings"].as_array_mut() {
            warnings.extend(config_warnings(settings));
        }
        return Report::json(exit, &status);
    }
    context.output.note(&format!(
        "the daemon with process id {} has these servers",
        daemon.pid()
    ));
    text_report(context, settings, exit, &shown)
}

fn text_report(context: &Context<'_>, settings: &Settings, exit: Exit, shown: &StatusRows) -> Report {
    let is_verbose = context.output.verbose > 0;
    let report = text(exit, shown, context.is_late(), is_verbose);
    let report = shown
        .unfinished
        .iter()
        .fold(report, |report, call| report.warning(&call.to_string()));
    let report = with_warnings(report, shown);
    let unpinned = settings.loaded.config.unpinned().into_iter().filter(|_| is_verbose);
    unpinned.fold(report, |report, one| report.warning(&one.to_string()))
}

/// The exit code and the hint if no server can be used.
fn hopeless(config: &Config, settings: &Settings) -> Option<(Exit, &'static str)> {
    if !config.servers.is_empty() || config.misconfigured.is_empty() {
        return None;
    }
    Some(match config.misconfigured.values().all(settings::is_pending) {
        true if settings.hosts().is_some() => (Exit::Refused, settings::approve_hint()),
        true => (
            Exit::Refused,
            "`pegboard trust show` shows what the project file would start",
        ),
        false => (Exit::Usage, "`pegboard config show` lists what is wrong"),
    })
}

/// The exit code: a required server that is not ready is an error; for other servers the table is enough, unless the check is strict. Servers
/// that are switched off are not missed, and neither are those of a daemon that no caller has needed yet.
fn exit(status: &StatusRows, is_late: bool, is_strict: bool) -> Exit {
    let is_ready = |server: &&ShownServer| server.state == State::Ready;
    let is_resting = |server: &&ShownServer| matches!(server.state, State::Disabled | State::Idle);
    let missing = |server: &&ShownServer| !is_ready(server) && (server.required || (is_strict && !is_resting(server)));
    let mut missing = status.servers.iter().filter(missing).peekable();
    if missing.peek().is_some() {
        return match missing.all(|server| server.state == State::Connecting) && is_late {
            true => Exit::Timeout,
            false => Exit::Unavailable,
        };
    }
    match is_late && !status.servers.iter().any(|server| is_ready(&server)) {
        true => Exit::Timeout,
        false => Exit::Done,
    }
}

/// The document of `-o json`.
#[derive(Serialize)]
struct StatusDocument<'a> {
    servers: &'a [ServerStatus],
    queues: &'a [QueueStatus],
    healthy: bool,
    ready: bool,
    warnings: Vec<Value>,
    /// How the tokens of sign-ins are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<TokenStore>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unfinished: Vec<Unfinished>,
    /// The hosts of the servers, if they are those of hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_hosts: Option<Value>,
}

impl<'a> StatusDocument<'a> {
    /// The board, with the problems of the config among its warnings.
    fn new(status: &'a BoardStatus, settings: &Settings, unfinished: Vec<Unfinished>) -> Self {
        let warnings = status.warnings.iter().map(|warning| json!(warning));
        Self {
            servers: &status.servers,
            queues: &status.queues,
            healthy: status.healthy,
            ready: status.ready,
            warnings: warnings.chain(config_warnings(settings)).collect(),
            tokens: None,
            unfinished,
            from_hosts: settings.hosts().map(HostServers::document),
        }
    }

    /// The document without a board: only the problems of the config.
    fn without_board(settings: &Settings) -> Self {
        Self {
            servers: &[],
            queues: &[],
            healthy: false,
            ready: false,
            warnings: config_warnings(settings).collect(),
            tokens: None,
            unfinished: Vec::new(),
            from_hosts: settings.hosts().map(HostServers::document),
        }
    }
}

/// How the tokens of sign-ins are kept on this machine.
#[derive(Serialize)]
struct TokenStore {
    storage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl TokenStore {
    fn new(protection: &TokenProtection) -> Self {
        let reason = match protection {
            TokenProtection::Unavailable { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        Self {
            storage: protection.as_str(),
            reason,
        }
    }
}

/// How tokens are kept, asked without the servers of the config.
async fn tokens() -> TokenStore {
    let board = settings::whole_board(Config::default()).open();
    let protection = board.token_protection().await;
    board.shutdown().await;
    TokenStore::new(&protection)
}

fn config_warnings(settings: &Settings) -> impl Iterator<Item = Value> {
    let now = pegboard::Timestamp::now();
    let note = settings.demo_note().map(move |note| {
        json!({
            "id": "config:demo",
            "category": "config",
            "message": note,
            "details": note,
            "server": "demo",
            "created_at": now,
        })
    });
    let hosts = settings.host_notes().map(move |note| {
        json!({"id": "config:hosts", "category": "config", "message": note, "details": note, "server": null, "created_at": now})
    });
    let problems = settings.problems().map(move |problem| {
        json!({
            "id": format!("config:{}:{}", problem.file, problem.field),
            "category": "config",
            "message": problem.message,
            "details": problem.to_string(),
            "server": problem.server(),
            "created_at": now,
        })
    });
    let empty = settings.empty_warning().map(move |warning| {
        json!({
            "id": "config:empty",
            "category": "config",
            "message": warning,
            "details": warning,
            "server": null,
            "created_at": now,
        })
    });
    note.into_iter().chain(hosts).chain(empty).chain(problems)
}

/// The column of the state.
const STATE: usize = 1;

/// The table alone.
fn table_report(exit: Exit, status: &StatusRows) -> Report {
    Report {
        data: paint(&table(status), output::width()),
        ..Report::new(exit)
    }
}

fn table(status: &StatusRows) -> Table {
    // The protocol version tells the era. Processes and restarts are looked for when something is wrong, on a wide terminal or in JSON.
    let mut table = Table::with_indent(0).with_optional(&[3, 7, 6, 2]);
    let heads = [
        "NAME",
        "STATE",
        "TRANSPORT",
        "ERA",
        "VERSION",
        "TOOLS",
        "PID",
        "RESTARTS",
        "LAST ERROR",
    ];
    table.row(heads.map(str::to_owned));
    status.servers.iter().for_each(|server| table.row(row(server)));
    table
}

/// The table with bold heads, and colours for the states that matter.
fn paint(table: &Table, width: Option<usize>) -> String {
    let paint = Paint::detect(&std::io::stdout());
    let is = |cell: &str, states: &[State]| states.iter().any(|state| state.as_str() == cell);
    table.render_painted(width, |row, column, cell| match column {
        _ if row == 0 => paint.bold(cell),
        STATE if is(cell, &[State::Ready]) => paint.green(cell),
        STATE if is(cell, &[State::Down, State::CrashLooping, State::Misconfigured]) => paint.red(cell),
        STATE if is(cell, &[State::Connecting, State::NeedsAuth, State::PendingTrust]) => paint.yellow(cell),
        _ => cell.to_owned(),
    })
}

fn text(exit: Exit, status: &StatusRows, is_late: bool, is_verbose: bool) -> Report {
    let table = table(status);
    let width = output::width();
    let report = status.servers.iter().fold(Report::new(exit), |report, server| {
        if is_late && server.state == State::Connecting {
            let message = format!("server `{}` was still starting when the timeout passed", server.name);
            return report.error(&message, Some(TIMEOUT));
        }
        if server.required && matches!(server.state, State::Disabled | State::Misconfigured) {
            let message = format!("server `{}` is required and {}", server.name, server.state.as_str());
            return report.error(&message, None);
        }
        // Config problems were reported when it was loaded, and the last error of a ready server is in the table.
        let is_reported = matches!(server.state, State::Misconfigured | State::PendingTrust | State::Ready);
        match server.last_error.as_ref().filter(|_| !is_reported) {
            Some(error) => with_outage(report, server, error, table.has_room(&error.message, width)),
            None => report,
        }
    });
    let sandboxes = status
        .servers
        .iter()
        .filter_map(|server| sandbox_hint(server, is_verbose));
    let report = sandboxes.fold(report, |report, hint| report.hint(&hint));
    Report {
        data: paint(&table, width),
        ..report
    }
}

/// Adds the warnings that the table does not show: definitions that changed or look like attacks, a config that is not in effect, servers
/// that wait to be connected, and records that cannot be written.
fn with_warnings(report: Report, status: &StatusRows) -> Report {
    let warnings = status.warnings.iter();
    warnings.fold(report, |report, warning| {
        match (warning.category.as_str(), warning.server.as_deref()) {
            ("definitions", Some(server)) => report.warning(&format!("{server}: {}", warning.details)),
            // The table shows it.
            ("mcp_health", _) => report,
            _ => report.warning(&format!("{}\n{}", warning.message, warning.details)),
        }
    })
}

/// What a running server lacks of its sandbox, and with `-v` that it lacks nothing.
fn sandbox_hint(server: &ShownServer, is_verbose: bool) -> Option<String> {
    let sandbox = server.sandbox.as_ref()?;
    let (name, requested, in_force) = (&server.name, &sandbox.requested, sandbox.in_force.as_ref()?);
    match sandbox.missing.as_slice() {
        [] => is_verbose.then(|| format!("server `{name}`: its sandbox `{requested}` is in force")),
        missing => Some(format!(
            "server `{name}`: its sandbox `{requested}` is requested, `{in_force}` is in force without {}",
            missing.join("; ")
        )),
    }
}

/// Adds the error of an outage if the table truncates it, otherwise only its hint.
fn with_outage(report: Report, server: &ShownServer, error: &ShownError, is_in_table: bool) -> Report {
    let (name, state) = (server.whose(), listing::in_words(server.state));
    match (is_in_table, &error.hint) {
        (false, hint) => report.error(&format!("server `{name}` {state}: {}", error.message), hint.as_deref()),
        (true, Some(hint)) => report.hint(&format!("server `{name}`: {hint}")),
        (true, None) => report,
    }
}

fn row(server: &ShownServer) -> [String; 9] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        server.whose(),
        server.state.as_str().to_owned(),
        server.transport.clone(),
        or_dash(server.era.clone()),
        or_dash(server.protocol_version.as_deref().map(one_line)),
        server.counted_tools(),
        or_dash(server.pid.map(|pid| pid.to_string())),
        server.restarts.to_string(),
        or_dash(server.last_error.as_ref().map(|error| one_line(&error.message))),
    ]
}
