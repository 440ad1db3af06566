//! `torture`: tries an MCP server with faults and protocol cases, and prints a score card.
//!
//! It speaks over raw connections of its own ([`wire`]), because the library would repair or refuse what a case needs to send and see. Every
//! case has a session of its own.

mod bench;
mod card;
mod case;
mod cases;
mod client;
mod era;
#[cfg(target_os = "linux")]
mod guard;
mod http;
mod incoming;
mod process_mark;
mod sample;
mod stdio;
mod stop;
mod transcript;
mod wire;

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pegboard::config::{Command, ServerConfig, Transport};
use pegboard_hosts::executable::{is_executable, resolve};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    context::{Context, Ending, interrupted, time_up},
    servers::shown_target,
};
use crate::{
    cli::{Eras, Torture},
    exit::Exit,
    output::{self, Paint, Report},
    settings::{Complaint, Settings},
};
use bench::{Bench, Survey, pages};
use card::{Card, CaseResult, Verdict};
use case::Case;
use client::{Client, START};
use era::Era;
use http::HttpTarget;
use stdio::StdioTarget;
use stop::Stop;
use transcript::Transcript;
use wire::Target;

#[cfg(target_os = "linux")]
pub(crate) use guard::is_guard;

/// The most cases that run at once. Fewer run at once on a machine with fewer processors.
const AT_ONCE: usize = 4;
/// How long a whole case may take, in response times, besides the starts of the server. No case needs many slow responses.
const CASE_WAITS: u32 = 6;
/// How long the first start may take: `npx` and `uvx` may fetch the server.
const FIRST_START: Duration = Duration::from_secs(120);
/// The name of a server that is given by its URL or its command line.
const GIVEN: &str = "torture";
/// What the library shows in place of a secret.
const HIDDEN: &str = "****";
/// How long a server that has started may take to answer `server/discover`, which servers of the other era may ignore.
const DISCOVER: Duration = Duration::from_secs(3);

/// Tries a server.
pub(super) async fn run(mut context: Context<'_>, torture: Torture) -> Exit {
    let mut card = Card {
        server: shown(&context, &torture.server),
        ..Card::default()
    };
    let target = match check(&torture).and_then(|()| find(&context, &torture.server)) {
        Ok((target, transport)) => {
            card.transport = transport;
            target
        }
        Err(complaint) => return context.refuse(&complaint, &card).await,
    };
    let started = Instant::now();
    let output = context.output.clone();
    let tried = context
        .work(try_all(&target, &torture, |what| output.waiting(&what)))
        .await;
    let report = match tried {
        Ending::Interrupted => interrupted(&context.output, &card),
        Ending::TimeUp => time_up(&context.output, &card),
        Ending::Done(Err(why)) => unavailable(&context, &card, &why),
        Ending::Done(Ok(tried)) => {
            card.eras = tried.eras;
            card.server_info = tried.server_info;
            card.fill(tried.cases);
            card.duration_ms = millis(started);
            finish(&context, &torture, &card)
        }
    };
    context.print(report).await
}

