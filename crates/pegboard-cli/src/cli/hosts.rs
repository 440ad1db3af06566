//! The arguments of `import`, `install`, `uninstall` and `init`.

use clap::Args;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Import {
    /// Hosts such as claude or cursor, or config files; without any, all
    /// hosts that are found
    #[arg(value_name = "HOST|FILE")]
    pub(crate) from: Vec<String>,
    /// Also what a host uses only in other projects
    #[arg(long)]
    pub(crate) all: bool,
    /// Read the hosts' files of this project, and write to its config
    #[arg(long)]
    pub(crate) project: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Install {
    /// The host, such as claude, claude-desktop, cursor, vscode or codex
    #[arg(value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Write to the host's file of this project
    #[arg(long)]
    pub(crate) project: bool,
    /// Connect to this running `pegboard serve` instead of starting it
    #[arg(long, conflicts_with_all = ["view", "daemon"])]
    pub(crate) url: Option<String>,
    /// Let it use this view of the config instead of all tools
    #[arg(long, value_name = "NAME")]
    pub(crate) view: Option<String>,
    /// Let all hosts share one daemon with the servers
    #[arg(long)]
    pub(crate) daemon: bool,
    /// The name of the entry
    #[arg(long, default_value = "pegboard")]
    pub(crate) name: String,
    /// Move the host's own servers into the config, so that it gets them
    /// from here
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Replace another entry of that name
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// The host, such as claude, claude-desktop, cursor, vscode or codex
    #[arg(value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Take it out of the host's file of this project
    #[arg(long)]
    pub(crate) project: bool,
    /// The name of the entry
    #[arg(long, default_value = "pegboard")]
    pub(crate) name: String,
    /// Put back the servers that `install --take-over` moved
    #[arg(long)]
    pub(crate) restore: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Move the hosts' own servers into the config, so that they get them
    /// from here
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
