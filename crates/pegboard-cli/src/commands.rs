//! The commands, one file each. A new one needs its file, and here its `mod` and its line in [`Commands`].

mod added_servers;
mod address;
mod agreement;
mod audit;
mod blobs;
mod call;
mod command;
mod complete;
mod completions;
mod config;
mod config_sources;
mod context;
mod demo_server;
mod doctor;
mod fetch;
mod find;
mod generate;
mod health;
mod help;
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

use clap::{CommandFactory as _, Parser};
use futures_util::FutureExt as _;
use pegboard::deadline::Deadline;
use pegboard_hosts::document::{CutShort, limit_waits};
use tokio::task::unconstrained;

use crate::{
    cli::Global,
    exit::Exit,
    logging::ServerLogs,
    output::{Output, Report},
    signals::Signals,
};
use command::{Bare, Group, Invocation, OptionalGroup, Parsed as _, With, commands};
use context::Context;

/// List and call the tools of any MCP server
#[derive(Debug, Parser)]
#[command(
    name = "pegboard",
    version,
    disable_help_subcommand = true,
    max_term_width = 80,
    after_help = "Examples:\n  pegboard call demo.calculate expression='6 * 7'\n  \
                  pegboard --server time='uvx mcp-server-time' tools"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Commands,
}

impl Cli {
    /// The command to run, with the global options from before and after its name.
    pub(crate) fn into_invocation(self) -> Invocation {
        self.command.prepare(self.global)
    }
}

commands! {
    pub(crate) enum Commands {
        Tools(With<tools::Tools>),
        Call(With<call::Call>),
        Resources(OptionalGroup<resources::ResourcesCommand>),
        Prompts(OptionalGroup<prompts::PromptsCommand>),
        Status(With<status::Status>),
        Find(With<find::Find>),
        Doctor(With<doctor::Doctor>),
        Generate(With<generate::Generate>),
        Record(With<record::Record>),
        Replay(With<record::Replay>),
        Logs(With<logs::Logs>),
        List(With<servers::List>),
        Add(With<servers::Add>),
        AddJson(With<servers::AddJson>),
        Remove(With<servers::Remove>),
        Get(With<servers::Get>),
        Enable(With<servers::Enable>),
        Disable(With<servers::Disable>),
        Rename(With<servers::Rename>),
        Login(With<login::Login>),
        Logout(With<login::Logout>),
        Serve(With<serve::Serve>),
        Mcp(With<mcp::Mcp>),
        Import(With<import::Import>),
        Install(With<install::Install>),
        Uninstall(With<install::Uninstall>),
        Init(With<init::Init>),
        Health(With<health::Health>),
        Token(Group<token::TokenCommand>),
        Config(Group<config::ConfigCommand>),
        Trust(Group<trust::TrustCommand>),
        Pins(Group<pins::PinsCommand>),
        Audit(Group<audit::AuditCommand>),
        Torture(With<torture::Torture>),
        Mask(With<mask::Mask>),
        DemoServer(Bare<demo_server::DemoServer>),
        Man(Bare<man::Man>),
        Help(Bare<help::Help>),
        #[command(name = "__complete")]
        Complete(Bare<complete::Complete>),
        Completions(Bare<completions::Completions>),
    }
}

/// Adds advice to the error of the parser about a command line, given as its words.
pub(crate) fn with_advice(error: clap::Error, words: &[String]) -> clap::Error {
    servers::with_advice(error, words, Cli::command())
}

/// The deadline of a command without `--timeout`. The servers' own timeouts fire long before it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs a command and prints its report.
pub(crate) async fn run(mut invocation: Invocation, output: Output, logs: ServerLogs) -> Exit {
    // The first listener is that of edits, so that no signal is missed by both.
    let (of_edits, mut signals) = match Signals::listen().and_then(|first| Ok((first, Signals::listen()?))) {
        Ok(listeners) => listeners,
        Err(error) => {
            let message = format!("signals cannot be listened for: {error}");
            return output.print(&Report::new(Exit::Unavailable).error(&message, None));
        }
    };
    if !invocation.owns_server_options {
        match servers::for_this_run(&invocation.global) {
            Ok(settings) => invocation.global.added_settings = settings,
            Err(complaint) => {
                let report = Report::new(complaint.exit).error(&complaint.message, complaint.hint.as_deref());
                return output.print(&report);
            }
        }
    }
    let (global, work) = invocation.into_parts();
    let deadline = Deadline::within(global.timeout.unwrap_or(PATIENCE));
    limit_edits(deadline, of_edits);
    let context = Context {
        global,
        definition: Cli::command,
        output,
        signals: &mut signals,
        deadline,
        logs,
    };
    work.start(context).await
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cli::Format;

    fn global(line: &str) -> Global {
        Cli::try_parse_from(line.split(' ')).unwrap().into_invocation().global
    }

    #[test]
    fn clap_finds_no_fault_with_the_definitions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lists_from_before_and_after_the_command_are_joined() {
        let global = global("pegboard -c a --server x=y config -c b show -c d --server x");
        assert_eq!(global.configs, ["a", "b", "d"].map(PathBuf::from));
        assert_eq!(global.servers, ["x=y", "x"]);
    }

    #[test]
    fn the_option_after_the_command_counts_more() {
        let after = global("pegboard -o json --timeout 1s -v tools -o text --timeout 2s -v");
        assert_eq!(after.format(), Format::Text);
        assert_eq!((after.timeout, after.verbose), (Some(Duration::from_secs(2)), 2));
        assert_eq!(global("pegboard -o json tools").format(), Format::Json);
    }
}
