//! `torture`: tries an MCP server with the cases of [`pegboard_torture`], and prints a score card.

mod card;
mod last_score;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use pegboard::{
    ServerName,
    config::{Command, RemoteKind, ServerConfig, Transport},
};
use pegboard_hosts::executable::{is_executable, resolve};
use pegboard_torture::{Card, Era, Options, Target, case_names};
use tokio::time::Instant;

pub(super) use last_score::read as last_score;

use super::{
    command::Run,
    context::{Context, Ending, interruption_report, time_up},
    server_tls,
    servers::shown_target,
};
use crate::{
    cli::duration,
    exit::Exit,
    output::{self, Paint, Report},
    settings::{Complaint, Settings},
};

/// The name of a server that is given by its URL or its command line.
const GIVEN: &str = "torture";
/// What the library shows in place of a secret.
const HIDDEN: &str = "****";

/// Try a server with faults and protocol cases
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard torture 'python server.py' --tool slow_search\n  pegboard torture http://127.0.0.1:8080/mcp --junit report.xml"
)]
pub(crate) struct Torture {
    /// A configured server, a URL, or a command line in quotes
    server: String,
    /// Call this tool too; may be repeated
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Call every tool, not only read-only ones
    #[arg(short, long)]
    yes: bool,
    /// The protocol era to try: both, modern or legacy
    #[arg(long, value_enum, default_value_t = Eras::Both, hide_possible_values = true, hide_default_value = true)]
    era: Eras,
    /// Run only this case or group; may be repeated
    #[arg(long = "only", value_name = "CASE")]
    only: Vec<String>,
    /// How long each response may take (10s)
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", hide_default_value = true)]
    wait: Duration,
    /// Write the results as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Which protocol eras are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Eras {
    /// Those that the server speaks.
    Both,
    /// The era without a handshake.
    Modern,
    /// The era with a handshake.
    Legacy,
}

impl Run for Torture {
    /// Tries a server.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let mut card = Card {
            server: show(&context, &self.server),
            ..Card::default()
        };
        let found = match check(&self).and_then(|()| find(&context, &self.server)) {
            Ok(found) => {
                card.transport = found.transport;
                found
            }
            Err(complaint) => return context.refuse(&complaint, &card).await,
        };
        let started = Instant::now();
        let output = context.output.clone();
        let options = Options {
            only: &self.only,
            tools: &self.tools,
            all_tools: self.yes,
            era: match self.era {
                Eras::Both => None,
                Eras::Modern => Some(Era::Modern),
                Eras::Legacy => Some(Era::Legacy),
            },
            wait: self.wait,
        };
        let trying = pegboard_torture::run(&found.target, &options, |what| output.show_waiting(&what));
        let tried = context.work(trying).await;
        let report = match tried {
            Ending::Interrupted => interruption_report(&context.output, &card),
            Ending::TimeUp => time_up(&context.output, &card),
            Ending::Done(Err(why)) => report_unavailable(&context, &card, &why),
            Ending::Done(Ok(tried)) => {
                card.eras = tried.eras;
                card.server_info = tried.server_info;
                card.fill(tried.cases);
                card.duration_ms = millis(started);
                let report = finish(&context, &self, &card);
                match &found.configured {
                    // A part of the cases gives no grade of the server.
                    Some((name, config)) if self.only.is_empty() => match last_score::keep(name, config, &card) {
                        Ok(()) => report,
                        Err(error) => report.warning(&format!("the result is not kept for the dashboard: {error}")),
                    },
                    _ => report,
                }
            }
        };
        context.print(report).await
    }
}

/// Refuses names of cases that do not exist.
fn check(torture: &Torture) -> Result<(), Complaint> {
    let names = case_names();
    match torture.only.iter().find(|word| !names.contains(&word.as_str())) {
        None => Ok(()),
        Some(word) => Err(Complaint {
            message: format!("there is no case `{word}`"),
            hint: Some(format!("the cases and groups are {}", names.join(", "))),
            exit: Exit::Usage,
        }),
    }
}

/// Whether a server is given by its URL or its command line.
fn is_given(server: &str) -> bool {
    server.contains("://") || server.contains(char::is_whitespace)
}

/// The settings of this run, with a server that is given by its URL or its command line.
fn settings_with(context: &Context<'_>, server: &str) -> Settings {
    let mut global = context.global.clone();
    if is_given(server) {
        global.servers.push(format!("{GIVEN}={server}"));
    }
    Settings::load_for(&global, server)
}

