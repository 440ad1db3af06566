//! `pegboard call`: calls one tool.

mod advice;
mod approval;
mod arguments;
mod call_times;
pub(super) mod elicitation;
mod function_form;
mod given;
mod input;
mod large_integers;
mod load;
mod options;
mod quoting;
mod results;
mod tool_prefix;
mod unknown_server;
mod words;

use std::time::Duration;

use pegboard::{
    Arguments, Config, Event, Events, Failure, Kind, Outcome, Pegboard, Reply, ServerName, State, ToolCall, Toolset,
    View, config::Scope, deadline::Deadline, status::ServerStatus, watch::Progress,
};
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use super::{
    blobs,
    command::Run,
    consent,
    context::{Context, Ending, ServerSource, TIMEOUT, cancelled, late},
    listing,
    needed_variables::LastWords,
    starting::StartingServers,
};
use crate::{
    cli::or_raw,
    daemon::{self, RunningDaemon},
    exit::Exit,
    output::{Output, Report, check_out},
    settings::{self, Settings},
};
use advice::Situation;
use call_times::CallTimes;
pub(super) use options::Call;
use tool_prefix::is_of;
use words::Request;

/// The limit for a call that is only made to be recorded.
const RECORDING: Duration = Duration::from_secs(2);

impl Run for Call {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        match arg.get_id().as_str() {
            "output" => or_raw(arg),
            "headers" | "env" | "cwds" => arg.hide(false),
            _ => arg,
        }
    }

    async fn run(self, mut context: Context<'_>) -> Exit {
        let started = Instant::now();
        let mut settings = Settings::load_for(&context.global, &self.tool);
        let is_needed = consent::needed(&settings, |server| is_of(&self.tool, server));
        if let Err(exit) = consent::settle(&mut context, &mut settings, &is_needed).await {
            return exit;
        }
        let read = Request::read(&self.tool, &self.words, &|name| settings.has(name));
        let (request, problem) = match read {
            Ok(request) => (request, None),
            Err(problem) => (Request::new(&self.tool), Some(problem)),
        };
        let unanswered = |outcome| Reply::unanswered("call-1", &request.tool, outcome, started.elapsed());
        let (mut config, given) = match prepare(&mut context, &settings, &self, &request, problem).await {
            Ok(ready) => ready,
            Err((failure, exit)) => {
                record_refusal(&settings, &request.tool, failure.kind).await;
                let mut reply = unanswered(Outcome::Refused(failure));
                reply.server = settings
                    .find_misconfigured(|server| is_of(&request.tool, server))
                    .cloned();
                let mut report = results::report(&context.output, &self, &reply, None);
                report.exit = exit;
                return context.print(report).await;
            }
        };
        let named = config
            .servers
            .keys()
            .filter(|server| is_of(&request.tool, server.as_str()));
        let is_named = named.clone().next().is_some();
        settings.tell_only_of(named.map(ServerName::as_str));
        settings.announce(&context.output);
        settings.guide(&mut config);
        let needs_own_servers = self.raise_limit(&mut config);
        let starting = StartingServers::new(&config);
        let what = format!("calling {}", request.tool);
        let mut servers = match needs_own_servers {
            true => {
                if let Some(daemon) = context.running_servers(&settings).await.daemon {
                    context.output.note(&beside_daemon(daemon.pid()));
                }
                ServerSource::new(None)
            }
            false => context.servers(&settings).await,
        };
        let mut again = None;
        let mut times = CallTimes::default();
        let (board, toolset, reply) = loop {
            let user = elicitation::Terminal::new(
                &context.output,
                self.json.as_deref() == Some("-") || request.reads_stdin(),
            );
            let board = servers.board(config.clone()).tools_only().host(user).open();
            // Result limits are for models. The command prints whole results unless `--max-result` is given. An agent that reads its output has to
            // know which text is from outside, so fences stay.
            let view = match self.max_result {
                None => View::new().whole_results(),
                Some(bytes) => View::new().cut_results(bytes),
            };
            let view = view
                .keep_fences()
                .approver(approval::Approval::new(self.yes, &context.output));
            let toolset = board.toolset_with(view);
            let mut events = board.events();
            let (limit, output) = (context.deadline, context.output.clone());
            let is_in_daemon = servers.daemon.is_some();
            let making = Box::pin(make(
                toolset.clone(),
                &self,
                &request,
                given.clone(),
                limit,
                output,
                is_in_daemon,
            ));
            let reply = match context.work_showing_starts(&starting, &what, &board, making).await {
                Ending::Done(made) => {
                    (again, times) = (made.again, made.times);
                    made.reply
                }
                Ending::TimeUp => reply_to_unfinished(unanswered, late(), &mut events).await,
                Ending::Interrupted => reply_to_unfinished(unanswered, cancelled(), &mut events).await,
            };
            if is_without_server(&reply) && context.has_lost(&settings, &mut servers).await {
                continue;
            }
            break match &servers.daemon {
                None => (board, toolset, reply),
                Some(daemon)
                    if reply.outcome.kind() == Kind::UnknownTool && may_be_asked_for(&request.tool, &config) =>
                {
                    (board, toolset, daemon.explain_unknown(reply).await)
                }
                Some(_) => (board, toolset, daemon::as_made_here(reply)),
            };
        };
        let problems = match is_named {
            true => Vec::new(),
            false => problems_of_found(&mut settings, &reply),
        };
        if let (Some(times), Some(call)) = (self.repeat, again)
            && matches!(reply.outcome, Outcome::Done(_) | Outcome::ToolFailed(_))
        {
            let load = load::Load::begun_with(&reply);
            let (concurrent, deadline) = (self.concurrent as usize, context.deadline);
            let calls = load.run(&toolset, &call, times as usize - 1, concurrent, deadline);
            let ending = match context.work(calls).await {
                Ending::Done(()) => context.is_late().then_some(Exit::Timeout),
                Ending::TimeUp => Some(Exit::Timeout),
                Ending::Interrupted => Some(Exit::Interrupted),
            };
            let report = load.report(&context.output, &reply.name, concurrent, ending);
            return context.close(&board, with_warnings(report, &problems)).await;
        }
        let known = board.status().servers;
        let situation = Situation {
            settings: &settings,
            config: &config,
            servers: &known,
            is_late: context.is_late(),
            is_in_daemon: servers.daemon.is_some(),
            last_words: last_words(&reply, &known, servers.daemon.as_ref()).await,
        };
        let missing = situation.missing_secrets(&reply);
        let mut reply = situation.advise(reply);
        if !context.output.is_json() {
            situation.leave_out_schedule(&mut reply);
            situation.explain_size(&mut reply);
        }
        let parts = self.time.then(|| times.finish(&mut reply, started.elapsed()));
        consent::ask_after_failure(&mut context, &missing).await;
        let mut report = with_warnings(
            results::report(&context.output, &self, &reply, parts.as_ref()),
            &problems,
        );
        if let Some(parts) = parts.filter(|_| !context.output.is_json()) {
            report = report.note(&parts.to_string());
        }
        if !context.output.is_json() {
            report = match reply.outcome.kind() {
                Kind::UnknownTool | Kind::NeedsAuth if reply.server.is_none() && !settings.has(&reply.asked) => {
                    add_unavailable(&board, &settings, report)
                }
                Kind::Timeout if context.is_late() => report.hint(TIMEOUT),
                _ => report,
            };
            if let Some(repaired) = &reply.repaired {
                report = report.warning(repaired);
            }
        }
        let report = context.write_out(report, self.out.as_deref()).await;
        context.close(&board, report).await
    }
}

