//! Starts the servers and connects to them, all at once, and adds what happens to their sections.

use std::{path::Path, time::Duration};

use pegboard::{Pegboard, ServerConfig, ServerName, State, config::Transport, status::ServerStatus};

use super::{
    clock, definitions,
    finding::{Finding, ReportLine, ReportSection},
    kinds::{self, ReachStep},
    other_paths, outage,
    stopped::Stopped,
    urls,
};
use crate::{
    commands::{
        context::{Context, Ending},
        starting::StartingServers,
    },
    logging::{self, Exchanged},
    settings::{self, Settings},
};

/// A start that takes longer than this is reported, and one that takes more than half of its limit: it fails when the machine is busy.
const SLOW: Duration = Duration::from_secs(10);
/// How long the servers get to end.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// Tries the servers whose sections have no problem yet. Servers of project files that are not approved are never among them.
pub(super) async fn servers(
    context: &mut Context<'_>,
    settings: &Settings,
    sections: &mut [ReportSection],
    machine: &mut ReportSection,
) -> Result<(), Stopped> {
    let mut config = settings.config_of_all().map_err(Stopped::Refused)?;
    let is_tried = |name: &ServerName| {
        let own = sections
            .iter()
            .find(|section| section.server.as_deref() == Some(name.as_str()));
        own.is_some_and(|section| !section.is_blocked())
    };
    config.servers.retain(|name, server| server.enabled && is_tried(name));
    config.misconfigured.clear();
    if config.servers.is_empty() {
        return Ok(());
    }
    let starting = StartingServers::new(&config);
    let board = settings::whole_board(config.clone()).open();
    let patience = context.deadline.remaining();
    let toolset = board.toolset();
    let asking = async {
        board.settle(patience).await;
        toolset.list(patience).await
    };
    let asked = context
        .work_showing_starts(&starting, "trying the servers", &board, asking)
        .await;
    let result = match asked {
        Ending::Interrupted => Err(Stopped::Interrupted),
        Ending::TimeUp => Err(Stopped::TimeUp),
        Ending::Done(listing) => {
            let (status, changes) = (board.status(), board.pin_changes());
            let exchanged = logging::take_exchanged();
            for section in sections.iter_mut() {
                let Some(name) = section.server.clone() else { continue };
                let Some((name, server)) = config.servers.iter().find(|(known, _)| known.as_str() == name) else {
                    continue;
                };
                let Some(found) = status.servers.iter().find(|one| one.name == *name) else {
                    continue;
                };
                let exchanged = exchanged.get(name.as_str()).cloned().unwrap_or_default();
                // The limit as it is written: that of this command may be longer.
                let limit = settings
                    .loaded
                    .config
                    .servers
                    .get(name)
                    .unwrap_or(server)
                    .limits
                    .connect_timeout;
                check_status(section, found, &server.transport, limit, &exchanged);
                better_path(section, name, server, settings).await;
                if found.state == State::Ready {
                    definitions::check(section, name.as_str(), &server.transport, &listing, &changes);
                }
            }
            let has_answered = |one: &&ServerStatus| matches!(one.state, State::Ready | State::NeedsAuth);
            let answering = status.servers.iter().filter(has_answered);
            let answering: Vec<&ServerConfig> = answering.filter_map(|one| config.servers.get(&one.name)).collect();
            clock::check(machine, &answering).await;
            Ok(())
        }
    };
    close(&board).await;
    noise(sections);
    result
}

async fn close(board: &Pegboard) {
    // What does not end in time is killed when the board is dropped.
    let _ = tokio::time::timeout(SHUTDOWN, board.shutdown()).await;
}

