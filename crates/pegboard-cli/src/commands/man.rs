//! `pegboard man DIR`: the man pages of all commands.

use std::path::PathBuf;

use clap::CommandFactory as _;

use super::context::Context;
use crate::{cli::Cli, exit::Exit, output::Report};

pub(super) async fn run(mut context: Context<'_>, folder: PathBuf) -> Exit {
    let written = std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(Cli::command(), &folder));
    let report = match written {
        Ok(()) => Report::new(Exit::Done),
        Err(error) => {
            let message = format!("the man pages cannot be written to {}: {error}", folder.display());
            Report::new(Exit::Unavailable).error(&message, None)
        }
    };
    context.print(report).await
}
