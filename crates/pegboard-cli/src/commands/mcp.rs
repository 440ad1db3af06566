//! `pegboard mcp`: the board, a view or one server as one MCP server on stdio.

use std::{path::Path, sync::Arc, time::Duration};

use clap::Args;
use pegboard::{Config, Pegboard, ServerName, State, config::RunningSettings, mask::Masker, toolset::Unavailable};
use pegboard_daemon::{Reloads, board_metrics};
use pegboard_gateway::{BoardPart, GatewayHost, SignInLinks, board_service, serve_stdio};
use tokio_util::sync::CancellationToken;

use super::{
    command::Run,
    context::{Context, Ending, with_complaint},
    reload_triggers::Triggers,
    reloader::{Reloader, Role},
    serving::{self, Door},
};
use crate::{
    cli::duration,
    daemon,
    exit::Exit,
    logging::LogUse,
    output::Report,
    recording::{Recorded, Recorder},
    settings::{Complaint, Settings},
    telemetry,
};

/// How often the sign-ins of servers that wait for one are looked for, and how rarely after failures.
const LOOK: Duration = Duration::from_secs(1);
const MAX_LOOK: Duration = Duration::from_secs(60);

/// Serve all tools as one MCP server on stdio
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard mcp --view coding\n  pegboard mcp --server github")]
pub(crate) struct Mcp {
    /// Serve this view of the config instead of all tools
    #[arg(long, value_name = "NAME")]
    pub(super) view: Option<String>,
    /// Start the user's daemon if none runs
    #[arg(long, conflicts_with = "no_daemon")]
    pub(super) daemon: bool,
    /// How long a daemon started by this stays without a client
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", requires = "daemon")]
    pub(super) idle: Duration,
}

impl Run for Mcp {
    const LOG: LogUse = LogUse::RUNNING;

    async fn run(self, context: Context<'_>) -> Exit {
        Box::pin(serve(context, self, None)).await
    }
}

/// What is recorded.
pub(super) struct Recording<'a> {
    pub(super) file: &'a Path,
    /// Whether the only server is that of the command line, without which there is nothing to record.
    pub(super) needs_server: bool,
}

/// Serves the board, and records the answers in a file if there is one.
pub(super) async fn serve(mut context: Context<'_>, options: Mcp, recording: Option<Recording<'_>>) -> Exit {
    let settings = Settings::load(&context.global);
    let (reloads, requests) = Reloads::new();
    let triggers = Triggers::listen(&settings, &context.output, requests);
    let config = serving::prepare(&settings, Door::Stdio).and_then(|config| {
        check(&config, &options, &settings)?;
        Ok(config)
    });
    let recorded = config.and_then(|config| {
        let recorder = recording
            .as_ref()
            .map(|recording| recorder(recording.file, &config, &settings))
            .transpose()?;
        Ok((config, recorder))
    });
    let (config, recorder) = match recorded {
        Ok(recorded) => recorded,
        Err(complaint) => {
            let report = Report::new(complaint.exit);
            return context.print(with_complaint(report, &complaint)).await;
        }
    };
    // Hosts show stderr to their users; stdout belongs to the protocol.
    settings.announce(&context.output);
    if let Some(note) = settings.unused_hosts_note() {
        context.output.note(&note);
    }
    let daemon = match options.daemon {
        true => {
            daemon::find_or_start_lasting(
                &context.global,
                &settings,
                &context.output,
                options.idle,
                context.deadline,
            )
            .await
        }
        false => daemon::find(&context.global, &settings, &context.output, context.deadline).await,
    };
    let mut started = config.clone();
    if daemon.is_some() {
        daemon::adapt(&mut started);
    }
    let running = RunningSettings::new(&started, false);
    drop(started);
    let exporter = telemetry::start(&config, &context.output);
    let board = match &daemon {
        Some(daemon) => serving::with_telemetry(daemon.serving_board(config), exporter.as_ref())
            .host(GatewayHost)
            .open(),
        None => serving::open(config, exporter.as_ref()),
    };
    if let Some(exporter) = &exporter {
        let observed = board.clone();
        exporter.collect(move || board_metrics(&observed));
    }
    serving::warn_of_unconnected(&board, &context.output, |name| {
        format!("set `start = \"lazy\"`, or serve it alone with `--server {name}`")
    });
    if recording.is_some_and(|recording| recording.needs_server)
        && let Some(report) = start_servers(&mut context, &board).await
    {
        return context
            .close(&board, finish_recording(report, recorder.as_deref()))
            .await;
    }
    let links = SignInLinks::default();
    let of_links = board.clone();
    links.serve(move |server| of_links.takes_sign_in(server.as_str()));
    let service = board_service(board.clone(), part(options, &settings), links);
    let service = match &recorder {
        Some(recorder) => Arc::new(Recorded::new(service, recorder.clone())),
        None => service,
    };
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(serve_stdio(service, stop.clone().cancelled_owned()));
    let reloader = Reloader {
        global: &context.global,
        added: None,
        output: &context.output,
        board: &board,
        gateway: None,
        door: Door::Stdio,
        notifier: None,
        reloads: &reloads,
        role: if daemon.is_some() { Role::Client } else { Role::Alone },
    };
    let report = tokio::select! {
        biased;
        served = &mut serving => report_end(served),
        () = context.signals.heard() => {
            stop.cancel();
            // Requests in flight are answered. A second signal does not wait for them.
            tokio::select! {
                served = &mut serving => report_end(served),
                () = context.signals.heard() => Report::new(Exit::Done),
            }
        }
        () = reloader.run(triggers, running) => Report::new(Exit::Done),
        () = follow_sign_ins(&board), if daemon.is_some() => Report::new(Exit::Done),
    };
    let exit = context
        .close(&board, finish_recording(report, recorder.as_deref()))
        .await;
    if let Some(exporter) = exporter {
        exporter.stop().await;
    }
    exit
}