/// The last words of the process of a refused call's server, if it exited by itself.
async fn last_words(reply: &Reply, servers: &[ServerStatus], daemon: Option<&RunningDaemon>) -> Option<LastWords> {
    let Outcome::Refused(failure) = &reply.outcome else {
        return None;
    };
    let name = reply.server.as_ref()?;
    match daemon {
        None => {
            let server = servers.iter().find(|server| server.name == *name)?;
            LastWords::here(server.last_error.as_ref()?)
        }
        Some(daemon) => {
            let is_exit = failure.diagnosis.as_deref()?.cause.is_own_exit();
            let status = if is_exit {
                daemon.status().await.ok()?
            } else {
                return None;
            };
            LastWords::in_daemon(&status, name.as_str())
        }
    }
}

/// The problems of the server that a tool's name alone led to; those of all servers if none has the tool.
fn problems_of_found(settings: &mut Settings, reply: &Reply) -> Vec<String> {
    match &reply.server {
        Some(server) => settings.tell_only_of([server.as_str()]),
        // The reply says what is wrong.
        None if settings.has(&reply.asked) => return Vec::new(),
        None => settings.tell_of_all(),
    }
    let problems = settings.problems().filter(|problem| problem.server().is_some());
    problems
        .map(|problem| settings::in_short(&problem.to_string()))
        .collect()
}

fn with_warnings(report: Report, warnings: &[String]) -> Report {
    warnings.iter().fold(report, |report, warning| report.warning(warning))
}

/// Leaves a record of a call whose server cannot be used as it is configured, or is none. No server is started for it.
async fn record_refusal(settings: &Settings, tool: &str, kind: Kind) {
    let Ok(mut config) = settings.config() else { return };
    let is_meant = settings.find_misconfigured(|server| is_of(tool, server)).is_some();
    if config.audit.is_none() || !(is_meant || kind == Kind::UnknownTool) {
        return;
    }
    config.servers.clear();
    let board = settings::board(config).tools_only().open();
    board.toolset().call(ToolCall::new(tool).timeout(RECORDING)).await;
    board.shutdown().await;
}

