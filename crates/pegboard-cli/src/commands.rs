//! The commands, one file each, and the dispatch to them.

mod added_servers;
mod address;
mod agreement;
mod audit;
mod blobs;
mod call;
mod complete;
mod completions;
mod config;
mod config_sources;
mod context;
mod doctor;
mod fetch;
mod find;
mod generate;
mod health;
mod import;
mod init;
mod install;
mod keyring_entry;
mod listing;
mod login;
mod logs;
mod man;
mod mask;
mod mcp;
mod needed_variables;
mod pins;
mod plain_secrets;
mod prompts;
mod record;
mod reload_triggers;
mod reloader;
mod resources;
mod serve;
mod server_tls;
mod servers;
mod serving;
mod starting;
mod status;
mod stdin;
mod tls_files;
mod token;
mod tools;
mod torture;
mod trust;

use std::time::Duration;

use futures_util::FutureExt as _;
use pegboard::deadline::Deadline;
use pegboard_hosts::document::{CutShort, limit_waits};
use tokio::task::unconstrained;

use crate::{
    cli::{Global, Verb},
    demo,
    exit::Exit,
    logging::ServerLogs,
    output::{Output, Report},
    signals::Signals,
};
use context::Context;

/// Adds advice to the error of the parser about a command line, given as its words.
pub(crate) fn with_advice(error: clap::Error, words: &[String]) -> clap::Error {
    servers::with_advice(error, words)
}

/// The deadline of a command without `--timeout`. The servers' own timeouts fire long before it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs a command and prints its report.
pub(crate) async fn run(verb: Verb, mut global: Global, output: Output, logs: ServerLogs) -> Exit {
    if let Verb::DemoServer(options) = verb {
        return match demo::run(options).await {
            Ok(()) => Exit::Done,
            Err(error) => output.print(&Report::new(Exit::Usage).error(&format!("{error:#}"), None)),
        };
    }
    // The first listener is that of edits, so that no signal is missed by both.
    let (of_edits, mut signals) = match Signals::listen().and_then(|first| Ok((first, Signals::listen()?))) {
        Ok(listeners) => listeners,
        Err(error) => {
            let message = format!("signals cannot be listened for: {error}");
            return output.print(&Report::new(Exit::Unavailable).error(&message, None));
        }
    };
    if !matches!(verb, Verb::Add(_)) {
        match servers::for_this_run(&global) {
            Ok(settings) => global.added_settings = settings,
            Err(complaint) => {
                let report = Report::new(complaint.exit).error(&complaint.message, complaint.hint.as_deref());
                return output.print(&report);
            }
        }
    }
    let deadline = Deadline::within(global.timeout.unwrap_or(PATIENCE));
    limit_edits(deadline, of_edits);
    let context = Context {
        global,
        output,
        signals: &mut signals,
        deadline,
        logs,
    };
    match verb {
        Verb::Tools(tools) => tools::run(context, tools).await,
        Verb::Call(call) => call::run(context, call).await,
        Verb::ResourcesList => resources::list(context).await,
        Verb::ResourcesRead(read) => resources::read(context, read).await,
        Verb::PromptsList => prompts::list(context).await,
        Verb::PromptsGet(get) => prompts::get(context, get).await,
        Verb::Status(options) => Box::pin(status::run(context, options)).await,
        Verb::Find(find) => Box::pin(find::run(context, find)).await,
        Verb::Doctor(options) => Box::pin(doctor::run(context, options)).await,
        Verb::Generate(generate) => Box::pin(generate::run(context, generate)).await,
        Verb::Record(record) => Box::pin(record::record(context, record)).await,
        Verb::Replay(replay) => Box::pin(record::replay(context, replay)).await,
        Verb::Logs(logs) => Box::pin(logs::run(context, logs)).await,
        Verb::Add(add) => Box::pin(servers::add(context, *add)).await,
        Verb::AddJson(add) => servers::add_json(context, add).await,
        Verb::Remove(named) => servers::remove(context, named).await,
        Verb::Get(get) => servers::get(context, get).await,
        Verb::Enable(named) => servers::switch(context, named, true).await,
        Verb::Disable(named) => servers::switch(context, named, false).await,
        Verb::Rename(rename) => servers::rename(context, rename).await,
        Verb::List => servers::list(context).await,
        Verb::Login(options) => Box::pin(login::login(context, options)).await,
        Verb::Logout(options) => Box::pin(login::logout(context, options)).await,
        Verb::Serve(serve) => Box::pin(serve::run(context, serve)).await,
        Verb::Mcp(mcp) => Box::pin(mcp::run(context, mcp)).await,
        Verb::Import(options) => import::run(context, options).await,
        Verb::Install(options) => install::install(context, options).await,
        Verb::Uninstall(options) => install::uninstall(context, options).await,
        Verb::Init(options) => init::run(context, options).await,
        Verb::Health(options) => health::run(context, options).await,
        Verb::TokenNew(new) => token::new(context, new).await,
        Verb::TokenHash => token::hash(context).await,
        Verb::PinsShow(server) => pins::show(context, server).await,
        Verb::PinsDiff(diff) => pins::diff(context, diff).await,
        Verb::PinsAccept(accept) => pins::accept(context, accept).await,
        Verb::ConfigShow => config::show(context).await,
        Verb::ConfigExplain(what) => config::explain(context, what).await,
        Verb::ConfigSchema => config::schema(context).await,
        Verb::TrustShow(path) => trust::show(context, path).await,
        Verb::TrustAccept(accept) => trust::accept(context, accept).await,
        Verb::TrustForget(path) => trust::forget(context, path).await,
        Verb::AuditVerify(verify) => audit::verify(context, verify).await,
        Verb::AuditShow(show) => audit::show(context, show).await,
        Verb::Torture(torture) => Box::pin(torture::run(context, torture)).await,
        Verb::Mask(mask) => mask::run(context, mask).await,
        Verb::Completions(shell) => completions::run(context, shell).await,
        Verb::Man(folder) => man::run(context, folder).await,
        Verb::Complete(words) => complete::run(context, words).await,
        Verb::DemoServer(_) => Exit::Done,
    }
}

/// Ends waits for the edits of other processes at the deadline of the command, and when one of these signals has arrived.
fn limit_edits(deadline: Deadline, mut signals: Signals) {
    let mut is_interrupted = false;
    limit_waits(move || {
        // The edits are not async, so the signals are polled. A used-up budget of the task must not hide one.
        is_interrupted |= unconstrained(signals.heard()).now_or_never().is_some();
        match is_interrupted {
            true => Some(CutShort::Interrupted),
            false => deadline.has_passed().then_some(CutShort::TimeUp),
        }
    });
}
