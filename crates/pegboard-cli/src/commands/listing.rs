//! What the commands that list share: the listing of prompts and resources, unavailable servers, exit codes, layout.

use std::{collections::BTreeMap, time::Duration};

use pegboard::{Config, Failure, Kind, ServerName, State, Toolset, status::BoardStatus, toolset::Unavailable};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    consent,
    context::{Context, Ending, TIMEOUT, interruption_report, time_up},
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    output::{Paint, Report, one_line},
    settings::Settings,
};

/// A listing of prompts or resources. Its JSON is the command's document.
pub(super) trait Listed: Serialize + Sized {
    /// What is listed, in the singular.
    const NOUN: &'static str;

    /// Requests the listing from all servers.
    async fn request(toolset: &Toolset, patience: Duration) -> Self;

    /// The document of a command that could not list anything.
    fn empty(warnings: Vec<String>) -> Value;

    fn unavailable(&self) -> &[Unavailable];

    fn warnings(&mut self) -> &mut Vec<String>;

    /// The listing for people, with the `name` of each server; empty if nothing is listed.
    fn text(&self, name: &dyn Fn(&ServerName) -> String) -> String;
}

/// Lists prompts or resources.
pub(super) async fn run<L: Listed>(mut context: Context<'_>) -> Exit {
    let mut settings = Settings::load_or_hosts(&context.global);
    if let Err(exit) = consent::settle(&mut context, &mut settings, &|_| true).await {
        return exit;
    }
    let mut nothing = L::empty(settings.warnings().collect());
    settings.add_hosts_to(&mut nothing);
    let config = match settings.usable_config() {
        Ok(config) => config,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    settings.announce(&context.output);
    let starting = StartingServers::new(&config);
    let what = format!("asking the servers for their {}s", L::NOUN);
    let mut servers = context.servers(&settings).await;
    let (board, listing) = loop {
        let board = servers.board(config.clone()).open();
        let (toolset, patience) = (board.toolset(), context.deadline.remaining());
        let listing = L::request(&toolset, patience);
        let listing = context.work_showing_starts(&starting, &what, &board, listing).await;
        let is_missing = matches!(&listing, Ending::Done(listing) if !listing.unavailable().is_empty());
        if !is_missing || !context.has_lost(&settings, &mut servers).await {
            break (board, listing);
        }
    };
    let report = match listing {
        Ending::Interrupted => interruption_report(&context.output, &nothing),
        Ending::TimeUp => time_up(&context.output, &nothing),
        Ending::Done(mut found) => {
            let exit = exit(found.unavailable(), &config, context.is_late());
            if context.output.is_json() {
                found.warnings().splice(..0, settings.warnings());
                match settings.hosts() {
                    None => Report::json(exit, &found),
                    Some(_) => {
                        let mut document = json!(found);
                        settings.add_hosts_to(&mut document);
                        Report::json(exit, &document)
                    }
                }
            } else {
                let mut report = Report::new(exit);
                report.data = found.text(&|server| settings.marked_name(server.as_str()));
                if report.data.is_empty() && found.unavailable().is_empty() {
                    report = report.warning(&format!("no server that is switched on offers a {}", L::NOUN));
                }
                let own = servers.daemon.is_none().then(|| board.status());
                report = add_unavailable(report, found.unavailable(), context.is_late(), own.as_ref());
                let warnings = found.warnings().iter();
                warnings.fold(report, |report, warning| report.warning(warning))
            }
        }
    };
    context.close(&board, report).await
}

/// The exit code of a listing: success if every required server was listed, and at least one of those that are switched on. Misconfigured
/// servers are not among the latter.
pub(super) fn exit(unavailable: &[Unavailable], config: &Config, is_late: bool) -> Exit {
    let enabled = config.servers.values().filter(|server| server.enabled).count();
    let is_required = |server: &&Unavailable| {
        let name = server.server.as_str();
        let configured = config.servers.get(name).map(|server| server.required);
        let unusable = config.misconfigured.get(name).map(|server| server.required);
        configured.or(unusable).unwrap_or_default()
    };
    let mut missing: Vec<&Unavailable> = unavailable.iter().filter(is_required).collect();
    if missing.is_empty() {
        let unreached = unavailable.iter().filter(|server| !is_misconfigured(server));
        if unreached.count() < enabled || enabled == 0 {
            return Exit::Done;
        }
        missing.extend(unavailable);
    }
    if is_late {
        Exit::Timeout
    } else if missing.iter().all(|server| server.state == State::NeedsAuth) {
        Exit::SignIn
    } else {
        Exit::Unavailable
    }
}

/// Adds an error for each unavailable server. Misconfigured ones were reported when the config was loaded. `own` has the status of servers that end
/// with the command: when they would be started again is of no use.
pub(super) fn add_unavailable(
    mut report: Report,
    unavailable: &[Unavailable],
    is_late: bool,
    own: Option<&BoardStatus>,
) -> Report {
    for server in unavailable.iter().filter(|server| !is_misconfigured(server)) {
        // The server is stopped when the command ends, so its own hint to retry would not help.
        let hint = match is_late && server.state == State::Connecting {
            true => Some(TIMEOUT),
            false => server.hint.as_deref(),
        };
        let (name, state) = (&server.server, in_words(server.state));
        let why = own.and_then(|own| error_alone(own, server)).unwrap_or(&server.error);
        report = report.error(&format!("server `{name}` {state}: {why}"), hint);
    }
    report
}

/// The error of a server without when it is started again.
fn error_alone<'a>(status: &'a BoardStatus, server: &Unavailable) -> Option<&'a str> {
    let row = status.servers.iter().find(|row| row.name == server.server)?;
    let message = &row.last_error.as_ref()?.message;
    server.error.starts_with(message.as_str()).then_some(message)
}

