//! `pegboard help`: the same as `--help`.

use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Help {
    /// The command, such as `call` or `config show`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Help {
    /// The command line that prints the help.
    pub(super) fn line(self) -> impl Iterator<Item = String> {
        let program = std::iter::once("pegboard".to_owned());
        program.chain(self.command).chain(["--help".to_owned()])
    }
}
