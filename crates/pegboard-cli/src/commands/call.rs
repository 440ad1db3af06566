//! `pegboard call`: calls one tool.

mod approval;
pub(super) mod elicitation;
mod input;

use std::time::Duration;

use pegboard::{
    Arguments, Config, Event, Events, Failure, Kind, Outcome, Pegboard, Reply, State, ToolCall, Toolset, View,
    config::Scope, deadline::Deadline, status::ServerStatus, watch::Progress,
};
use tokio::{sync::mpsc, time::Instant};

use super::{
    context::{Context, Ending, TIMEOUT, cancelled, late},
    starting::StartingServers,
};
use crate::{
    cli, daemon,
    exit::Exit,
    output::{Output, Report, as_data},
    settings::{self, Settings},
};

/// The limit for a call that is only made to be recorded.
const RECORDING: Duration = Duration::from_secs(2);
/// What a model is told if a call needs a sign-in.
const ADVICE: &str = "A person must act first. Go on without it.";

pub(super) async fn run(mut context: Context<'_>, options: cli::Call) -> Exit {
    let started = Instant::now();
    let unanswered = |outcome| Reply::unanswered("call-1", &options.tool, outcome, started.elapsed());
    let settings = Settings::load(&context.global);
    let (mut config, given) = match prepare(&mut context, &settings, &options).await {
        Ok(ready) => ready,
        Err((failure, exit)) => {
            record_refusal(&settings, &options.tool).await;
            let mut reply = unanswered(Outcome::Refused(failure));
            reply.server = settings.misconfigured(|server| is_of(&options.tool, server)).cloned();
            let mut report = report(&context.output, &reply);
            report.exit = exit;
            return context.print(report).await;
        }
    };
    settings.announce(&context.output);
    settings.guide(&mut config);
    let starting = StartingServers::new(&config);
    let what = format!("calling {}", options.tool);
    let mut servers = context.servers(&settings).await;
    let (board, reply) = loop {
        let user = elicitation::Terminal::new(&context.output, options.json.as_deref() == Some("-"));
        let board = servers.board(config.clone()).tools_only().host(user).open();
        // Result limits are for models. The command prints whole results unless `--max-result` is given.
        let view = match options.max_result {
            None => View::new().whole_results(),
            Some(bytes) => View::new().cut_results(bytes),
        };
        let view = view.approver(approval::Approval::new(options.yes, &context.output));
        let toolset = board.toolset_with(view);
        let mut events = board.events();
        let (limit, output) = (context.deadline, context.output.clone());
        let making = Box::pin(make(toolset, &options, given.clone(), limit, output));
        let reply = match context.waiting(&starting, &what, &board, making).await {
            Ending::Done(reply) => reply,
            Ending::TimeUp => unfinished(unanswered, late(), &mut events).await,
            Ending::Interrupted => unfinished(unanswered, cancelled(), &mut events).await,
        };
        if is_without_server(&reply) && context.has_lost(&mut servers).await {
            continue;
        }
        break match &servers.daemon {
            None => (board, reply),
            Some(daemon) if reply.outcome.kind() == Kind::UnknownTool && may_be_asked_for(&options.tool, &config) => {
                (board, daemon.explain_unknown(reply).await)
            }
            Some(_) => (board, daemon::as_made_here(reply)),
        };
    };
    let reply = explained(reply, &board.status().servers, context.is_late());
    let mut report = report(&context.output, &reply);
    if !context.output.is_json() {
        report = match reply.outcome.kind() {
            Kind::UnknownTool | Kind::NeedsAuth if reply.server.is_none() => add_unavailable(&board, &settings, report),
            Kind::Timeout if context.is_late() => report.hint(TIMEOUT),
            _ => report,
        };
        if let Some(repaired) = &reply.repaired {
            report = report.warning(repaired);
        }
    }
    context.close(&board, report).await
}

/// Leaves a record of a call whose server cannot be used as it is configured. No server is started for it.
async fn record_refusal(settings: &Settings, tool: &str) {
    let Ok(mut config) = settings.shown() else { return };
    let is_meant = settings.misconfigured(|server| is_of(tool, server)).is_some();
    if config.audit.is_none() || !is_meant {
        return;
    }
    config.servers.clear();
    let board = settings::board(config).tools_only().open();
    board.toolset().call(ToolCall::new(tool).timeout(RECORDING)).await;
    board.shutdown().await;
}

/// The reply to a call whose future was dropped. If its last event names a server, the call may have been sent.
async fn unfinished(unanswered: impl Fn(Outcome) -> Reply, failure: Failure, events: &mut Events) -> Reply {
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
        if let Event::CallCompleted {
            server: Some(server),
            tool,
            ..
        } = event
        {
            let text = format!(
                "{}. The call may have been carried out. Check the state before repeating it.",
                failure.message
            );
            let mut reply = unanswered(Outcome::Lost(Failure::new(failure.kind, text).after_sending()));
            (reply.server, reply.tool) = (Some(server), tool);
            return reply;
        }
    }
    unanswered(Outcome::Refused(failure))
}

