//! The arguments of `find`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Find {
    /// Words of a server's name or description
    #[arg(required = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Show at most this many
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
    /// Show deprecated servers too
    #[arg(long)]
    pub(crate) all: bool,
    /// The registry, if not the official one
    #[arg(long, value_name = "URL")]
    pub(crate) registry: Option<String>,
}
