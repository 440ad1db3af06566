//! The arguments and options of `install`.

use clap::Args;

/// Make a host such as Claude or Cursor use Pegboard
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard install claude\n  pegboard install cursor --take-over")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Install {
    /// The host, such as claude, claude-desktop, cursor, vscode or codex
    #[arg(value_name = "HOST", required = true)]
    pub(in crate::commands) hosts: Vec<String>,
    /// Write to the host's file of this project
    #[arg(long)]
    pub(in crate::commands) project: bool,
    /// Connect to this running `pegboard serve` instead of starting it
    #[arg(long, conflicts_with = "daemon")]
    pub(in crate::commands) url: Option<String>,
    /// Let it use this view of the config instead of all tools
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) view: Option<String>,
    /// Let all hosts share one daemon with the servers: the default
    #[arg(long, hide = true, conflicts_with = "no_daemon")]
    pub(in crate::commands) daemon: bool,
    /// The name of the entry
    #[arg(long, default_value = "pegboard")]
    pub(in crate::commands) name: String,
    /// Move the host's own servers into the config, so that it gets them
    /// from here
    #[arg(long)]
    pub(in crate::commands) take_over: bool,
    /// Replace another entry of that name
    #[arg(long)]
    pub(in crate::commands) force: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(in crate::commands) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(in crate::commands) yes: bool,
}