/// The steps up to the listing, by the state of the server.
fn check_status(
    section: &mut ReportSection,
    status: &ServerStatus,
    transport: &Transport,
    limit: Duration,
    exchanged: &Exchanged,
) {
    match (status.state, &status.last_error) {
        (State::Ready, _) => {
            report_ready(section, status, transport, limit);
            // Logs in the form of JSON are the usual case.
            if let Some(json) = &exchanged.other_json {
                section.add_finding(stdout_noise(&format!(
                    "JSON that is no message to stdout, such as: {json}"
                )));
            }
        }
        (State::Connecting, _) => section.add_finding(
            Finding::new(&kinds::SILENT, "it was still starting when the time was up")
                .fix("raise `--timeout`, or `connect_timeout` of the server"),
        ),
        (_, Some(error)) => {
            section.add_finding(outage::finding(status.name.as_str(), transport, error, exchanged));
        }
        (state, None) => section.add_finding(Finding::new(&kinds::START_FAILED, format!("it is {}", state.as_str()))),
    }
}

fn report_ready(section: &mut ReportSection, status: &ServerStatus, transport: &Transport, limit: Duration) {
    let step = match transport {
        Transport::Stdio(_) => ReachStep::Start,
        Transport::Remote { .. } => ReachStep::Connection,
    };
    let took = Duration::from_secs_f64((status.ready_after_ms.unwrap_or_default() / 1000.0).clamp(0.0, 1e6));
    if took > SLOW.min(limit / 2) {
        section.add_finding(
            Finding::new(
                &kinds::SLOW_START,
                format!(
                    "it took {:.1} s to start, and its `connect_timeout` is {} s",
                    took.as_secs_f64(),
                    limit.as_secs_f64()
                ),
            )
            .fix("install the server, and name its program in `command`; or raise `connect_timeout`"),
        );
    } else {
        section.add_fine(step, "it answers");
    }
    let version = status.protocol_version.as_deref().unwrap_or("an unknown version");
    let era = status.era.map_or("unknown", pegboard::status::Era::as_str);
    let who = status
        .server_info
        .as_ref()
        .map(|info| format!("{}, ", format!("{} {}", info.name, info.version).trim()));
    section.add_fine(
        ReachStep::Handshake,
        format!("{}protocol {version} ({era})", who.unwrap_or_default()),
    );
    let counts = [
        (status.tools, "tool"),
        (status.resources, "resource"),
        (status.prompts, "prompt"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if !counts.is_empty() {
        section.add_fine(ReachStep::List, counts.join(", "));
    }
}

/// Adds the address that works as the fix of one that was not found.
async fn better_path(section: &mut ReportSection, name: &ServerName, server: &ServerConfig, settings: &Settings) {
    let is_it =
        |line: &&mut ReportLine| matches!(line, ReportLine::Found(found) if found.kind.id == kinds::PATH_NOT_FOUND.id);
    let Some(ReportLine::Found(finding)) = section.lines.iter_mut().find(is_it) else {
        return;
    };
    let Some(url) = other_paths::find(server).await else {
        return;
    };
    let origin = settings.loaded.origins.get(name).map(|origin| Path::new(&origin.file));
    let known = server.transport.endpoint().map(|endpoint| endpoint.url.expose());
    let change = origin
        .zip(known)
        .and_then(|(file, known)| urls::with_path(file, name.as_str(), known, &url));
    let (advice, remedy) = change.unzip();
    let other = || {
        format!(
            "write a URL with the path `{}`, where an MCP server answers",
            url.path()
        )
    };
    finding.fix = Some(advice.unwrap_or_else(other));
    finding.remedy = remedy;
}

/// Adds the text that servers printed where messages belong.
fn noise(sections: &mut [ReportSection]) {
    for (server, line) in logging::stdout_noise() {
        let own = sections
            .iter_mut()
            .find(|section| section.server.as_deref() == Some(server.as_str()));
        let Some(section) = own else { continue };
        let says_so = [kinds::STDOUT_NOISE.id, kinds::STDOUT_FLOOD.id];
        if !section.findings().any(|finding| says_so.contains(&finding.kind.id)) {
            section.add_finding(stdout_noise(&format!("text to stdout, such as: {line}")));
        }
    }
}

fn stdout_noise(what: &str) -> Finding {
    Finding::new(&kinds::STDOUT_NOISE, format!("it prints {what}"))
        .fix("print it to stderr: `print(…, file=sys.stderr)`, `console.error(…)`")
}