/// Whether the daemon can say why it hides a tool without starting a server for the question.
fn may_be_asked_for(tool: &str, config: &Config) -> bool {
    let enabled = || config.servers.iter().filter(|(_, server)| server.enabled);
    let is_named = enabled().any(|(name, _)| is_of(tool, name.as_str()));
    enabled()
        .filter(|(name, _)| !is_named || is_of(tool, name.as_str()))
        .all(|(_, server)| server.policy.scope != Scope::Session)
}

/// Whether a call was not sent because its server was not there.
fn is_without_server(reply: &Reply) -> bool {
    use Kind::{RestartInProgress, Transport, Unavailable, UnknownTool};
    let kind = reply.outcome.kind();
    matches!(reply.outcome, Outcome::Refused(_))
        && matches!(kind, Unavailable | RestartInProgress | Transport | UnknownTool)
}

/// Explains a refusal that a missing server caused: the deadline passed while servers were starting, or all of them need a sign-in.
fn explained(mut reply: Reply, servers: &[ServerStatus], is_late: bool) -> Reply {
    let Outcome::Refused(failure) = &mut reply.outcome else {
        return reply;
    };
    let starting = servers.iter().filter(|server| server.state == State::Connecting);
    let starting: Vec<String> = starting.map(|server| format!("`{}`", server.name)).collect();
    let is_without_server = matches!(
        failure.kind,
        Kind::Unavailable | Kind::RestartInProgress | Kind::UnknownTool | Kind::Timeout
    );
    if is_late && is_without_server && !starting.is_empty() {
        failure.kind = Kind::Timeout;
        failure.message = match starting.as_slice() {
            [one] => format!("server {one} was still starting when the time was up"),
            more => format!("servers {} were still starting when the time was up", more.join(", ")),
        };
        // The server is stopped when the command ends, so its own hint to retry would not help.
        let is_named = servers.iter().any(|server| is_of(&reply.asked, server.name.as_str()));
        failure.hint =
            (!is_named).then(|| "name the server, as in `SERVER.TOOL`, so that no other is waited for".to_owned());
    } else if failure.kind == Kind::UnknownTool && !servers.is_empty() {
        let mut enabled = servers.iter().filter(|server| server.state != State::Disabled);
        if enabled.all(|server| server.state == State::NeedsAuth) {
            failure.kind = Kind::NeedsAuth;
            failure.hint = servers
                .iter()
                .find_map(|server| server.last_error.as_ref()?.hint.clone());
        }
    }
    reply
}

/// Loads the config and the arguments, or returns why the call cannot be made.
async fn prepare(
    context: &mut Context<'_>,
    settings: &Settings,
    options: &cli::Call,
) -> Result<(Config, Option<Arguments>), (Failure, Exit)> {
    let complaint = match settings.usable() {
        Err(complaint) => Err(complaint),
        Ok(config) => {
            let is_meant = |server: &str| is_of(&options.tool, server);
            let is_usable = config.servers.keys().any(|server| is_meant(server.as_str()));
            match settings.misconfigured(is_meant) {
                // `mcp__git__log` can be a tool of `mcp` or of `git`.
                Some(server) if !is_usable => Err(settings.missing(server.as_str())),
                _ => Ok(config),
            }
        }
    };
    let config = complaint.map_err(|complaint| {
        let failure = Failure::new(complaint.kind(), complaint.message);
        (with_hint(failure, complaint.hint), complaint.exit)
    })?;
    let given = match context.work(input::read(options.json.as_deref())).await {
        Ending::Done(given) => given.map_err(|problem| {
            let failure = Failure::new(Kind::InvalidArguments, problem);
            failure.hint("write `--json '{\"key\": \"value\"}'`, or KEY=VALUE for each argument")
        }),
        Ending::TimeUp => Err(late()),
        Ending::Interrupted => Err(cancelled()),
    };
    match given {
        Ok(given) => Ok((config, given)),
        Err(failure) => Err((failure.clone(), Exit::of(failure.kind))),
    }
}

