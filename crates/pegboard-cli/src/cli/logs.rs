//! The arguments of `logs`.

use clap::Args;
use pegboard::watch::LogLevel;

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server
    pub(crate) server: String,
    /// Go on until Ctrl-C, or as long as `--timeout` says
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Ask the server to log from this level on, such as debug
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Option<LogLevel>,
    /// Show only the last lines of what is there
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) last: Option<usize>,
}