/// The reply to a call whose future was dropped. If its last event names a server, the call may have been sent.
async fn reply_to_unfinished(unanswered: impl Fn(Outcome) -> Reply, failure: Failure, events: &mut Events) -> Reply {
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

/// Loads the config and the arguments, or returns why the call cannot be made.
async fn prepare(
    context: &mut Context<'_>,
    settings: &Settings,
    options: &Call,
    request: &Request,
    problem: Option<String>,
) -> Result<(Config, Option<Arguments>), (Failure, Exit)> {
    let config = settings.config().and_then(|config| {
        let is_meant = |server: &str| is_of(&request.tool, server);
        let is_usable = config.servers.keys().any(|server| is_meant(server.as_str()));
        match settings.find_misconfigured(is_meant) {
            // `mcp__git__log` can be a tool of `mcp` or of `git`.
            Some(server) if !is_usable => Err(settings.missing_server_complaint(server.as_str())),
            _ => settings.usable_config(),
        }
    });
    let config = config.map_err(|complaint| {
        let mut failure = Failure::new(complaint.kind(), complaint.message);
        failure.diagnosis = settings.config_diagnosis(|server| is_of(&request.tool, server));
        (with_hint(failure, complaint.hint), complaint.exit)
    })?;
    if let Some(failure) = unknown_server::check(&request.tool, settings, &config) {
        return Err((failure, Exit::Usage));
    }
    let problem = problem
        .or_else(|| check_given_once(options, request))
        .or_else(|| check_out(options.out.as_deref()).err())
        .or_else(|| blobs::check(options.save.as_deref()).err());
    if let Some(problem) = problem {
        return Err((Failure::new(Kind::InvalidArguments, problem), Exit::Usage));
    }
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
        Err(failure) => Err((failure.clone(), Exit::from_kind(failure.kind))),
    }
}

/// The message about arguments that are given in two ways.
fn check_given_once(options: &Call, request: &Request) -> Option<String> {
    let option = match (&options.json, &options.text) {
        (Some(_), _) => "--json",
        (None, Some(_)) => "--text",
        (None, None) => return None,
    };
    (!request.words.is_empty()).then(|| format!("KEY=VALUE and other arguments cannot be used with `{option}`"))
}

/// What is said when `--max-bytes` makes a command start servers that the daemon with this process id has too.
fn beside_daemon(daemon: u32) -> String {
    format!(
        "the servers of the daemon (process {daemon}) have the limit of the config, so this command starts its own for `--max-bytes`; \
         `max_message` in the config raises the limit of a server"
    )
}

impl Call {
    /// Raises the limit for messages of the servers to that of `--max-bytes`. Returns whether the servers of a daemon, which have the limit of their
    /// config, cannot be used.
    fn raise_limit(&self, config: &mut Config) -> bool {
        let Some(bytes) = self.max_bytes else { return false };
        let mut is_raised = false;
        for limits in config.servers.values_mut().map(|server| &mut server.limits) {
            is_raised |= limits.max_message < bytes;
            limits.max_message = limits.max_message.max(bytes);
        }
        is_raised
    }
}

/// A call that was made.
struct Made {
    reply: Reply,
    /// The call, if it is to be repeated.
    again: Option<Box<ToolCall>>,
    times: CallTimes,
}

