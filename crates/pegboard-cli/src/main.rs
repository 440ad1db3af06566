//! The `pegboard` command.

mod access_log;
mod bundle;
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
mod telemetry;
mod terminal;

use std::{process::ExitCode, time::Duration};

use commands::Cli;
use exit::Exit;
use output::{Output, Report};

/// How long the runtime waits for its tasks at exit. Tasks dropped after that kill the processes they own.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// How many threads a command that soon ends runs its tasks on.
const MOST_THREADS: usize = 4;

fn main() -> ExitCode {
    pegboard::shim();
    let cli = Cli::read().unwrap_or_else(|error| error.exit());
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
    let runtime = match runtime(invocation.log.keeps_running()).build() {
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

/// The threads of a command. One that soon ends starts only a few, because starting many takes longer than they save.
fn runtime(keeps_running: bool) -> tokio::runtime::Builder {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if !keeps_running && std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        runtime.worker_threads(cores.min(MOST_THREADS));
    }
    runtime.enable_all();
    runtime
}
