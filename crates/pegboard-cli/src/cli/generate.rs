//! The arguments of `generate`.

use std::path::PathBuf;

use clap::Args;

use crate::generate::Language;

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// What to generate
    #[arg(value_enum, value_name = "ts|python|rust|cli", hide_possible_values = true)]
    pub(crate) language: Language,
    /// The server whose tools are wrapped
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Write to this file, not to stdout; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace a file that was not generated
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}
