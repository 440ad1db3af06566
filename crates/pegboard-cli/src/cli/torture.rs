//! The arguments of `torture`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use super::global::duration;

#[derive(Debug, Args)]
pub(crate) struct Torture {
    /// A configured server, a URL, or a command line in quotes
    pub(crate) server: String,
    /// Call this tool too; may be repeated
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Call every tool, not only read-only ones
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The protocol era to try: both, modern or legacy
    #[arg(long, value_enum, default_value_t = Eras::Both, hide_possible_values = true, hide_default_value = true)]
    pub(crate) era: Eras,
    /// Run only this case or group; may be repeated
    #[arg(long = "only", value_name = "CASE")]
    pub(crate) only: Vec<String>,
    /// How long each response may take (10s)
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s", hide_default_value = true)]
    pub(crate) wait: Duration,
    /// Write the results as JUnit XML too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Which protocol eras are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Eras {
    /// Those that the server speaks.
    Both,
    /// The era without a handshake.
    Modern,
    /// The era with a handshake.
    Legacy,
}
