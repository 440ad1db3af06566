//! `pegboard completions`: the completion script of a shell. The scripts ask `pegboard __complete` for candidates.

use clap::Args;
use clap_complete::Shell;

use super::{command::Run, context::Context};
use crate::{exit::Exit, output::Report};

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard completions bash > pegboard.bash")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Run for Completions {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let script = match self.shell {
            Shell::Bash => include_str!("completions/pegboard.bash"),
            Shell::Elvish => include_str!("completions/pegboard.elv"),
            Shell::Fish => include_str!("completions/pegboard.fish"),
            Shell::PowerShell => include_str!("completions/pegboard.ps1"),
            Shell::Zsh => include_str!("completions/pegboard.zsh"),
            shell => {
                let report = Report::new(Exit::Usage).error(&format!("there is no completion for {shell}"), None);
                return context.print(report).await;
            }
        };
        let mut report = Report::new(Exit::Done);
        script.clone_into(&mut report.data);
        context.print(report).await
    }
}
