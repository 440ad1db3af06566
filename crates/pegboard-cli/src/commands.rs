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
mod consent;
mod context;
mod daemon;
mod dashboard_door;
mod demo_server;
mod doctor;
mod fetch;
mod find;
mod first_screen;
mod generate;
mod health;
mod help;
mod import;
mod init;
mod install;
mod listing;
mod login;
mod logs;
mod man;
mod mask;
mod mcp;
mod needed_variables;
mod open;
mod pins;
mod plain_secrets;
mod prompts;
mod record;
mod reload_report;
mod reload_triggers;
mod reloader;
mod replicas;
mod resources;
mod secret;
mod secret_prompt;
mod serve;
mod server_tls;
mod servers;
mod serving;
mod shown_config;
mod starting;
mod state_key;
mod status;
mod stdin;
mod tls_files;
mod token;
mod tools;
mod torture;
mod trust;

use std::{ffi::OsString, time::Duration};

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, error::ErrorKind};
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
    command: Option<Commands>,
}

impl Cli {
    /// Parses the command line of this process. Adds advice to an error.
    ///
    /// At first only the command that it names is defined, because defining all of them takes longer than a call. Help and errors need them all.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        match Self::parse_named(std::env::args_os()) {
            Err(error) if error.kind() != ErrorKind::DisplayVersion => Self::parse_all().map_err(|error| {
                let words = std::env::args_os();
                let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
                servers::with_advice(error, &words, Self::command())
            }),
            parsed => parsed,
        }
    }

    /// Parses the command line of this process with all commands defined, for help and errors.
    fn parse_all() -> Result<Self, clap::Error> {
        let mut definition = help::first_screen(Self::command());
        let matches = definition.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))
    }

    /// Parses a command line and defines no other command than the one that it names. The texts of errors are incomplete.
    fn parse_named<W: Into<OsString> + Clone>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error> {
        let program = clap::Command::new("pegboard").version(env!("CARGO_PKG_VERSION"));
        let definition = Commands::define_lazily(Global::augment_args(program).disable_help_subcommand(true));
        Self::from_arg_matches(&definition.try_get_matches_from(words)?)
    }

    /// The command to run, with the global options from before and after its name.
    pub(crate) fn into_invocation(self) -> Invocation {
        match self.command {
            Some(command) => command.prepare(self.global),
            None => Invocation::new(first_screen::FirstScreen {}, self.global),
        }
    }
}

commands! {
    pub(crate) enum Commands {
        "tools" => Tools(With<tools::Tools>),
        "call" => Call(With<call::Call>),
        "resources" => Resources(OptionalGroup<resources::ResourcesCommand>),
        "prompts" => Prompts(OptionalGroup<prompts::PromptsCommand>),
        "status" => Status(With<status::Status>),
        "find" => Find(With<find::Find>),
        "doctor" => Doctor(With<doctor::Doctor>),
        "generate" => Generate(With<generate::Generate>),
        "record" => Record(With<record::Record>),
        "replay" => Replay(With<record::Replay>),
        "logs" => Logs(With<logs::Logs>),
        "list" => List(With<servers::List>),
        "add" => Add(With<servers::Add>),
        "add-json" => AddJson(With<servers::AddJson>),
        "remove" => Remove(With<servers::Remove>),
        "get" => Get(With<servers::Get>),
        "enable" => Enable(With<servers::Enable>),
        "disable" => Disable(With<servers::Disable>),
        "rename" => Rename(With<servers::Rename>),
        "login" => Login(With<login::Login>),
        "logout" => Logout(With<login::Logout>),
        "serve" => Serve(With<serve::Serve>),
        "mcp" => Mcp(With<mcp::Mcp>),
        "open" => Open(With<open::Open>),
        "daemon" => Daemon(Group<daemon::DaemonCommand>),
        "import" => Import(With<import::Import>),
        "install" => Install(With<install::Install>),
        "uninstall" => Uninstall(With<install::Uninstall>),
        "init" => Init(With<init::Init>),
        "health" => Health(With<health::Health>),
        "token" => Token(Group<token::TokenCommand>),
        "config" => Config(Group<config::ConfigCommand>),
        "secret" => Secret(Group<secret::SecretCommand>),
        "trust" => Trust(Group<trust::TrustCommand>),
        "pins" => Pins(Group<pins::PinsCommand>),
        "audit" => Audit(Group<audit::AuditCommand>),
        "torture" => Torture(With<torture::Torture>),
        "mask" => Mask(With<mask::Mask>),
        "demo-server" => DemoServer(Bare<demo_server::DemoServer>),
        "man" => Man(Bare<man::Man>),
        "help" => Help(Bare<help::Help>),
        "__complete" => Complete(Bare<complete::Complete>),
        "completions" => Completions(Bare<completions::Completions>),
    }
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
    fn a_command_line_means_the_same_when_only_its_command_is_defined() {
        for definition in Cli::command().get_subcommands() {
            let lazy = Cli::parse_named(["pegboard", definition.get_name(), "--help"]).unwrap_err();
            assert_eq!(lazy.kind(), ErrorKind::DisplayHelp, "{}", definition.get_name());
        }
        let lazy = Commands::define_lazily(clap::Command::new("pegboard"));
        let names = |definition: &clap::Command| -> Vec<String> {
            definition
                .get_subcommands()
                .map(|command| command.get_name().to_owned())
                .collect()
        };
        assert_eq!(names(&lazy), names(&Cli::command()));
        for line in [
            "pegboard -c a call --time x.y n=1 -o json",
            "pegboard config show",
            "pegboard -q status --check",
        ] {
            let (one, all) = (Cli::parse_named(line.split(' ')), Cli::try_parse_from(line.split(' ')));
            assert_eq!(format!("{:?}", one.unwrap()), format!("{:?}", all.unwrap()));
        }
        for line in ["pegboard", "pegboard -q"] {
            let parsed = Cli::parse_named(line.split(' ')).unwrap();
            assert!(parsed.command.is_none(), "{line}");
        }
        for line in [
            "pegboard tolls",
            "pegboard complete",
            "pegboard call",
            "pegboard tools --colour",
        ] {
            assert!(Cli::parse_named(line.split(' ')).is_err(), "{line}");
        }
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
