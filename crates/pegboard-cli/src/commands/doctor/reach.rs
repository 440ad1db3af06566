//! Starts the servers and connects to them, all at once, and adds what happens to their sections. Those that run in the user's daemon are asked
//! through it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard::{
    Config, Listing, Pegboard, ServerConfig, ServerName, State, config::Transport, deadline::Deadline, pin::PinChange,
    status::ServerStatus,
};
use pegboard_hosts::{ServersFile, secret_reference};
use serde_json::{Value, json};

use super::{
    clock, definitions,
    finding::{Finding, Remedy, ReportLine, ReportSection},
    handshake::Handshake,
    kinds::{self, ReachStep},
    other_paths, outage,
    running::Running,
    stopped::Stopped,
    urls,
};
use crate::{
    commands::{
        context::{Context, Ending},
        needed_variables,
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
    let mut running = Running::find(context, settings, &config).await;
    let starting = StartingServers::new(&config);
    let mut own = config.clone();
    let through_daemon = running.as_ref().filter(|running| running.has_any()).map(|running| {
        let (daemon, held) = running.split(&mut own);
        daemon.board(held).open()
    });
    let board = settings::whole_board(own).open();
    let deadline = context.deadline;
    let asking = async {
        let settling = board.settle(deadline.remaining());
        let listing = ask(through_daemon.as_ref(), deadline);
        let ((), of_daemon) = tokio::join!(settling, listing);
        (board.toolset().list(deadline.remaining()).await, of_daemon)
    };
    let asked = context
        .work_showing_starts(&starting, "trying the servers", &board, asking)
        .await;
    let (listings, result) = match asked {
        Ending::Done((listing, of_daemon)) => (std::iter::once(listing).chain(of_daemon).collect(), Ok(())),
        Ending::TimeUp => (Vec::new(), Err(Stopped::TimeUp)),
        Ending::Interrupted => (Vec::new(), Err(Stopped::Interrupted)),
    };
    if let Some(running) = &mut running {
        running.refresh().await;
    }
    let mut status = board.status().servers;
    status.extend(through_daemon.iter().flat_map(|board| board.status().servers));
    let tried = Tried {
        settings,
        config: &config,
        configs: context.global.configs.clone(),
        status,
        running,
        listings,
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
    let is_unfinished = tried.status.iter().any(is_unfinished);
    close(&board).await;
    if let Some(board) = &through_daemon {
        close(board).await;
    }
    noise(sections);
    match is_unfinished {
        true => result.and(Err(Stopped::TimeUp)),
        false => result,
    }
}

/// The tools of the servers that are reached through the daemon.
async fn ask(through_daemon: Option<&Pegboard>, deadline: Deadline) -> Option<Listing> {
    Some(through_daemon?.toolset().list(deadline.remaining()).await)
}

/// What happened to the servers that were tried.
struct Tried<'a> {
    settings: &'a Settings,
    config: &'a Config,
    /// The config files that were named.
    configs: Vec<PathBuf>,
    status: Vec<ServerStatus>,
    /// Those of them that run in the daemon.
    running: Option<Running>,
    /// The tools of the servers of this process, and of those of the daemon; none if there was no time for it.
    listings: Vec<Listing>,
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
        let Some(found) = self.status.iter().find(|one| one.name == *name) else {
            return;
        };
        let exchanged = self.exchanged.get(name.as_str()).cloned().unwrap_or_default();
        // The limit as it is written: that of this command may be longer.
        let written = self.settings.loaded.config.servers.get(name).unwrap_or(server);
        let limit = written.limits.connect_timeout;
        let in_daemon = self
            .running
            .as_ref()
            .and_then(|running| running.handshake(name.as_str()));
        let handshake = in_daemon.unwrap_or_else(|| Handshake::from(found));
        check_status(section, found, &handshake, self.config, limit, &exchanged);
        pass_on_stored(section, name, server, &self.configs);
        if !self.is_late {
            better_path(section, name, server, self.settings).await;
        }
        let outage = self.running.as_ref().and_then(|running| running.outage(name.as_str()));
        if let Some(outage) = outage.filter(|_| found.state == State::Ready) {
            let message = format!("it works here, and in the daemon it is down: {outage}");
            section.add_finding(
                Finding::new(&kinds::DAEMON_DIFFERS, message)
                    .fix("pegboard daemon restart: the daemon has the environment of the program that started it"),
            );
        }
        if found.state == State::Ready {
            for listing in &self.listings {
                definitions::check(section, name.as_str(), &server.transport, listing, &self.changes);
            }
        }
    }

    /// The servers that have answered.
    fn answering(&self) -> Vec<&ServerConfig> {
        let has_answered = |one: &&ServerStatus| matches!(one.state, State::Ready | State::NeedsAuth);
        let answering = self.status.iter().filter(has_answered);
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
    handshake: &Handshake,
    config: &Config,
    limit: Duration,
    exchanged: &Exchanged,
) {
    match (status.state, &status.last_error, config.servers.get(&status.name)) {
        (State::Ready, _, Some(server)) => {
            report_ready(section, status, handshake, &server.transport, limit);
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
        (_, Some(error), _) => section.add_finding(outage::finding(&status.name, config, error, exchanged)),
        (state, None, _) => {
            section.add_finding(Finding::new(&kinds::START_FAILED, format!("it is {}", state.as_str())))
        }
    }
}

fn report_ready(
    section: &mut ReportSection,
    status: &ServerStatus,
    handshake: &Handshake,
    transport: &Transport,
    limit: Duration,
) {
    let step = match transport {
        Transport::Stdio(_) => ReachStep::Start,
        Transport::Remote { .. } => ReachStep::Connection,
    };
    let took = Duration::from_secs_f64((handshake.took_ms.unwrap_or_default() / 1000.0).clamp(0.0, 1e6));
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
        let place = handshake.place.as_ref().map(|place| format!(", as {place}"));
        section.add_fine(step, format!("it answers{}", place.unwrap_or_default()));
    }
    let version = handshake.version.as_deref().unwrap_or("an unknown version");
    let era = handshake.era.as_deref().unwrap_or("unknown");
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

/// Adds the remedy of a server that asked for secrets which are all stored, if no other program reads its file.
fn pass_on_stored(section: &mut ReportSection, name: &ServerName, server: &ServerConfig, configs: &[PathBuf]) {
    let asks = |line: &&mut ReportLine| matches!(line, ReportLine::Found(found) if !found.asked_for.is_empty());
    let (Some(ReportLine::Found(finding)), Transport::Stdio(command)) =
        (section.lines.iter_mut().find(asks), &server.transport)
    else {
        return;
    };
    let files = ServersFile::with(configs, name.as_str()).unwrap_or_default();
    let Some(file) = files.first().filter(|file| !file.is_shared()) else {
        return;
    };
    let secrets = &finding.asked_for;
    if !secrets.iter().all(|secret| needed_variables::is_stored(secret)) {
        return;
    }
    let env = ["servers", name.as_str(), "env"].map(str::to_owned).to_vec();
    let values = match command.env.is_empty() {
        true => {
            let references = secrets
                .iter()
                .map(|secret| (secret.clone(), json!(secret_reference(secret))));
            vec![(env, Value::Object(references.collect()))]
        }
        false => {
            let place = |secret: &String| [env.clone(), vec![secret.clone()]].concat();
            let values = secrets
                .iter()
                .map(|secret| (place(secret), json!(secret_reference(secret))));
            values.collect()
        }
    };
    finding.remedy = Some(Remedy::Set {
        file: file.path().to_owned(),
        values,
    });
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
