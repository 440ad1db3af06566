//! The arguments of `doctor`.

use clap::Args;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Doctor {
    /// Only these servers; all when none is given
    #[arg(value_name = "SERVER")]
    pub(crate) names: Vec<String>,
    /// Mend what can be mended safely, after a question
    #[arg(long)]
    pub(crate) fix: bool,
    /// Apply the fixes without a question
    #[arg(short, long, requires = "fix")]
    pub(crate) yes: bool,
    /// Show what `--fix` would change, and change nothing
    #[arg(long, requires = "fix")]
    pub(crate) dry_run: bool,
    /// Start no server and connect to none
    #[arg(long)]
    pub(crate) offline: bool,
}