/// The failure of a command that needs an unavailable server.
pub(super) fn unavailable_failure(server: &Unavailable, is_late: bool) -> Failure {
    let (kind, hint) = match server.state {
        State::NeedsAuth => (Kind::NeedsAuth, server.hint.as_deref()),
        _ if is_late => (Kind::Timeout, Some(TIMEOUT)),
        _ => (Kind::Unavailable, server.hint.as_deref()),
    };
    let failure = Failure::new(kind, message(server));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn message(server: &Unavailable) -> String {
    let (name, state) = (&server.server, in_words(server.state));
    format!("server `{name}` {state}: {}", server.error)
}

/// A state as the predicate of a sentence about a server.
pub(super) fn in_words(state: State) -> String {
    match state {
        State::NeedsAuth => "has no valid credentials".to_owned(),
        State::PendingTrust => "waits for approval".to_owned(),
        state => format!("is {}", state.as_str()),
    }
}

/// Whether a server cannot be used as it is configured, which was reported when the config was loaded.
pub(super) fn is_misconfigured(server: &Unavailable) -> bool {
    matches!(server.state, State::Misconfigured | State::PendingTrust)
}

/// One section per server: its `name` and the number of its items, then `body`. The items must be sorted by server. `all` has how many items of each
/// server there are, if some of them are left out.
pub(super) fn sections<T>(
    items: &[T],
    noun: &str,
    all: &BTreeMap<ServerName, usize>,
    server: impl Fn(&T) -> &ServerName,
    name: impl Fn(&ServerName) -> String,
    body: impl Fn(&[T]) -> String,
) -> String {
    let paint = Paint::detect(&std::io::stdout());
    let section = |group: &[T]| {
        let server = server(&group[0]);
        let count = match (group.len(), all.get(server)) {
            (few, Some(all)) if few < *all => format!("{few} of {all} {noun}s"),
            (1, _) => format!("1 {noun}"),
            (many, _) => format!("{many} {noun}s"),
        };
        format!("{} ({count})\n{}", paint.bold(&name(server)), body(group))
    };
    let groups = items.chunk_by(|a, b| server(a) == server(b));
    groups.map(section).collect::<Vec<_>>().join("\n")
}

/// The first line of a description.
pub(super) fn first_line(description: &str) -> String {
    one_line(description.trim_start().lines().next().unwrap_or_default())
}
