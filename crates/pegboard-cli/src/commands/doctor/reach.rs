//! Starts the servers and connects to them, all at once, and adds what happens to their sections.

use std::{collections::BTreeMap, path::Path, time::Duration};

use pegboard::{
    Config, Listing, Pegboard, ServerConfig, ServerName, State,
    config::Transport,
    pin::PinChange,
    status::{BoardStatus, ServerStatus},
};

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
    let toolset = board.toolset();
    let deadline = context.deadline;
    let asking = async {
        board.settle(deadline.remaining()).await;
        toolset.list(deadline.remaining()).await
    };
    let asked = context
        .work_showing_starts(&starting, "trying the servers", &board, asking)
        .await;
    let (listing, result) = match asked {
        Ending::Done(listing) => (Some(listing), Ok(())),
        Ending::TimeUp => (None, Err(Stopped::TimeUp)),
        Ending::Interrupted => (None, Err(Stopped::Interrupted)),
    };
    let tried = Tried {
        settings,
        config: &config,
        status: board.status(),
        listing,
        changes: board.pin_changes(),
        exchanged: logging::take_exchanged(),
        is_late: context.is_late(),
    };
    for section in sections.iter_mut() {
        tried.report(section).await;
    }
    if result.is_ok() && !tried.is_late {
        clock::check(machine, &tried.answering()).await;
    }
    let is_unfinished = tried.status.servers.iter().any(is_unfinished);
    close(&board).await;
    noise(sections);
    match is_unfinished {
        true => result.and(Err(Stopped::TimeUp)),
        false => result,
    }
}

/// What happened to the servers that were tried.
struct Tried<'a> {
    settings: &'a Settings,
    config: &'a Config,
    status: BoardStatus,
    /// `None` if there was no time for it.
    listing: Option<Listing>,
    changes: Vec<PinChange>,
    exchanged: BTreeMap<String, Exchanged>,
    /// Whether there is no time for more requests.
    is_late: bool,
}

impl Tried<'_> {
    /// Adds what happened to a server to its section.
    async fn report(&self, section: &mut ReportSection) {
        let own = section.server.as_deref();
        let Some((name, server)) = self.config.servers.iter().find(|(name, _)| Some(name.as_str()) == own) else {
            return;
        };
        let Some(found) = self.status.servers.iter().find(|one| one.name == *name) else {
            return;
        };
        let exchanged = self.exchanged.get(name.as_str()).cloned().unwrap_or_default();
        // The limit as it is written: that of this command may be longer.
        let written = self.settings.loaded.config.servers.get(name).unwrap_or(server);
        let limit = written.limits.connect_timeout;
        check_status(section, found, &server.transport, limit, &exchanged);
        if !self.is_late {
            better_path(section, name, server, self.settings).await;
        }
        if let Some(listing) = &self.listing
            && found.state == State::Ready
        {
            definitions::check(section, name.as_str(), &server.transport, listing, &self.changes);
        }
    }

    /// The servers that have answered.
    fn answering(&self) -> Vec<&ServerConfig> {
        let has_answered = |one: &&ServerStatus| matches!(one.state, State::Ready | State::NeedsAuth);
        let answering = self.status.servers.iter().filter(has_answered);
        answering.filter_map(|one| self.config.servers.get(&one.name)).collect()
    }
}

/// Whether the timeout passed before it was known how the server starts.
fn is_unfinished(status: &ServerStatus) -> bool {
    status.state == State::Connecting && status.last_error.is_none()
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
        _ if is_unfinished(status) => section.add_finding(
            Finding::new(
                &kinds::STILL_STARTING,
                "it was still being checked when the command ended",
            )
            .fix("raise `--timeout`"),
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