/// Makes the call. Dropping this cancels it.
async fn make(
    toolset: Toolset,
    options: &cli::Call,
    given: Option<Arguments>,
    deadline: Deadline,
    output: Output,
) -> Reply {
    let call = ToolCall::new(&options.tool);
    let started = Instant::now();
    let mut unknown = Vec::new();
    let call = match (given, &options.text) {
        (Some(arguments), _) => {
            // If the tool does not exist, the call below reports it.
            if let Ok(tool) = toolset.tool(&options.tool, deadline.remaining()).await {
                unknown = arguments.unknown(&tool.input_schema.value());
            }
            call.arguments(arguments)
        }
        (None, Some(text)) => call.text(text),
        (None, None) if options.pairs.is_empty() => call,
        (None, None) => match typed(&toolset, options, deadline).await {
            Ok((arguments, names)) => {
                unknown = names;
                call.arguments(arguments)
            }
            // The call itself reports it, and the audit log has it. Should the tool appear meanwhile, the call still fails.
            Err(failure) => call.arguments(Unusable(failure.message)),
        },
    };
    if deadline.has_passed() {
        // Finding the tool took all the time there was.
        return Reply::unanswered(call.id, call.name, Outcome::Refused(late()), started.elapsed());
    }
    // Only the newest step is shown, so a short queue is enough.
    let (steps, shown) = mpsc::channel(8);
    let call = call.timeout(deadline.remaining()).progress(steps);
    let (mut reply, ()) = tokio::join!(toolset.call(call), show_progress(shown, output, &options.tool));
    // An `InvalidArguments` reply already names them.
    if reply.outcome.kind() != Kind::InvalidArguments {
        reply.warnings.extend(unknown);
    }
    reply
}

/// Arguments that could not be read, and why.
struct Unusable(String);

impl TryFrom<Unusable> for Arguments {
    type Error = String;

    fn try_from(unusable: Unusable) -> Result<Self, String> {
        Err(unusable.0)
    }
}

/// Converts KEY=VALUE pairs to the types that the tool's schema declares. Also returns warnings about undeclared arguments.
async fn typed(
    toolset: &Toolset,
    options: &cli::Call,
    deadline: Deadline,
) -> Result<(Arguments, Vec<String>), Failure> {
    let tool = toolset.tool(&options.tool, deadline.remaining()).await?;
    let pairs = options.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let schema = tool.input_schema.value();
    let arguments = Arguments::from_pairs(pairs, &schema)
        .map_err(|error| Failure::new(Kind::InvalidArguments, error.to_string()))?;
    let unknown = arguments.unknown(&schema);
    Ok((arguments, unknown))
}

/// Shows progress until the call has ended.
async fn show_progress(mut steps: mpsc::Receiver<Progress>, output: Output, tool: &str) {
    while let Some(step) = steps.recv().await {
        let message = step.message.unwrap_or_default();
        output.step(&format!("calling {tool}"), step.progress, step.total, &message);
    }
}

/// Returns `true` if the tool's name has this server's prefix, in any naming style.
fn is_of(tool: &str, server: &str) -> bool {
    let styles = [("", "."), ("", "__"), ("mcp__", "__"), ("mcp_", "_")];
    styles.iter().any(|(before, after)| {
        let rest = tool.strip_prefix(before).and_then(|rest| rest.strip_prefix(server));
        rest.is_some_and(|rest| rest.starts_with(after))
    })
}

fn report(output: &Output, reply: &Reply) -> Report {
    let exit = Exit::of_outcome(&reply.outcome);
    if output.is_json() {
        return Report::json(exit, reply);
    }
    let full = reply.text();
    let text = &full;
    let report = match &reply.outcome {
        Outcome::Done(_) => {
            let mut report = Report::new(exit);
            report.data = as_data(text).into_owned();
            if !report.data.is_empty() && !report.data.ends_with('\n') {
                report.data.push('\n');
            }
            report
        }
        Outcome::ToolFailed(_) => Report::new(exit).error(&format!("{} failed: {text}", reply.name), None),
        outcome => {
            // The advice is for models; for a person there is the hint.
            let text = match outcome.hint() {
                Some(_) if outcome.kind() == Kind::NeedsAuth => text.strip_suffix(ADVICE),
                _ => None,
            };
            let text = text.map_or(full.as_str(), |text| text.trim_end().trim_end_matches('.'));
            Report::new(exit).error(text, outcome.hint())
        }
    };
    reply
        .warnings
        .iter()
        .fold(report, |report, warning| report.warning(warning))
}

/// Adds a warning for each server that was unavailable when an unknown tool was searched.
fn add_unavailable(board: &Pegboard, settings: &Settings, mut report: Report) -> Report {
    // Misconfigured servers were reported when the config was loaded.
    let misconfigured = |server: &ServerStatus| settings.loaded.config.misconfigured.contains_key(&server.name);
    for server in board
        .status()
        .servers
        .into_iter()
        .filter(|server| !misconfigured(server))
    {
        let why = match (&server.last_error, server.state) {
            (Some(error), _) => &error.message,
            (None, State::Connecting) => "it is still starting",
            (None, _) => continue,
        };
        report = report.warning(&format!("server `{}` could not be asked: {why}", server.name));
    }
    report
}

fn with_hint(failure: Failure, hint: Option<String>) -> Failure {
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_any_style_tells_its_server() {
        for tool in ["git.log", "git__log", "mcp__git__log", "mcp_git_log"] {
            assert!(is_of(tool, "git"), "{tool}");
        }
        for tool in ["log", "github.log", "git_log", "mcp.git.log"] {
            assert!(!is_of(tool, "git"), "{tool}");
        }
    }
}