/// Refuses names of cases that do not exist.
fn check(torture: &Torture) -> Result<(), Complaint> {
    match torture
        .only
        .iter()
        .find(|word| !cases::all().any(|case| case.is_named(word)))
    {
        None => Ok(()),
        Some(word) => {
            let mut names: Vec<&str> = cases::all().flat_map(|case| [case.group, case.id]).collect();
            names.sort_unstable();
            names.dedup();
            Err(Complaint {
                message: format!("there is no case `{word}`"),
                hint: Some(format!("the cases and groups are {}", names.join(", "))),
                exit: Exit::Usage,
            })
        }
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
    Settings::load(&global)
}

/// A server as it was given, or as `list` shows it if that hides a secret: reports are read by others, and JUnit files are kept.
fn shown(context: &Context<'_>, server: &str) -> String {
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

/// The server that a name, a URL or a command line means, and its transport.
fn find(context: &Context<'_>, server: &str) -> Result<(Target, &'static str), Complaint> {
    let is_given = is_given(server);
    let name = if is_given { GIVEN } else { server };
    let settings = settings_with(context, server);
    let config = settings.selected()?;
    let found = config.servers.iter().find(|(known, _)| known.as_str() == name);
    if let Some((_, found)) = found {
        return Ok((target(found)?, found.transport.kind()));
    }
    let mut complaint = settings.missing(name);
    if is_given || config.misconfigured.keys().any(|known| known.as_str() == name) {
        return Err(complaint);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if resolve(name, &path, None).is_some_and(|file| is_executable(&file)) {
        let command = Command::new(name);
        return Ok((Target::Stdio(StdioTarget::new(&command)), "stdio"));
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
        Transport::Stdio(command) => Ok(Target::Stdio(StdioTarget::new(command))),
        Transport::Auto(endpoint) | Transport::Http(endpoint) => match HttpTarget::new(endpoint) {
            Ok(target) => Ok(Target::Http(target)),
            Err(why) => Err(refused(why, "see `pegboard torture --help`")),
        },
        other => Err(refused(
            format!("`torture` does not speak {}", other.kind()),
            "try the server over stdio or streamable HTTP",
        )),
    }
}

/// The results of all cases that apply.
struct Tried {
    eras: Vec<Era>,
    server_info: Value,
    cases: Vec<CaseResult>,
}

/// Tries everything; fails if no session can be opened in any era.
async fn try_all(target: &Target, torture: &Torture, show: impl Fn(String)) -> Result<Tried, String> {
    show("starting the server".to_owned());
    let mut surveys = Vec::new();
    let mut failures = Vec::new();
    let mut start = Duration::ZERO;
    for era in eras(torture.era) {
        let asked = Instant::now();
        let wait = match (era, torture.era) {
            (Era::Modern, Eras::Both) => DISCOVER + start * 3,
            _ => torture.wait.max(FIRST_START),
        };
        let surveyed = survey(target, era, wait, torture).await;
        start = asked.elapsed();
        match surveyed {
            Ok(survey) => surveys.push((era, survey)),
            Err(why) => failures.push(format!("{}: {why}", era.as_str())),
        }
    }
    if surveys.is_empty() {
        return Err(failures.join("\n"));
    }
    let is_wanted = |case: &Case| torture.only.is_empty() || torture.only.iter().any(|word| case.is_named(word));
    let is_stdio = target.is_stdio();
    let mut planned = Vec::new();
    for case in cases::all().filter(|case| is_wanted(case)) {
        planned.extend(
            surveys
                .iter()
                .filter(|(era, _)| case.is_for(*era, is_stdio))
                .map(|(era, survey)| (case, *era, survey)),
        );
    }
    let total = planned.len();
    let at_once = std::thread::available_parallelism().map_or(1, |processors| processors.get().min(AT_ONCE));
    let running = stream::iter(planned.into_iter().enumerate()).map(|(number, (case, era, survey))| {
        show(format!("case {} of {total}: {}", number + 1, case.title));
        try_one(case, Bench::new(target, era, survey, torture.wait))
    });
    let cases = running.buffered(at_once).collect().await;
    Ok(Tried {
        server_info: surveys
            .last()
            .and_then(|(_, survey)| info(&survey.greeting))
            .unwrap_or_default(),
        eras: surveys.iter().map(|(era, _)| *era).collect(),
        cases,
    })
}

/// The eras to try. The older is tried first: it is slower to start something that is fetched.
fn eras(wanted: Eras) -> Vec<Era> {
    match wanted {
        Eras::Both => vec![Era::Legacy, Era::Modern],
        Eras::Modern => vec![Era::Modern],
        Eras::Legacy => vec![Era::Legacy],
    }
}

fn info(greeting: &Value) -> Option<Value> {
    let info = greeting.get("serverInfo");
    let info = info.or_else(|| greeting.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    info.cloned()
}

/// Opens a session and reads what the server offers, or says why it has none in this era.
async fn survey(target: &Target, era: Era, wait: Duration, torture: &Torture) -> Result<Survey, String> {
    let surveying = async {
        let mut client = Client::connect(target, era, wait, Transcript::default())?;
        client.start = wait;
        client.open().await?;
        client.wait = torture.wait;
        // A list that cannot be read is a failure of the cases about lists.
        let tools = match client.capability("tools") {
            Some(_) => pages(&mut client, "tools/list", "tools").await.unwrap_or_default(),
            None => Vec::new(),
        };
        let tools: Vec<Value> = tools.into_iter().flatten().collect();
        Ok(Survey {
            greeting: client.greeting.clone(),
            callable: tools.iter().filter(|tool| may_call(tool, torture)).cloned().collect(),
            tools,
        })
    };
    surveying.await.map_err(|stop: Stop| match stop {
        Stop::Fail(why) | Stop::Skip(why) => why,
    })
}

/// Whether a tool may be called: it says that it changes nothing, or the user named it.
fn may_call(tool: &Value, torture: &Torture) -> bool {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_read_only = tool.pointer("/annotations/readOnlyHint") == Some(&json!(true));
    torture.yes || is_read_only || torture.tools.iter().any(|wanted| wanted == name)
}

/// Runs one case.
async fn try_one(case: &Case, bench: Bench<'_>) -> CaseResult {
    let started = Instant::now();
    let limit = bench.wait * CASE_WAITS + START * 3;
    let ended = tokio::time::timeout(limit, (case.run)(&bench)).await;
    let ended = ended.unwrap_or_else(|_| stop::fail(format!("the case was not over after {limit:?}")));
    let mut result = CaseResult::new(case, bench.era);
    result.duration_ms = millis(started);
    match ended {
        Ok(()) => {}
        Err(Stop::Skip(why)) => (result.verdict, result.why) = (Verdict::Skipped, Some(why)),
        Err(Stop::Fail(why)) => {
            (result.verdict, result.why) = (Verdict::Failed, Some(why));
            result.sent = bench.transcript.last_sent();
            result.came = bench.transcript.last_came();
        }
    }
    result.advice = bench.into_advice();
    result.advice.dedup();
    result
}

fn unavailable(context: &Context<'_>, card: &Card, why: &str) -> Report {
    let server = &card.server;
    let is_configured = Settings::load(&context.global)
        .selected()
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
            report.data = card.text(
                context.output.verbose > 0,
                output::width(),
                Paint::of(&std::io::stdout()),
            );
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
