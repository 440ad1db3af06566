//! The arguments of `record` and `replay`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::serving::address;
use crate::recording::Matching;

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The recording, which is replaced
    pub(crate) file: PathBuf,
    /// Record this view of the config instead of all tools
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(crate) view: Option<String>,
    /// A server to start and record, instead of those of the config
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The recording
    pub(crate) file: PathBuf,
    /// strict: in the recorded order; exact: with the same params;
    /// lenient: also with other arguments of the same tool
    #[arg(
        long = "match",
        value_enum,
        default_value = "exact",
        hide_possible_values = true,
        value_name = "MATCHING"
    )]
    pub(crate) matching: Matching,
    /// Serve HTTP at this loopback address, or only a port, instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
}
