//! The commands, one file each, and the dispatch to them.

mod call;
mod completions;
mod config;
mod fetch;
mod listing;
mod mask;
mod prompts;
mod resources;
mod stage;
mod status;
mod tools;
mod waits;

use std::time::Duration;

use pegboard::Deadline;

use crate::{
    cli::{Global, Verb},
    demo,
    exit::Exit,
    output::{Output, Report},
    signals::Signals,
};
use stage::Stage;

/// The deadline of a command without `--timeout`. The servers' own timeouts fire long before it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Runs a command and prints its report.
pub(crate) async fn run(verb: Verb, global: Global, output: Output) -> Exit {
    if let Verb::DemoServer(options) = verb {
        return match demo::run(options).await {
            Ok(()) => Exit::Done,
            Err(error) => output.print(&Report::new(Exit::Usage).error(&format!("{error:#}"), None)),
        };
    }
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let message = format!("signals cannot be listened for: {error}");
            return output.print(&Report::new(Exit::Unavailable).error(&message, None));
        }
    };
    let deadline = Deadline::within(global.timeout.unwrap_or(PATIENCE));
    let stage = Stage {
        global,
        output,
        signals: &mut signals,
        deadline,
    };
    match verb {
        Verb::Tools(tools) => tools::run(stage, tools).await,
        Verb::Call(call) => call::run(stage, call).await,
        Verb::ResourcesList => resources::list(stage).await,
        Verb::ResourcesRead(uri) => resources::read(stage, uri).await,
        Verb::PromptsList => prompts::list(stage).await,
        Verb::PromptsGet(get) => prompts::get(stage, get).await,
        Verb::Status => status::run(stage).await,
        Verb::ConfigShow => config::show(stage).await,
        Verb::ConfigExplain(what) => config::explain(stage, what).await,
        Verb::ConfigSchema => config::schema(stage).await,
        Verb::Mask(mask) => mask::run(stage, mask).await,
        Verb::Completions(shell) => completions::run(stage, shell).await,
        Verb::DemoServer(_) => Exit::Done,
    }
}