/// Starts the servers; the report of the command if one cannot be started.
async fn start_servers(context: &mut Context<'_>, board: &Pegboard) -> Option<Report> {
    let toolset = board.toolset();
    let listing = toolset.list(context.deadline.remaining());
    match context.work(listing).await {
        Ending::Interrupted => Some(Report::new(Exit::Interrupted)),
        Ending::TimeUp => None,
        Ending::Done(listing) => {
            let is_down = |server: &&Unavailable| matches!(server.state, State::Down | State::CrashLooping);
            let server = listing.unavailable.iter().find(is_down)?;
            Some(Report::new(Exit::Unavailable).error(&server.error, server.hint.as_deref()))
        }
    }
}

/// Ends a recording.
fn finish_recording(mut report: Report, recorder: Option<&Recorder>) -> Report {
    let Some(finished) = recorder.map(Recorder::finish) else {
        return report;
    };
    if finished.lost.is_some() && report.exit == Exit::Done {
        report.exit = Exit::Unavailable;
    }
    let problems = finished.lost.iter().chain(&finished.elsewhere);
    problems.fold(report, |report, problem| report.warning(problem))
}

/// Connects servers of the daemon again after their sign-in. The daemon notices sign-ins itself, and its clients must ask it again.
async fn follow_sign_ins(board: &Pegboard) {
    let mut wait = LOOK;
    loop {
        tokio::time::sleep(wait).await;
        let mut is_tried = false;
        for server in board.awaiting_sign_in() {
            if let Ok(true) = board.is_signed_in(&server, None).await {
                is_tried = true;
                board.reconnect(&server).await;
            }
        }
        // A server may refuse what is stored.
        wait = if is_tried { (wait * 2).min(MAX_LOOK) } else { LOOK };
    }
}

/// Starts a recording that has no secret of the config.
fn recorder(path: &Path, config: &Config, settings: &Settings) -> Result<Arc<Recorder>, Complaint> {
    let unusable = |message: String| Complaint {
        message,
        hint: None,
        exit: Exit::Usage,
    };
    let masker =
        Masker::new(&config.masking, settings.loaded.config.secrets()).map_err(|error| unusable(error.to_string()))?;
    Recorder::create(path, masker)
        .map(Arc::new)
        .map_err(|error| unusable(format!("{} cannot be written: {error}", path.display())))
}

/// What is served: a view, a single server, or everything.
fn part(options: Mcp, settings: &Settings) -> BoardPart {
    let server = || ServerName::parse(settings.picked_server()?).ok().map(BoardPart::Server);
    options.view.map(BoardPart::View).or_else(server).unwrap_or_default()
}

fn report_end(served: std::io::Result<()>) -> Report {
    match served {
        Ok(()) => Report::new(Exit::Done),
        Err(error) => Report::new(Exit::Unavailable).error(&format!("stdio cannot be used: {error}"), None),
    }
}

/// Checks that the view exists, and that not both a view and a server are named.
fn check(config: &Config, options: &Mcp, settings: &Settings) -> Result<(), Complaint> {
    let Some(view) = &options.view else { return Ok(()) };
    if settings.picked_server().is_some() {
        return Err(Complaint {
            message: "name either a view or a server: `--server NAME` serves the server unchanged, without the rules of a view"
                .to_owned(),
            hint: Some("`servers` of the view says which servers it has".to_owned()),
            exit: Exit::Usage,
        });
    }
    serving::check_view(config, view)
}
