//! The arguments of `config`.

use clap::{Args, Subcommand};

use super::global::{Global, Nothing, With};

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) verb: ConfigVerb,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigVerb {
    /// Show the config that is used, and what is wrong with it
    #[command(after_help = "Example:\n  pegboard config show -c pegboard.toml")]
    Show(With<Nothing>),
    /// Tell where each setting comes from, and what it means
    #[command(
        after_help = "Examples:\n  pegboard config explain\n  pegboard config explain github\n  \
                      pegboard config explain github.call_timeout"
    )]
    Explain(With<ConfigExplain>),
    /// Print the JSON Schema of config files
    #[command(after_help = "Example:\n  pegboard config schema > pegboard.schema.json")]
    Schema,
}

#[derive(Debug, Args)]
pub(super) struct ConfigExplain {
    /// A server, one setting of it, or a setting of the top
    #[arg(value_name = "SERVER[.SETTING]")]
    pub(super) what: Option<String>,
}