/// A server as it was given, or as `list` shows it if that hides a secret: reports are read by others, and JUnit files are kept.
fn show(context: &Context<'_>, server: &str) -> String {
    if !is_given(server) {
        return server.to_owned();
    }
    let settings = settings_with(context, server);
    match shown_target(&settings.loaded.show()["servers"][GIVEN]) {
        Some(shown) if shown.contains(HIDDEN) => shown,
        Some(_) => server.to_owned(),
        // It cannot be used, so nothing is known of its parts.
        None => match server.split_once("://") {
            Some((before, _)) => format!("{before}://{HIDDEN}"),
            None => server.to_owned(),
        },
    }
}

/// What a name, a URL or a command line means.
struct Found {
    target: Target,
    transport: &'static str,
    /// The server of the config that it is.
    configured: Option<(ServerName, ServerConfig)>,
}

fn find(context: &Context<'_>, server: &str) -> Result<Found, Complaint> {
    let is_given = is_given(server);
    let name = if is_given { GIVEN } else { server };
    let settings = settings_with(context, server);
    let config = settings.selected_config()?;
    let found = config.servers.iter().find(|(known, _)| known.as_str() == name);
    if let Some((name, found)) = found {
        return Ok(Found {
            target: target(found)?,
            transport: found.transport.kind(),
            configured: (!is_given).then(|| (name.clone(), found.clone())),
        });
    }
    let mut complaint = settings.missing_server_complaint(name);
    if is_given || config.misconfigured.keys().any(|known| known.as_str() == name) {
        return Err(complaint);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if resolve(name, &path, None).is_some_and(|file| is_executable(&file)) {
        let command = Command::new(name);
        return Ok(Found {
            target: Target::stdio(&command),
            transport: "stdio",
            configured: None,
        });
    }
    complaint.message = match name.contains(['/', '\\']) {
        true => format!("{}, and no program at this path", complaint.message),
        false => format!("{}, and no program of this name on PATH", complaint.message),
    };
    Err(complaint)
}

fn target(server: &ServerConfig) -> Result<Target, Complaint> {
    let refused = |message: String, hint: &str| Complaint {
        message,
        hint: Some(hint.to_owned()),
        exit: Exit::Usage,
    };
    match &server.transport {
        Transport::Stdio(command) => Ok(Target::stdio(command)),
        Transport::Remote {
            kind: RemoteKind::Auto | RemoteKind::Http,
            endpoint,
        } => server_tls::client_config(&endpoint.tls)
            .and_then(|tls| Target::http(endpoint, tls))
            .map_err(|why| refused(why, "see `pegboard torture --help`")),
        other @ Transport::Remote { .. } => Err(refused(
            format!("`torture` does not speak {}", other.kind()),
            "try the server over stdio or streamable HTTP",
        )),
    }
}

fn report_unavailable(context: &Context<'_>, card: &Card, why: &str) -> Report {
    let server = &card.server;
    let is_configured = Settings::load_for(&context.global, server)
        .selected_config()
        .is_ok_and(|config| config.servers.keys().any(|known| known.as_str() == server));
    let doctor = match is_configured {
        true => format!("pegboard doctor {server}"),
        false if server.contains(HIDDEN) && server.contains("://") => "pegboard --server it=URL doctor it".to_owned(),
        false if server.contains(HIDDEN) || server.contains('\'') => {
            "pegboard --server it=COMMAND doctor it".to_owned()
        }
        false => format!("pegboard --server it='{server}' doctor it"),
    };
    super::context::empty(&context.output, Exit::Unavailable, card).error(
        &format!("no session with {server} can be opened\n{why}"),
        Some(&format!("`{doctor}` says more about a server that does not start")),
    )
}

/// The report of all results. The JUnit file is written first.
fn finish(context: &Context<'_>, torture: &Torture, card: &Card) -> Report {
    let exit = if card.failed > 0 { Exit::ToolError } else { Exit::Done };
    let mut report = match context.output.is_json() {
        true => Report::json(exit, card),
        false => {
            let mut report = Report::new(exit);
            let paint = Paint::detect(&std::io::stdout());
            report.data = card::text(card, context.output.verbose > 0, output::width(), paint);
            report
        }
    };
    if let Some(path) = &torture.junit
        && let Err(error) = std::fs::write(path, card.junit())
    {
        report.exit = Exit::Usage;
        report = report.error(&format!("{} cannot be written: {error}", path.display()), None);
    }
    report
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
