//! `pegboard completions`: the completion script of a shell.

use clap::CommandFactory as _;

use super::context::Context;
use crate::{cli::Cli, exit::Exit, output::Report};

pub(super) async fn run(mut context: Context<'_>, shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pegboard", &mut script);
    let mut report = Report::new(Exit::Done);
    report.data = String::from_utf8_lossy(&script).into_owned();
    context.print(report).await
}