/// Makes the call. Dropping this cancels it.
async fn make(
    toolset: Toolset,
    options: &Call,
    request: &Request,
    given: Option<Arguments>,
    deadline: Deadline,
    output: Output,
    is_in_daemon: bool,
) -> Made {
    let mut call = ToolCall::new(&request.tool);
    let mut times = CallTimes::default();
    for (key, value) in &options.meta {
        call = call.meta(key, value.as_str());
    }
    let started = Instant::now();
    if options.repeat.is_some() || options.time {
        // Its server is started before the first call, which is measured too. The call reports a failure.
        let _ = toolset.tool(&request.tool, deadline.remaining()).await;
        times.start = started.elapsed();
    }
    if options.time {
        call = times.follow(call, is_in_daemon);
    }
    let mut undeclared = Undeclared::default();
    let call = match (given, &options.text) {
        (Some(arguments), _) => {
            // If the tool does not exist, the call below reports it.
            if let Ok(tool) = toolset.tool(&request.tool, deadline.remaining()).await {
                undeclared = Undeclared::among(&arguments, &tool.input_schema.value());
            }
            call.arguments(arguments)
        }
        (None, Some(text)) => call.text(text),
        (None, None) if request.words.is_empty() => call,
        (None, None) => match type_arguments(&toolset, request, deadline).await {
            Ok((arguments, found)) => {
                undeclared = found;
                call.arguments(arguments)
            }
            // The call itself reports it, and the audit log has it. Should the tool appear meanwhile, the call still fails.
            Err(failure) => call.arguments(Unusable(failure.message)),
        },
    };
    if deadline.has_passed() {
        // Finding the tool took all the time there was.
        let reply = Reply::unanswered(call.id, call.name, Outcome::Refused(late()), started.elapsed());
        return Made {
            reply,
            again: None,
            times,
        };
    }
    let again = options.repeat.map(|_| Box::new(call.clone()));
    // Only the newest step is shown, so a short queue is enough.
    let (steps, shown) = mpsc::channel(8);
    let call = call.timeout(deadline.remaining()).progress(steps);
    let (mut reply, ()) = tokio::join!(toolset.call(call), show_progress(shown, output, &request.tool));
    // The refusal names those that are forbidden.
    if reply.outcome.kind() != Kind::InvalidArguments || !undeclared.are_forbidden {
        reply.warnings.extend(undeclared.warnings);
    }
    Made { reply, again, times }
}

/// The arguments of a call that the tool's schema does not declare.
#[derive(Default)]
struct Undeclared {
    warnings: Vec<String>,
    /// Whether the schema forbids other arguments.
    are_forbidden: bool,
}

impl Undeclared {
    fn among(arguments: &Arguments, schema: &Value) -> Self {
        let is_closed = |key: &str| schema.get(key) == Some(&Value::Bool(false));
        Self {
            warnings: arguments.unknown(schema),
            are_forbidden: is_closed("additionalProperties") || is_closed("unevaluatedProperties"),
        }
    }
}

/// Arguments that could not be read, and why.
struct Unusable(String);

impl TryFrom<Unusable> for Arguments {
    type Error = String;

    fn try_from(unusable: Unusable) -> Result<Self, String> {
        Err(unusable.0)
    }
}

/// Converts the words to the types that the tool's schema declares. Also returns the undeclared arguments.
async fn type_arguments(
    toolset: &Toolset,
    request: &Request,
    deadline: Deadline,
) -> Result<(Arguments, Undeclared), Failure> {
    let tool = toolset.tool(&request.tool, deadline.remaining()).await?;
    let schema = tool.input_schema.value();
    if let Some(object) = request.whole_arguments(&schema) {
        let arguments = Arguments::parse(&Value::Object(object.clone()).to_string());
        let arguments = arguments.map_err(|error| Failure::new(Kind::InvalidArguments, error.to_string()))?;
        return Ok((arguments, Undeclared::default()));
    }
    let order = tool.argument_names();
    let built = arguments::build(&request.words, &schema, order.as_deref()).await;
    let arguments = built.map_err(|problem| Failure::new(Kind::InvalidArguments, problem))?;
    let undeclared = Undeclared::among(&arguments, &schema);
    Ok((arguments, undeclared))
}

/// Shows progress until the call has ended.
async fn show_progress(mut steps: mpsc::Receiver<Progress>, output: Output, tool: &str) {
    while let Some(step) = steps.recv().await {
        let message = step.message.unwrap_or_default();
        output.show_progress(&format!("calling {tool}"), step.progress, step.total, &message);
    }
}

/// Adds a warning about the servers that were unavailable when an unknown tool was looked for.
fn add_unavailable(board: &Pegboard, settings: &Settings, report: Report) -> Report {
    // Misconfigured servers were reported when the config was loaded.
    let misconfigured = |server: &ServerStatus| settings.loaded.config.misconfigured.contains_key(&server.name);
    let status = board.status();
    let servers = status.servers.iter().filter(|server| !misconfigured(server));
    let missing: Vec<&ServerStatus> = servers
        .filter(|server| server.last_error.is_some() || server.state == State::Connecting)
        .collect();
    match missing.as_slice() {
        [] => report,
        [one] => {
            let why = one.last_error.as_ref().map(|error| error.message.as_str());
            let why = why.unwrap_or("it is still starting");
            report.warning(&format!("server `{}` could not be asked: {why}", one.name))
        }
        missing => {
            let named = missing.iter().map(|server| match server.state {
                State::Connecting => format!("`{}` is still starting", server.name),
                state => format!("`{}` {}", server.name, listing::in_words(state)),
            });
            let named: Vec<String> = named.collect();
            report.warning(&format!(
                "{} servers could not be asked: {}; `pegboard doctor` says why",
                named.len(),
                named.join(", ")
            ))
        }
    }
}

fn with_hint(failure: Failure, hint: Option<String>) -> Failure {
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
