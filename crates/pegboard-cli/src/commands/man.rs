//! `pegboard man DIR`: the man pages of all commands.

use std::path::PathBuf;

use clap::Args;

use super::{command::Run, context::Context};
use crate::{exit::Exit, output::Report};

/// Write the man pages of all commands to a folder
#[derive(Debug, Args)]
#[command(hide = true, after_help = "Example:\n  pegboard man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Run for Man {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to((context.definition)(), &self.folder));
        let report = match written {
            Ok(()) => Report::new(Exit::Done),
            Err(error) => {
                let message = format!("the man pages cannot be written to {}: {error}", self.folder.display());
                Report::new(Exit::Unavailable).error(&message, None)
            }
        };
        context.print(report).await
    }
}
