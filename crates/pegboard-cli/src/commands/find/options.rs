//! The arguments and options of `find`.

use clap::Args;

/// Find servers in a registry
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard find github\n  pegboard find postgres --add --set DATABASE_URL")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Find {
    /// Words of a server's name or description
    #[arg(required = true, value_name = "WORD")]
    pub(super) words: Vec<String>,
    /// Add what is found to the config, its version pinned
    #[arg(long)]
    pub(super) add: bool,
    /// The server's name in the config
    #[arg(long, requires = "add")]
    pub(super) name: Option<String>,
    /// How to run it: npm, pypi, oci, streamable-http, …
    #[arg(long, requires = "add", value_name = "KIND")]
    pub(super) package: Option<String>,
    /// A value that it needs; NAME alone takes it from the environment
    #[arg(long, requires = "add", value_name = "NAME[=VALUE]")]
    pub(super) set: Vec<String>,
    /// Write to the project's file, not the user's
    #[arg(long, requires = "add")]
    pub(super) project: bool,
    /// Show what would be written
    #[arg(long, requires = "add")]
    pub(super) dry_run: bool,
    /// Add it without a question
    #[arg(short, long, requires = "add")]
    pub(super) yes: bool,
    /// Show at most this many
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(super) limit: usize,
    /// Show deprecated servers too
    #[arg(long)]
    pub(super) all: bool,
    /// The registry, if not the official one
    #[arg(long, value_name = "URL")]
    pub(super) registry: Option<String>,
}
