//! The `pegboard` command.

mod cli;
mod commands;
#[cfg(unix)]
mod daemon;
#[cfg(not(unix))]
#[path = "no_daemon.rs"]
mod daemon;
mod demo;
mod exit;
mod generate;
mod leftovers;
mod logging;
mod output;
mod recording;
#[cfg(test)]
mod reference;
mod registry;
mod settings;
mod signals;
mod systemd;
mod terminal;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;

use commands::Cli;
use exit::Exit;
use output::{Output, Report};

/// How long the runtime waits for its tasks at exit. Tasks dropped after that kill the processes they own.
const LAST_WAIT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    pegboard::shim();
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let words: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        commands::with_advice(error, &words).exit()
    });
    let invocation = cli.into_invocation();
    let output = Output::new(&invocation.global);
    let logs = match logging::start(&invocation.global, &output, invocation.log) {
        Ok(logs) => logs,
        Err(error) => {
            return output
                .print(&Report::new(Exit::Usage).error(&error.problem, Some(error.hint)))
                .into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let message = format!("the threads cannot be started: {error}");
            return output
                .print(&Report::new(Exit::Unavailable).error(&message, None))
                .into();
        }
    };
    let exit = runtime.block_on(commands::run(invocation, output.clone(), logs));
    runtime.shutdown_timeout(LAST_WAIT);
    if let Some(problem) = logging::incomplete_trace() {
        output.say(&output::warning(&problem));
    }
    exit.into()
}
