//! `pegboard help`: the same as `--help`.

use clap::Args;

use super::{command::Run, context::Context};
use crate::{exit::Exit, output::Report};

/// Print the help of a command
#[derive(Debug, Args)]
#[command(hide = true, after_help = "Example:\n  pegboard help config show")]
pub(crate) struct Help {
    /// The command, such as `call` or `config show`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run for Help {
    const OWNS_SERVER_OPTIONS: bool = true;

    async fn run(self, mut context: Context<'_>) -> Exit {
        let words = ["pegboard".to_owned()].into_iter().chain(self.command);
        match (context.definition)().try_get_matches_from(words.chain(["--help".to_owned()])) {
            // The help is such an error too.
            Err(error) => error.exit(),
            Ok(_) => {
                let report = Report::new(Exit::Usage).error("these words are no command", None);
                context.print(report).await
            }
        }
    }
}
